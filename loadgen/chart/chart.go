// Package chart draws line charts and row charts as SVG.
package chart

import (
	"bytes"
	"embed"
	"encoding/xml"
	"fmt"
	"strings"
	"text/template"
)

//go:embed *.svg.tmpl
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"text": escapeXML,
	"px":   func(x float64) string { return fmt.Sprintf("%.1f", x) },
	"points": func(points [][2]float64) string {
		parts := make([]string, len(points))
		for i, p := range points {
			parts[i] = fmt.Sprintf("%.1f,%.1f", p[0], p[1])
		}
		return strings.Join(parts, " ")
	},
}).ParseFS(files, "*.svg.tmpl"))

// escapeXML escapes text for XML.
func escapeXML(text string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(text))
	return b.String(), err
}

func executeTemplate(file string, data any) ([]byte, error) {
	var svg bytes.Buffer
	err := templates.ExecuteTemplate(&svg, file, data)
	return svg.Bytes(), err
}

// Colors that remain distinguishable with common color vision deficiencies
// (Okabe and Ito, 2008).
const (
	Blue   = "#0072b2"
	Orange = "#d55e00"
	Green  = "#009e73"
	Purple = "#aa4499"
	Gray   = "#8a939d"
	Red    = "#c00000"
	Pale   = "#b8cbe0"
)

// Sizes in pixels.
const (
	margin      = 20
	titleHeight = 28
	lineHeight  = 18 // of a text line
	letterWidth = 6.6
)

// textWidth estimates the width of a text at font size 12, in pixels.
func textWidth(text string) float64 { return letterWidth * float64(len([]rune(text))) }

// legendEntry is a placed entry of a legend. X is its left end and Y its
// baseline.
type legendEntry struct {
	Name, Color string
	Dashed      bool
	X, Y        float64
}

// sampleWidth is the width of the line before the name of a legend entry.
const sampleWidth = 22

// placeLegend places the entries in lines of at most the given width, starting
// at x and y. It returns the y coordinate below the last line.
func placeLegend(entries []legendEntry, x, y, width float64) float64 {
	if len(entries) == 0 {
		return y
	}
	left := x
	for i := range entries {
		entry := &entries[i]
		w := sampleWidth + 6 + textWidth(entry.Name) + 18
		if left > x && left+w > x+width {
			left, y = x, y+lineHeight
		}
		entry.X, entry.Y = left, y
		left += w
	}
	return y + lineHeight
}
