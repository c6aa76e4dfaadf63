// Package docs contains the OpenAPI document of the API, and an HTML page that shows it.
package docs

import (
	"bytes"
	_ "embed" // the document and the files of its page
	"html/template"
	"sync"
)

//go:embed openapi.yaml
var openapiYAML []byte

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle []byte

//go:embed page.js
var pageScript []byte

// policy is the Content-Security-Policy of the page. It allows only the page's own
// script, style and icon: nothing inline, no other host, no requests by the script,
// and no frame around the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Document is a representation of the document, or a file of its page.
type Document struct {
	Path   string
	Kind   string // content type
	Policy string // Content-Security-Policy; empty: none
	Body   func() ([]byte, error)
}

// All returns the document as YAML, as JSON and as an HTML page, and the files
// of the page. A representation is built on first use.
func All() []Document {
	embedded := func(body []byte) func() ([]byte, error) { return func() ([]byte, error) { return body, nil } }
	return []Document{
		{"/openapi.yaml", "application/yaml", "", embedded(openapiYAML)},
		{"/openapi.json", "application/json; charset=utf-8", "", sync.OnceValues(encodeJSON)},
		{"/docs", "text/html; charset=utf-8", policy, sync.OnceValues(renderPage)},
		{"/docs/page.css", "text/css; charset=utf-8", policy, embedded(pageStyle)},
		{"/docs/page.js", "text/javascript; charset=utf-8", policy, embedded(pageScript)},
	}
}

// encodeJSON returns the document as JSON.
func encodeJSON() ([]byte, error) {
	root, err := readNode(openapiYAML)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, root.value)
}

// renderPage returns the document as an HTML page. The page is complete without its
// script.
func renderPage() ([]byte, error) {
	root, err := readNode(openapiYAML)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("docs").Funcs(template.FuncMap{"prose": proseHTML, "inline": inlineHTML}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	tags := operationsByTag(root)
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{
		"Info": root.valueAt("info"), "Tags": tags, "Statuses": usedBy(tags),
		"First":  docSample{Options: authorization, Rest: "/v1/websites'"},
		"Shared": responsesOf(root.valueAt("components", "responses")), "Schemas": schemasOf(root),
		"Security": root.valueAt("components", "securitySchemes", "bearer", "description"),
	})
	return out.Bytes(), err
}
