// Package docs has the OpenAPI document of the API, and its page for people.
package docs

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the document, the template and the style of its page
	"encoding/base64"
	"html/template"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var openapiYAML []byte

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// Document is a representation of the document. It is built on first use.
type Document struct {
	Path   string
	Kind   string // content type
	Policy string // Content-Security-Policy; empty: none
	Body   func() ([]byte, error)
}

// All returns the document as YAML, as JSON and as an HTML page.
func All() []Document {
	style := sha256.Sum256([]byte(pageStyle))
	return []Document{
		{Path: "/openapi.yaml", Kind: "application/yaml", Body: func() ([]byte, error) { return openapiYAML, nil }},
		{Path: "/openapi.json", Kind: "application/json; charset=utf-8", Body: sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(openapiYAML) })},
		{
			Path: "/docs", Kind: "text/html; charset=utf-8", Body: sync.OnceValues(page),
			Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		},
	}
}

// page returns the document as an HTML page without scripts or external
// resources.
func page() ([]byte, error) {
	root, err := readNode(openapiYAML)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{
		"Style": template.CSS(pageStyle), //nolint:gosec // a file of ours
		"Info":  root.at("info"), "Tags": operationsByTag(root),
		"Errors": responsesOf(root.at("components", "responses")), "Schemas": schemasOf(root),
		"Security": root.at("components", "securitySchemes", "bearer", "description"),
	})
	return out.Bytes(), err
}
