package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/calculator"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/schema/faults"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fieldOfFlag maps flags to fields of the JSON input.
var fieldOfFlag = map[string]string{
	"level": "significanceLevel", "methodology": "methodology", "mde": "mde", "past": "past",
}

func (p *program) compareCommand() *cobra.Command {
	var asJSON bool
	var control, past string
	var treatments []string
	cmd := newCommand("compare", noArgs, func(cmd *cobra.Command, _ []string) error {
		if control == "" && len(treatments) == 0 {
			var err error
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if field, is := fieldOfFlag[f.Name]; is && err == nil {
					err = usageError{fmt.Errorf("compare: --%s requires --control and --treatment; "+
						"a line of standard input has its own %s", f.Name, field)}
				}
			})
			if err != nil {
				return err
			}
			return p.compareLines(cmd.Context())
		}
		if control == "" || len(treatments) == 0 {
			return usageError{errors.New("compare: --control and at least one --treatment are required")}
		}
		// The flags in the form of the JSON input. Its first variation is control.
		given := map[string]any{}
		var variations []map[string]any
		for i, text := range append([]string{control}, treatments...) {
			metric, sums, err := calculator.ReadSums(text)
			switch {
			case i == 0 && err != nil:
				return usageError{fmt.Errorf("compare: --control %w", err)}
			case i == 0:
				given["metric"] = metric
			case err != nil:
				return usageError{fmt.Errorf("compare: --treatment %w", err)}
			case given["metric"] != metric:
				return usageError{fmt.Errorf("compare: --treatment %s: must have the form of --control %s", text,
					control)}
			}
			variations = append(variations, sums)
		}
		given["variations"] = variations
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if field, is := fieldOfFlag[f.Name]; is && f.Name != "past" {
				given[field] = f.Value.String() // of the name of a methodology
				if text := []byte(f.Value.String()); json.Valid(text) {
					given[field] = json.RawMessage(text)
				}
			}
		})
		line, err := json.Marshal(given)
		if err != nil {
			return err
		}
		input, err := calculator.ParseInput(line)
		if invalid, is := errors.AsType[*query.InvalidError](err); is {
			var found faults.List
			for _, fault := range invalid.Faults {
				for flag, field := range fieldOfFlag {
					if fault.Name == field {
						value := cmd.Flags().Lookup(flag).Value
						fault.Name, fault.WithoutValue = fmt.Sprintf("--%s %q", flag, value), true
					}
				}
				found = append(found, fault)
			}
			return usageError{fmt.Errorf("compare: %s", found.Join("; "))}
		}
		if past != "" {
			table, err := p.readTable(past)
			if err != nil {
				return err
			}
			input.Past = table.Past()
		}
		return p.answerInput(input, 1, asJSON)
	})
	flags := cmd.Flags()
	flags.StringVar(&control, "control", "",
		"`numbers` of control: converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)")
	flags.StringArrayVar(&treatments, "treatment", nil,
		"`numbers` of a variation, in the same form; repeat the flag for more variations")
	flags.Int("level", 90, "significance level in `percent`: 80, 90, 95 or 100")
	flags.String("methodology", "frequentist", "`name` of the methodology: frequentist or bayesian")
	flags.Float64("mde", 20, "minimum detectable effect in `percent` of control: 1 to 100")
	flags.StringVar(&past, "past", "",
		"CSV `file` of past tests, as for lifthouse audit, which say how large true effects are; -: standard input")
	flags.BoolVar(&asJSON, "json", false, "print JSON in place of a table")
	completeFlag(cmd, "methodology", "frequentist", "bayesian")
	completeFlag(cmd, "level", "80", "90", "95", "100")
	return cmd
}

// compareLines answers the lines of standard input one by one. A goroutine reads them, because a read from a terminal
// does not end with the context.
func (p *program) compareLines(ctx context.Context) error {
	if terminal.Is(p.stdin) {
		p.printDiagnostic("type an input as one line of JSON; Ctrl-D ends; 'lifthouse compare --help' describes the " +
			"format")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type inputLine struct {
		text []byte
		err  error // that ended the input
	}
	lines := make(chan inputLine)
	go func() {
		for reader := bufio.NewReader(p.stdin); ; {
			text, err := reader.ReadBytes('\n')
			select {
			case lines <- inputLine{bytes.TrimSuffix(text, []byte("\n")), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	rejected := false
	for number := int64(1); ; number++ {
		var line inputLine
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line = <-lines:
		}
		if len(bytes.TrimSpace(line.text)) > 0 {
			input, err := calculator.ParseInput(line.text)
			if invalid, is := errors.AsType[*query.InvalidError](err); is {
				p.printDiagnostic("line %d: %v", number, invalid)
				rejected, err = true, p.writeJSON(calculator.RefuseLine(number, invalid))
			} else {
				err = p.answerInput(input, number, true)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case errors.Is(line.err, io.EOF) && rejected:
			return &exitError{exitRejected}
		case errors.Is(line.err, io.EOF):
			return nil
		case line.err != nil:
			return line.err
		}
	}
}

// answerInput prints the comparison of an input as JSON or as a table.
func (p *program) answerInput(input *calculator.Input, line int64, asJSON bool) error {
	answer := input.ComputeAnswer()
	answer.Line = line
	if asJSON {
		return p.writeJSON(answer)
	}
	_, err := io.WriteString(p.stdout, render.Comparison(answer, terminal.ScreenOf(p.stdout, p.getenv)))
	return err
}

func (p *program) writeJSON(body any) error {
	text, err := render.JSON(body)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
