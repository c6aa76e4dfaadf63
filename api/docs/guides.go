package docs

import (
	"bytes"
	_ "embed" // the page around a guide
	"html/template"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	guides "lifthouse/docs"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

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

// guideDocuments returns the guides. Their names are those of the files, so links among them need no change.
func guideDocuments() (all []Document) {
	names, err := fs.Glob(guides.Guides, "*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, name := range names {
		all = append(all, Document{"/guides/" + name, "text/html; charset=utf-8", guidePolicy, sync.OnceValues(
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
