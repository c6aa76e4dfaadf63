// Package scripts runs the scripts of a package: files of commands, each with its recorded output.
package scripts

import (
	"strings"
	"testing"
	"text/template"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema/schematest/must"
)

// Run runs each file of testdata/scripts as a test. open returns what runs the commands of a file. The flag -rewrite
// records the outputs.
func Run(t *testing.T, open func(t *testing.T) func(t *testing.T, d *datadriven.TestData) string) {
	t.Helper()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		run := open(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return run(t, d)
		})
	})
}

// RunLines is Run for commands that show each line of their input alone.
func RunLines(t *testing.T, show func(t *testing.T, d *datadriven.TestData, line string) string) {
	t.Helper()
	Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				out.WriteString(show(t, d, line) + "\n")
			}
			return out.String()
		}
	})
}

// Expand executes a text as a template. In addition to functions, it has repeat.
func Expand(t *testing.T, text string, functions template.FuncMap) string {
	t.Helper()
	var expanded strings.Builder
	common := template.FuncMap{"repeat": strings.Repeat}
	parsed := must.Get(template.New("").Funcs(common).Funcs(functions).Parse(text))(t)
	must.OK(t, parsed.Execute(&expanded, nil))
	return expanded.String()
}
