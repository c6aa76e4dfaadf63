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

// comparedNumbers are the numbers that flags of compare give.
type comparedNumbers struct {
	control    string
	treatments []string
}

func (p *program) compareCommand() *cobra.Command {
	var asJSON bool
	var past string
	var numbers comparedNumbers
	cmd := newCommand("compare", noArgs, func(cmd *cobra.Command, _ []string) error {
		hasControl, hasTreatment := numbers.control != "", len(numbers.treatments) > 0
		if !hasControl && !hasTreatment {
			if err := refuseLineFlags(cmd.Flags()); err != nil {
				return err
			}
			return p.compareLines(cmd.Context())
		}
		if !hasControl || !hasTreatment {
			return usageError{errors.New("compare: --control and at least one --treatment are required")}
		}
		input, err := numbers.parseInput(cmd.Flags())
		if err != nil {
			return err
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
	flags.StringVar(&numbers.control, "control", "",
		"`numbers` of control: converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)")
	flags.StringArrayVar(&numbers.treatments, "treatment", nil,
		"`numbers` of a variation, in the same form; repeat the flag for more variations")
	flags.Int("level", 90, "significance level in `percent`: 80, 90, 95 or 100")
	flags.String("methodology", "frequentist", "`name` of the methodology: frequentist or bayesian")
	flags.Float64("mde", 20, "minimum detectable effect in `percent` of control: 1 to 100")
	flags.StringVar(&past, "past", "",
		"CSV `file` of past tests, as for lifthouse opinion, which say how large true effects are; -: standard input")
	flags.BoolVar(&asJSON, "json", false, "print JSON in place of a table")
	completeFlag(cmd, "methodology", "frequentist", "bayesian")
	completeFlag(cmd, "level", "80", "90", "95", "100")
	return cmd
}

// refuseLineFlags returns an error if a flag is given whose value a line of standard input has.
func refuseLineFlags(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if field, is := fieldOfFlag[f.Name]; is && err == nil {
			err = usageError{fmt.Errorf("compare: --%s requires --control and --treatment; "+
				"a line of standard input has its own %s", f.Name, field)}
		}
	})
	return err
}

// parseInput parses the flags in the form of the JSON input. An error names the flag.
func (n *comparedNumbers) parseInput(flags *pflag.FlagSet) (*calculator.Input, error) {
	metric, variations, err := n.readVariations()
	if err != nil {
		return nil, err
	}
	given := map[string]any{"metric": metric, "variations": variations}
	flags.Visit(func(f *pflag.Flag) {
		if field, is := fieldOfFlag[f.Name]; is && f.Name != "past" {
			given[field] = f.Value.String() // of the name of a methodology
			if text := []byte(f.Value.String()); json.Valid(text) {
				given[field] = json.RawMessage(text)
			}
		}
	})
	line, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	input, err := calculator.ParseInput(line)
	if invalid, is := errors.AsType[*query.InvalidError](err); is {
		return nil, usageError{fmt.Errorf("compare: %s", nameFlags(invalid.Faults, flags).Join("; "))}
	}
	return input, nil
}

// readVariations returns the metric of the numbers, and the numbers of each variation, control first.
func (n *comparedNumbers) readVariations() (metric calculator.Metric, variations []map[string]any, err error) {
	for i, text := range append([]string{n.control}, n.treatments...) {
		of, sums, err := calculator.ReadSums(text)
		switch {
		case i == 0 && err != nil:
			return "", nil, usageError{fmt.Errorf("compare: --control %w", err)}
		case i == 0:
			metric = of
		case err != nil:
			return "", nil, usageError{fmt.Errorf("compare: --treatment %w", err)}
		case metric != of:
			return "", nil, usageError{fmt.Errorf("compare: --treatment %s: must have the form of --control %s", text,
				n.control)}
		}
		variations = append(variations, sums)
	}
	return metric, variations, nil
}

// nameFlags returns faults of fields with the flags in which their values were given.
func nameFlags(list faults.List, flags *pflag.FlagSet) faults.List {
	var found faults.List
	for _, fault := range list {
		for flag, field := range fieldOfFlag {
			if fault.Name == field {
				fault.Name = fmt.Sprintf("--%s %q", flag, flags.Lookup(flag).Value)
				fault.WithoutValue = true
			}
		}
		found = append(found, fault)
	}
	return found
}

// compareLines answers the lines of standard input one by one.
func (p *program) compareLines(ctx context.Context) error {
	if terminal.Is(p.stdin) {
		p.printDiagnostic("type an input as one line of JSON; Ctrl-D ends; 'lifthouse compare --help' describes the " +
			"format")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := readLines(ctx, p.stdin)
	rejected := false
	for number := int64(1); ; number++ {
		var line inputLine
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line = <-lines:
		}
		if len(bytes.TrimSpace(line.text)) > 0 {
			isValid, err := p.answerLine(line.text, number)
			if err != nil {
				return err
			}
			rejected = rejected || !isValid
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

// inputLine is a line of standard input.
type inputLine struct {
	text []byte
	err  error // that ended the input
}

// readLines sends the lines of an input, the last with the error that ended it. A goroutine reads them, because a read
// from a terminal does not end with the context.
func readLines(ctx context.Context, input io.Reader) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		for reader := bufio.NewReader(input); ; {
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
	return lines
}

// answerLine answers a line as JSON, and reports whether it is valid.
func (p *program) answerLine(text []byte, number int64) (isValid bool, err error) {
	input, err := calculator.ParseInput(text)
	if invalid, is := errors.AsType[*query.InvalidError](err); is {
		p.printDiagnostic("line %d: %v", number, invalid)
		return false, p.writeJSON(calculator.RefuseLine(number, invalid))
	}
	return true, p.answerInput(input, number, true)
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
