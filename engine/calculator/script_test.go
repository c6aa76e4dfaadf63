package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/cockroachdb/datadriven"

	"lifthouse/engine/query"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata/scripts. -rewrite records their outputs. Each line of an input is an input
// of the calculator, and a template with repeat, and with weekly OPTIONS SUMS…, looks at each week of which the last is
// today's. The commands are:
//
//	read      shows the inputs with their defaults, or the faults
//	conclude  shows the conclusion, and the variations that are conclusive today with the look
func TestScripts(t *testing.T) {
	functions := template.FuncMap{"weekly": weekly, "rates": rateSums, "unknown": unknownFields}
	scripts.RunLines(t, func(t *testing.T, d *datadriven.TestData, line string) string {
		t.Helper()
		return said(t, d.Cmd, scripts.Expand(t, line, functions))
	})
}

func said(t *testing.T, command, line string) string {
	t.Helper()
	input, err := ParseInput([]byte(line))
	var invalid *query.InvalidError
	switch {
	case errors.As(err, &invalid):
		var faults []string
		for i, f := range invalid.Faults {
			if i < 8 || i == len(invalid.Faults)-1 {
				faults = append(faults, fmt.Sprintf("%s %q: %s", f.Name, f.Value, f.Detail))
			}
		}
		return strings.Join(faults, "\n  ")
	case err != nil:
		t.Fatalf("%s: %v", line, err)
	case command == "read":
		return string(must.Get(json.Marshal(input))(t))
	}
	a := input.ComputeAnswer()
	c := a.Conclusion
	text := string(c.Status) + ": " + c.Text
	if c.VariationID != nil {
		text += fmt.Sprintf(" [variation %d, look %d]", *c.VariationID, *c.Look)
	}
	for _, v := range a.Variations {
		if v.Comparison != nil && *v.Comparison.Conclusive {
			text += fmt.Sprintf(" [variation %d is conclusive today]", v.ID)
		}
		if v.Comparison != nil && v.Comparison.Sequential != nil {
			text += fmt.Sprintf(" [variation %d: look %d]", v.ID, *v.Comparison.Sequential.Look)
		}
	}
	return text
}

// unknownFields returns a number of fields that an input does not have.
func unknownFields(n int) (fields string) {
	for i := range n {
		fields += fmt.Sprintf(`,"x%d":0`, i)
	}
	return fields
}
