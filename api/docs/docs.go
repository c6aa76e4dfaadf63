// Package docs contains the OpenAPI document of the API, an HTML page that shows it, and the guides as HTML.
package docs

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the document and the files of its page
	"encoding/json"
	"io"
	"sync"

	"github.com/goccy/go-yaml"
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
	document, err := yaml.YAMLToJSON(openapiYAML)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = json.Compact(&text, document)
	return text.Bytes(), err
}
