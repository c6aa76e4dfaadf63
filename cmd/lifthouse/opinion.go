package main

import (
	"cmp"

	"lifthouse/engine/audit"
	"lifthouse/engine/wording"
)

// printAudit prints a second opinion on the tests of a file.
func (p *program) printAudit(name string, mde float64, asJSON, asCSV bool) error {
	table, err := p.readTable(name)
	if err != nil {
		return err
	}
	found := audit.New(table, mde)
	switch {
	case asJSON:
		return p.writeJSON(found)
	case asCSV:
		return found.WriteCSV(p.stdout)
	}
	for _, sentence := range append([]string{found.Text}, found.Sentences...) {
		p.printLine("%s", sentence)
	}
	rows := [][]any{{
		"TEST", "TREATMENT", "WINNER", "OBSERVED", "95 % INTERVAL", "P", "CONCLUDES", "EXPECTED", "90 % INTERVAL",
	}}
	yes := map[bool]string{true: "yes"}
	for i := range found.Tests {
		for k := range found.Tests[i].Treatments {
			t := &found.Tests[i].Treatments[k]
			rows = append(rows, append([]any{found.Tests[i].Name, t.Name, yes[t.Winner]}, cellsOf(t)...))
		}
	}
	return p.printTable(rows)
}

// cellsOf returns the numbers of a treatment as text, or else why there are none.
func cellsOf(t *audit.JudgedTreatment) []any {
	inPercent := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	cells := []any{"", wording.RangeInWords(t.Lift.Interval, inPercent), "", map[bool]string{true: "yes"}[t.Concludes]}
	if t.Lift.Value != nil {
		cells[0] = inPercent(*t.Lift.Value)
	}
	if t.PValue != nil {
		cells[2] = wording.FormatPValue(*t.PValue)
	}
	if e := t.Expected; e != nil {
		return append(cells, inPercent(e.Value), inPercent(e.Interval[0])+" to "+inPercent(e.Interval[1]))
	}
	return append(cells, wording.ExplainReason(cmp.Or(t.Reason, t.Lift.Reason)))
}
