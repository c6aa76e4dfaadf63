// Package docs contains the guides. The program serves them: see api/docs.
package docs

import "embed"

// Guides are the guides in Markdown.
//
//go:embed *.md
var Guides embed.FS
