// Package dashboard contains the files of the page at /, which shows results. The page uses the API like any other
// client. make assets builds its script from web. The built files are in the repository, so go build needs no npm.
package dashboard

import (
	"embed"
	"path"
)

//go:embed assets
var assets embed.FS

// Index is the name of the page, which loads the other files.
const Index = "index.html"

// Policy is the Content-Security-Policy of the page. It allows only the page's own files and its own server: no inline
// scripts or styles, no other host, and no frame around the page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is a file of the page.
type File struct {
	Name, Kind string
	Body       []byte
}

// Files returns all files of the page.
func Files() []File {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // the files are embedded
	}
	files := make([]File, len(entries))
	for i, entry := range entries {
		body, err := assets.ReadFile(path.Join("assets", entry.Name()))
		if err != nil {
			panic(err)
		}
		files[i] = File{entry.Name(), kinds[path.Ext(entry.Name())], body}
		if files[i].Kind == "" {
			panic("no content type is known for " + entry.Name())
		}
	}
	return files
}

// kinds maps file extensions to content types. The table of the machine may differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}
