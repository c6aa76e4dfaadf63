// Package dashboard is the page at /: results for those who would rather look
// than read. The page asks the API as any other client does; here are only its
// files, which the binary carries. Its script is built from web by make assets
// and kept built, so that go build needs no npm.
package dashboard

import (
	"embed"
	"path"
)

//go:embed assets
var assets embed.FS

// Index is the page itself, which has the others loaded.
const Index = "index.html"

// Policy allows the page its own files and its own server, nothing else:
// no script or style within the page, no other host, no frame around it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is one of the page's files.
type File struct {
	Name, Kind string
	Body       []byte
}

// Files are those of the page.
func Files() []File {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // they are in the binary
	}
	files := make([]File, len(entries))
	for i, entry := range entries {
		body, err := assets.ReadFile(path.Join("assets", entry.Name()))
		if err != nil {
			panic(err)
		}
		files[i] = File{entry.Name(), kinds[path.Ext(entry.Name())], body}
		if files[i].Kind == "" {
			panic("no type is known of " + entry.Name())
		}
	}
	return files
}

// kinds does without the machine's table of types, which may know others.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}
