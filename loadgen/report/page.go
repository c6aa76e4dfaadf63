package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
)

// Benchmarks is what a page of benchmarks is made of.
type Benchmarks struct {
	Command  string // that makes the page
	Date     string
	Machine  Machine
	Standard StandardResult
	Peers    PeersResult
	Growth   *Growth   // nil: it was not measured
	Sections []Section // what other commands printed
}

// Section is a command's own text.
type Section struct{ Title, Text string }

// StandardResult is how the standard data set went into a store.
type StandardResult struct {
	Scale           float64 `json:"scale"`
	Visitors        int     `json:"visitors"`
	Events          int     `json:"events"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
}

//go:embed report.md.tmpl
var reportText string

var reportTemplate = template.Must(template.New("report").Option("missingkey=error").Funcs(template.FuncMap{
	"ours":    func(who string) bool { return strings.HasPrefix(who, "Lifthouse") },
	"times":   func(ratio float64) string { return unlessZero("%.1f ×", ratio) },
	"whole":   func(figure float64) string { return unlessZero("%.0f", figure) },
	"tenth":   func(figure float64) string { return fmt.Sprintf("%.1f", figure) },
	"ratio":   func(figure float64) string { return fmt.Sprintf("%.2f", figure) },
	"seconds": func(figure float64) string { return fmt.Sprintf("%.1f", figure) },
}).Parse(reportText))

// unlessZero writes a figure; 0 stands for what could not be seen.
func unlessZero(format string, figure float64) string {
	if figure == 0 {
		return "–"
	}
	return fmt.Sprintf(format, figure)
}

// Write writes the page as Markdown.
func (b *Benchmarks) Write(w io.Writer) error { return reportTemplate.Execute(w, b) }
