// Package dashboard contains the files of the page at /, which shows results, of the page of a readout, and of the page
// at /opinion, which judges past tests. The first two use the API like any other client. make assets builds their
// scripts from web. The built files are in the repository, so go build needs no npm. The page at /opinion computes in
// the browser, by the program of cmd/opinion. make opinion builds that program, which is not in the repository; without
// it, the page says that it is missing.
package dashboard

import (
	"embed"
	"path"
)

//go:embed assets opinion
var files embed.FS

// The folders of the pages. That of the opinion can be published anywhere. Its page loads what is in OpinionParts.
const (
	Results      = "assets"
	Opinion      = "opinion"
	OpinionParts = "opinion/opinion"
)

// Index is the name of a page, which loads the other files.
const Index = "index.html"

// Readout is the name of the page of a readout, among the files of the page of results.
const Readout = "readout.html"

// Policies are the Content-Security-Policies of the pages, which allow only their own files: no inline scripts or
// styles, no other host, and no frame around a page. The page of results may ask its own server. The page of the
// opinion may connect to nothing, so a table never leaves the browser. The page of a readout has the readout in a frame
// that has the policy of the page and a sandbox without scripts: so its styles and pictures may be inline.
var Policies = map[string]string{
	Results: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	Readout: "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	Opinion: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

// File is a file of a page.
type File struct {
	Name, Kind string
	Body       []byte
}

// Files returns all files of the page of a folder.
func Files(folder string) []File {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic(err) // the files are embedded
	}
	var found []File
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		body, err := files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			panic(err) // the files are embedded
		}
		found = append(found, File{entry.Name(), kinds[path.Ext(entry.Name())], body})
		if found[len(found)-1].Kind == "" {
			panic("no content type is known for " + entry.Name())
		}
	}
	return found
}

// kinds maps file extensions to content types. The table of the machine may differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}
