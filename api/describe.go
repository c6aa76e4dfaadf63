package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the document, the template and the style of its page
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var openapiYAML []byte

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// document is a representation of the API description. It is built on first
// use.
type document struct {
	kind string
	body func() ([]byte, error)
	csp  string
}

// describe adds the routes of the API description: YAML, JSON, and an HTML
// page.
func (s *server) describe(router *gin.Engine) {
	style := sha256.Sum256([]byte(docsStyle))
	for path, d := range map[string]document{
		"/openapi.yaml": {kind: "application/yaml", body: func() ([]byte, error) { return openapiYAML, nil }},
		"/openapi.json": {kind: "application/json; charset=utf-8", body: sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(openapiYAML) })},
		"/docs": {
			kind: "text/html; charset=utf-8", body: sync.OnceValues(renderDocs),
			csp: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		},
	} {
		router.GET(path, d.serve)
		router.HEAD(path, d.serve)
	}
}

func (d document) serve(c *gin.Context) {
	body, err := d.body()
	if err != nil {
		writeProblem(c, problemOf(err))
		return
	}
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(body))
	c.Header("ETag", tag)
	c.Header("Cache-Control", "no-cache")
	if d.csp != "" {
		c.Header("Content-Security-Policy", d.csp)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Referrer-Policy", "no-referrer")
	}
	if matches(c.Request, tag) {
		notModified(c)
		return
	}
	c.Data(http.StatusOK, d.kind, body)
}

// renderDocs returns the API description as an HTML page without scripts or
// external resources.
func renderDocs() ([]byte, error) {
	root, err := readNode(openapiYAML)
	if err != nil {
		return nil, err
	}
	page, err := template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(docsPage)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, map[string]any{
		"Style": template.CSS(docsStyle), //nolint:gosec // a file of ours
		"Info":  root.at("info"), "Tags": operationsByTag(root),
		"Errors": responsesOf(root.at("components", "responses")), "Schemas": schemasOf(root),
		"Security": root.at("components", "securitySchemes", "bearer", "description"),
	})
	return out.Bytes(), err
}
