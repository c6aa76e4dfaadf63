package main

import (
	"fmt"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/opinion"

	"github.com/spf13/cobra"
)

// opinionOptions are the flags of opinion.
type opinionOptions struct {
	asJSON, asCSV bool
	mde           float64 // in percent
}

func (p *program) opinionCommand() *cobra.Command {
	var o opinionOptions
	cmd := newCommand("opinion", oneArg, func(_ *cobra.Command, args []string) error {
		return p.judgeTests(args[0], &o)
	})
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.asCSV, "csv", false, "print CSV, a row per treatment")
	bounds.Var(cmd.Flags(), &o.mde, "mde", 20, 1, 100, "minimum effect of the tests in percent")
	return cmd
}

// judgeTests prints what a table of past tests is worth.
func (p *program) judgeTests(file string, o *opinionOptions) error {
	table, err := p.readTable(file)
	if err != nil {
		return err
	}
	found := opinion.New(table, o.mde/100)
	switch {
	case o.asJSON:
		return p.writeJSON(found)
	case o.asCSV:
		return found.WriteCSV(p.stdout)
	}
	for _, sentence := range append([]string{found.Text}, found.Sentences...) {
		p.printLine("%s", sentence)
	}
	rows := [][]any{{"TEST", "TREATMENT", "SHIPPED", "JUDGEMENT"}}
	for _, test := range found.Tests {
		for i := range test.Treatments {
			t := &test.Treatments[i]
			shipped := ""
			if t.Shipped {
				shipped = "yes"
			}
			rows = append(rows, []any{test.Name, t.Name, shipped, t.Text})
		}
	}
	return p.printTable(rows)
}

// readTable reads a table of past tests; -: standard input.
func (p *program) readTable(name string) (*opinion.Table, error) {
	file, err := p.openInput(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	table, err := opinion.ReadTable(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, note := range table.Notes {
		_, _ = fmt.Fprintf(p.stderr, "%s: %s\n", name, note)
	}
	return table, nil
}
