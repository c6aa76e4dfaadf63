package main

import (
	"fmt"

	"lifthouse/engine/audit"
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
	rows := [][]any{{"TEST", "TREATMENT", "WINNER", "JUDGEMENT"}}
	for _, test := range found.Tests {
		for i := range test.Treatments {
			t := &test.Treatments[i]
			rows = append(rows, []any{test.Name, t.Name, map[bool]string{true: "yes"}[t.Winner], t.Text})
		}
	}
	return p.printTable(rows)
}

// readTable reads a table of past tests; -: standard input.
func (p *program) readTable(name string) (*audit.Table, error) {
	file, err := p.openInput(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	table, err := audit.ReadTable(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, note := range table.Notes {
		_, _ = fmt.Fprintf(p.stderr, "%s: %s\n", name, note)
	}
	return table, nil
}
