// Package report writes the benchmark report: one page with summaries, and pages
// with the full tables.
package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/competitors"
	"lifthouse/loadgen/measure"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
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
	Import      string                 // text about an import into a running server; empty: not measured

	Details string // path from the page to the directory with the tables; set by WriteFiles
}

// Load is a load test with a ladder.
type Load struct {
	Title  string
	Result bench.Result
}

// loads are the titles of the load tests, by the mix of their requests.
var loads = []struct{ mix, title string }{
	{"cached", "Dashboards that poll"}, {"uncached", "Small campaigns, uncached"}, {"analyst", "Analysts"},
}

// ReadResults reads the results of other commands from a directory. The results of standard and competitors are
// required. The error lists all problems.
func ReadResults(directory string) (*Benchmarks, error) {
	b := &Benchmarks{Date: time.Now().UTC().Format(time.DateOnly), Machine: measure.ThisMachine()}
	var errs []error
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(directory, name+".json"))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s.json, the --json file of another command: %w", name, err))
		}
	}
	exists := func(file string) bool {
		_, err := os.Stat(filepath.Join(directory, file))
		return err == nil
	}
	read("standard", &b.Insertion)
	read("competitors", &b.Competitors)
	if exists("growth.json") {
		read("growth", &b.Growth)
	}
	for _, l := range loads {
		if exists(l.mix + ".json") {
			load := Load{Title: l.title}
			read(l.mix, &load.Result)
			b.Loads = append(b.Loads, load)
		}
	}
	if exists("calibration.json") {
		read("calibration", &b.Calibration)
	}
	if exists("decisions.json") {
		read("decisions", &b.Decisions)
	}
	if exists("import.txt") {
		text, err := os.ReadFile(filepath.Join(directory, "import.txt"))
		b.Import = strings.TrimRight(string(text), "\n")
		errs = append(errs, err)
	}
	return b, errors.Join(errs...)
}

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
	"title":    func(measure string) string { return strings.ToUpper(measure[:1]) + measure[1:] },
}).ParseFS(files, "*.md.tmpl"))

// formatUnlessZero formats a figure. A figure of 0 is unknown and becomes a
// dash.
func formatUnlessZero(format string, figure float64) string {
	if figure == 0 {
		return "–"
	}
	return fmt.Sprintf(format, figure)
}

// formatCount formats an integer with commas between groups of three digits.
func formatCount(n any) string { return message.NewPrinter(language.English).Sprint(n) }

// WriteTables writes the tables of a command's result: competitors, growth, calibration or decisions.
func (b *Benchmarks) WriteTables(w io.Writer, command string) error {
	return templates.ExecuteTemplate(w, command+" tables", b)
}

// WriteFiles writes the page, and the tables to the directory details. It
// creates the directory if it does not exist.
func (b *Benchmarks) WriteFiles(page, details string) error {
	if err := os.MkdirAll(details, 0o755); err != nil {
		return err
	}
	relative, err := filepath.Rel(filepath.Dir(page), details)
	if err != nil {
		return fmt.Errorf("%w; set both paths relative to the current directory, or both absolute", err)
	}
	b.Details = filepath.ToSlash(relative)
	errs := []error{b.writeFile(page, "page"), b.writeFile(filepath.Join(details, "competitors.md"), "competitors")}
	if len(b.Loads) > 0 {
		errs = append(errs, b.writeFile(filepath.Join(details, "load.md"), "load"))
	}
	if b.Calibration != nil {
		errs = append(errs, b.writeFile(filepath.Join(details, "calibration.md"), "calibration"))
	}
	if b.Decisions != nil {
		errs = append(errs, b.writeFile(filepath.Join(details, "decisions.md"), "decisions"))
	}
	return errors.Join(errs...)
}

// writeFile executes the template of the name and writes the result to a file.
func (b *Benchmarks) writeFile(path, name string) error {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name+".md.tmpl", b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644) //nolint:gosec // documentation is readable by everyone
}
