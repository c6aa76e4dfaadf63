// Package docs contains the OpenAPI document of the API, an HTML page that shows it, and the guides as HTML.
package docs

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the document and the files of its page
	"encoding/json"
	"io"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openapiYAML []byte

//go:embed redoc.html
var page []byte

//go:embed start.js
var startScript []byte

// viewer is Redoc, compressed. The script .ci/redoc fetches it from npm.
//
//go:embed redoc.js.gz
var viewer []byte

// policy is the Content-Security-Policy of the page. It allows only scripts of this server, no other host, and no frame
// around the page. Redoc writes its styles into the page, and searches in a worker that it creates itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; " +
	"worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Document is a representation of the document, or a file of its page.
type Document struct {
	Path   string
	Kind   string // content type
	Policy string // Content-Security-Policy; empty: none
	Body   func() ([]byte, error)
}

// All returns the document as YAML and as JSON, the files of an HTML page that shows it, and the guides. A
// representation is built on first use.
func All() []Document {
	embedded := func(body []byte) func() ([]byte, error) { return func() ([]byte, error) { return body, nil } }
	return append(guideDocuments(), []Document{
		{"/openapi.yaml", "application/yaml", "", embedded(openapiYAML)},
		{"/openapi.json", "application/json; charset=utf-8", "", sync.OnceValues(encodeJSON)},
		{"/docs", "text/html; charset=utf-8", policy, embedded(page)},
		{"/docs/start.js", "text/javascript; charset=utf-8", policy, embedded(startScript)},
		{"/docs/redoc.js", "text/javascript; charset=utf-8", policy, sync.OnceValues(decompressViewer)},
	}...)
}

func decompressViewer() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(viewer))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// encodeJSON returns the document as JSON. Fields keep their order.
func encodeJSON() ([]byte, error) {
	var document yaml.Node
	if err := yaml.Load(openapiYAML, &document); err != nil {
		return nil, err
	}
	return appendJSON(nil, document.Content[0])
}

// appendJSON appends a value as JSON. Maps keep their order.
func appendJSON(text []byte, value *yaml.Node) ([]byte, error) {
	if value == nil {
		return append(text, "null"...), nil
	}
	open, end, isMap := byte('['), byte(']'), value.Kind == yaml.MappingNode
	switch {
	case isMap:
		open, end = '{', '}'
	case value.Tag == "!!str" || value.Tag == "!!timestamp":
		encoded, err := json.Marshal(value.Value)
		return append(text, encoded...), err
	case value.Kind == yaml.ScalarNode: // written as in JSON
		return append(text, value.Value...), nil
	}
	text = append(text, open)
	for i, item := range value.Content {
		separator := byte(',')
		if isMap && i%2 == 1 {
			separator = ':'
		}
		if i > 0 {
			text = append(text, separator)
		}
		if isMap && i%2 == 0 {
			item = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item.Value} // such as the status 200
		}
		var err error
		if text, err = appendJSON(text, item); err != nil {
			return nil, err
		}
	}
	return append(text, end), nil
}
