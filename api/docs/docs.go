// Package docs contains the OpenAPI document of the API, and an HTML page that shows it.
package docs

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the document and the files of its page
	"io"
	"sync"
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
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; worker-src blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Document is a representation of the document, or a file of its page.
type Document struct {
	Path   string
	Kind   string // content type
	Policy string // Content-Security-Policy; empty: none
	Body   func() ([]byte, error)
}

// All returns the document as YAML and as JSON, and the files of an HTML page that shows it. A representation is built on
// first use.
func All() []Document {
	embedded := func(body []byte) func() ([]byte, error) { return func() ([]byte, error) { return body, nil } }
	return []Document{
		{"/openapi.yaml", "application/yaml", "", embedded(openapiYAML)},
		{"/openapi.json", "application/json; charset=utf-8", "", sync.OnceValues(encodeJSON)},
		{"/docs", "text/html; charset=utf-8", policy, embedded(page)},
		{"/docs/start.js", "text/javascript; charset=utf-8", policy, embedded(startScript)},
		{"/docs/redoc.js", "text/javascript; charset=utf-8", policy, sync.OnceValues(decompressViewer)},
	}
}

func decompressViewer() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(viewer))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
