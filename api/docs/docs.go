// Package docs contains the OpenAPI document of the API, an HTML page that shows it, and the guides as HTML.
package docs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"html/template"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"

	guides "lifthouse/docs"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openapiYAML []byte

// pageFiles are the files of the page. Redoc is compressed: the script .ci/redoc fetches it from npm.
//
//go:embed redoc.html start.js redoc.js.gz
var pageFiles embed.FS

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
	file := func(name string) func() ([]byte, error) {
		return func() ([]byte, error) { return pageFiles.ReadFile(name) }
	}
	// The names of the guides are those of the files, so links among them need no change.
	names, err := fs.Glob(guides.Guides, "*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all []Document
	for _, name := range names {
		all = append(all, Document{"/guides/" + name, "text/html; charset=utf-8", guidePolicy, sync.OnceValues(
			func() ([]byte, error) { return renderGuide(name, names) },
		)})
	}
	return append(all, []Document{
		{"/openapi.yaml", "application/yaml", "", func() ([]byte, error) { return openapiYAML, nil }},
		{"/openapi.json", "application/json; charset=utf-8", "", sync.OnceValues(func() ([]byte, error) {
			var document yaml.Node
			if err := yaml.Unmarshal(openapiYAML, &document); err != nil {
				return nil, err
			}
			return appendJSON(nil, &document)
		})},
		{"/docs", "text/html; charset=utf-8", policy, file("redoc.html")},
		{"/docs/start.js", "text/javascript; charset=utf-8", policy, file("start.js")},
		{"/docs/redoc.js", "text/javascript; charset=utf-8", policy, sync.OnceValues(func() ([]byte, error) {
			packed, err := pageFiles.Open("redoc.js.gz")
			if err != nil {
				return nil, err
			}
			r, err := gzip.NewReader(packed)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		})},
	}...)
}

//go:embed guide.html
var guideHTML string

var guidePage = template.Must(template.New("").Funcs(template.FuncMap{"title": guideTitle}).Parse(guideHTML))

// guidePolicy is the Content-Security-Policy of guides, which have the style of the dashboard and no script.
const guidePolicy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// guideMarkdown renders no raw HTML. Tables are aligned without styles, which the policy forbids.
var guideMarkdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// otherFile matches a link to a file of the repository that is not a guide: one with a folder.
var otherFile = regexp.MustCompile(`\[([^\]]+)\]\((?:\.\.|[\w-]+)/[^)]*\)`)

// renderGuide returns the page of a guide.
func renderGuide(name string, names []string) ([]byte, error) {
	source, err := guides.Guides.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var body, page bytes.Buffer
	if err := guideMarkdown.Convert(otherFile.ReplaceAll(source, []byte("$1")), &body); err != nil {
		return nil, err
	}
	// A table may be wider than the screen. With the focus, it scrolls.
	text := template.HTML(strings.ReplaceAll(body.String(), "<table>", `<table tabindex="0">`))
	err = guidePage.Execute(&page, map[string]any{"Name": name, "Names": names, "Body": text})
	return page.Bytes(), err
}

// guideTitle returns the heading of a guide.
func guideTitle(name string) (string, error) {
	source, err := guides.Guides.ReadFile(name)
	heading, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
	return heading, err
}

// appendJSON appends a YAML node as JSON, with the fields of objects in their order.
func appendJSON(text []byte, node *yaml.Node) ([]byte, error) {
	if node.Kind == yaml.DocumentNode {
		return appendJSON(text, node.Content[0])
	}
	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		return appendJSONElements(text, node)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	return append(text, encoded...), err
}

// appendJSONElements appends the fields of an object or the elements of a list.
func appendJSONElements(text []byte, node *yaml.Node) (_ []byte, err error) {
	isObject := node.Kind == yaml.MappingNode
	first, last := byte('['), byte(']')
	if isObject {
		first, last = '{', '}'
	}
	text = append(text, first)
	for i, element := range node.Content {
		isValue := isObject && i%2 == 1
		switch {
		case isValue:
			text = append(text, ':')
		case i > 0:
			text = append(text, ',')
		}
		if isObject && !isValue {
			text = strconv.AppendQuote(text, element.Value)
			continue
		}
		text, err = appendJSON(text, element)
		if err != nil {
			return nil, err
		}
	}
	return append(text, last), nil
}
