// Package report writes the benchmark report: one page with summaries and
// charts, and pages with the full tables.
package report

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/competitors"
	"lifthouse/loadgen/measure"
)

// Benchmarks has the measurements of a report.
type Benchmarks struct {
	Command     string // command that generates the report
	Date        string
	Machine     measure.Machine
	Insertion   measure.Insertion
	Competitors competitors.Result
	Growth      *measure.Growth        // nil: not measured
	Loads       []Load                 // load tests
	Calibration *calibration.Result    // nil: not measured
	Decisions   *calibration.Decisions // nil: not measured
	Sections    []Section              // texts that other commands printed

	Details string // path from the page to the directory with the tables and charts; set by WriteFiles
}

// Load is a load test with a ladder.
type Load struct {
	Title  string
	Result bench.Result
}

// Section is a text with a title.
type Section struct{ Title, Text string }

//go:embed *.md.tmpl
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"times":    func(ratio float64) string { return formatUnlessZero("%.1f ×", ratio) },
	"integer":  func(figure float64) string { return formatUnlessZero("%.0f", figure) },
	"decimal":  func(figure float64) string { return fmt.Sprintf("%.1f", figure) },
	"decimals": func(figure float64) string { return fmt.Sprintf("%.2f", figure) },
	"rate":     func(figure float64) string { return fmt.Sprintf("%.4f", figure) },
	"requests": func(rate float64) string { return fmt.Sprintf("%.4g", rate) },
	"grouped":  formatCount,
}).ParseFS(files, "*.md.tmpl"))

// formatUnlessZero formats a figure. A figure of 0 is unknown and becomes a
// dash.
func formatUnlessZero(format string, figure float64) string {
	if figure == 0 {
		return "–"
	}
	return fmt.Sprintf(format, figure)
}

// formatCount formats an integer that is not negative, with commas between groups
// of three digits.
func formatCount(n any) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// WriteFiles writes the page, and the tables and charts to the directory details. It
// creates the directory if it does not exist.
func (b *Benchmarks) WriteFiles(page, details string) error {
	if err := os.MkdirAll(details, 0o755); err != nil {
		return err
	}
	relative, err := relativePath(page, details)
	if err != nil {
		return err
	}
	b.Details = relative
	outputs := []output{{page, b.templateFunc("page.md.tmpl")}}
	for _, o := range b.detailOutputs() {
		outputs = append(outputs, output{filepath.Join(details, o.path), o.content})
	}
	var errs []error
	for _, o := range outputs {
		errs = append(errs, o.writeFile())
	}
	return errors.Join(errs...)
}

// DetailFiles returns the names of the files that WriteFiles writes to the directory details.
func (b *Benchmarks) DetailFiles() []string {
	var names []string
	for _, o := range b.detailOutputs() {
		names = append(names, o.path)
	}
	return names
}

// detailOutputs returns the tables and charts. Their paths are names of files.
func (b *Benchmarks) detailOutputs() []output {
	outputs := []output{{"competitors.md", b.templateFunc("competitors.md.tmpl")}}
	if len(b.Loads) > 0 {
		outputs = append(outputs, output{"load.md", b.templateFunc("load.md.tmpl")})
	}
	if b.Calibration != nil {
		outputs = append(outputs, output{"calibration.md", b.templateFunc("calibration.md.tmpl")})
	}
	if b.Decisions != nil {
		outputs = append(outputs, output{"decisions.md", b.templateFunc("decisions.md.tmpl")})
	}
	return outputs
}

// output is a file of the report.
type output struct {
	path    string
	content func() ([]byte, error)
}

func (o *output) writeFile() error {
	content, err := o.content()
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return os.WriteFile(o.path, content, 0o644) //nolint:gosec // documentation is readable by everyone
}

// templateFunc returns a function that executes a template.
func (b *Benchmarks) templateFunc(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		var text bytes.Buffer
		err := templates.ExecuteTemplate(&text, name, b)
		return text.Bytes(), err
	}
}

// relativePath returns the path of a directory relative to the directory of a
// page, with slashes.
func relativePath(page, directory string) (string, error) {
	from, err := filepath.Abs(filepath.Dir(page))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(directory)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return filepath.ToSlash(relative), err
}
