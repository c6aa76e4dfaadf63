package docs

import (
	"bytes"
	"html/template"
	"io/fs"
	"strings"
	"sync"

	guides "lifthouse/docs"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// guidePath begins the addresses of guides. Their names are those of the files, so links among them need no change.
const guidePath = "/guides/"

// guidePolicy is the Content-Security-Policy of guides, which have the style of the dashboard and no script.
const guidePolicy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// guidePage surrounds a guide.
var guidePage = template.Must(template.New("guide").Funcs(template.FuncMap{"title": guideTitle}).Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{title .Name}} · Lifthouse</title>
<link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/app.css">
</head>
<body>
<div class="top"><a class="name" href="/">Lifthouse</a><a href="/docs">API docs</a></div>
<main class="guide">
<nav aria-label="Guides">{{range .Names}}<a href="{{.}}"{{if eq . $.Name}} aria-current="page"{{end}}>{{title .}}</a> {{end}}</nav>
{{.Body}}</main>
</body>
</html>
`))

// guideMarkdown is the Markdown of the guides. Tables are aligned without styles, which the policy forbids.
var guideMarkdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// guideDocuments returns the guides.
func guideDocuments() []Document {
	names, err := fs.Glob(guides.Guides, "*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all []Document
	for _, name := range names {
		all = append(all, Document{guidePath + name, "text/html; charset=utf-8", guidePolicy, sync.OnceValues(
			func() ([]byte, error) { return renderGuide(name, names) },
		)})
	}
	return all
}

// renderGuide returns the page of a guide.
func renderGuide(name string, names []string) ([]byte, error) {
	source, err := guides.Guides.ReadFile(name)
	if err != nil {
		return nil, err
	}
	document := guideMarkdown.Parser().Parse(text.NewReader(source))
	unlinkFiles(document)
	var body, page bytes.Buffer
	if err := guideMarkdown.Renderer().Render(&body, source, document); err != nil {
		return nil, err
	}
	err = guidePage.Execute(&page, struct {
		Name  string
		Names []string
		Body  template.HTML
	}{name, names, template.HTML(body.String())}) // the renderer omits raw HTML
	return page.Bytes(), err
}

// guideTitle returns the heading of a guide.
func guideTitle(name string) (string, error) {
	source, err := guides.Guides.ReadFile(name)
	heading, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
	return heading, err
}

// unlinkFiles replaces links to other files of the repository with their texts.
func unlinkFiles(document ast.Node) {
	var links []*ast.Link
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if link, is := n.(*ast.Link); is && entering && !isServed(string(link.Destination)) {
			links = append(links, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		for link.FirstChild() != nil {
			link.Parent().InsertBefore(link.Parent(), link, link.FirstChild())
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
}

// isServed reports whether a link of a guide leads to a guide or to another host.
func isServed(destination string) bool {
	file, _, _ := strings.Cut(destination, "#")
	_, err := fs.Stat(guides.Guides, file)
	return file == "" || err == nil || strings.Contains(destination, "://")
}
