package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/engine/render"

	"github.com/spf13/cobra"
)

const compareHelp = `Compare is the calculator: it says which variation is better from counts, or from means and variances,
that you have already. It needs no store.

A quick question goes in flags and is answered by a table. Rates are converted/visitors, means are
visitors:mean:variance, where the variance is that of one visitor's value (the standard deviation squared):

  lifthouse compare --control 500/10000 --treatment 560/10000 --treatment 545/10000
  lifthouse compare --control 10000:4.2:81 --treatment 10000:4.6:90 --level 95 --nonnegative

Without these flags questions are read from standard input, one JSON object a line. Each gets one line in
answer, with the same blocks as the results of a campaign; on a terminal it gets a table, unless --json is given:

  echo '{"metric":"binary","variations":[{"n":10000,"converted":500},{"n":10000,"converted":560}]}' | lifthouse compare

  metric             binary (n and converted) or mean (n, mean and variance)
  variations         2 to 21 of {"id", "control", "share", "n", "converted"} or {…, "n", "mean", "variance"};
                     the first is control unless another is marked; ids are 0, 1, 2 … unless given;
                     shares are relative to each other (50 and 50, or 1 and 1), for all variations or none
  significanceLevel  80, 90, 95 or 100 per cent; else 90
  methodology        frequentist or bayesian; else frequentist
  power              60 to 99 per cent; else 80
  mde                the lift that must not be missed, 1 to 100 per cent of control; else 20
  plannedVisitors    the sample that was planned, at which the always-valid answer is sharpest; else 5000
  nonnegative        true where no visitor's value is below zero; else false

Percentages are in per cent in questions (20 is 20 %) and in tables; in JSON answers they are fractions (0.2), as
in the results of a campaign, but for significanceLevel and share, which are echoed.

A line that is wrong in anything gets an answer {"line", "error", "errors": [{"field", "value", "detail"}]} and a
message; the others are answered all the same, and the exit status is 3. Wrong flags give exit status 2.`

// compareFlags are a quick question as it was typed.
type compareFlags struct {
	control, methodology string
	treatments, shares   []string
	level, power         int
	mde                  float64
	planned              int64
	nonnegative, json    bool
}

func (p *program) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare variations by their counts or means, without a store",
		Long:  compareHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.control != "" || len(f.treatments) > 0 {
				return p.compareFlags(&f, cmd.Flags().Changed)
			}
			if err := f.needInput(cmd.Flags().Changed); err != nil {
				return err
			}
			return p.compareLines(cmd.Context(), f.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.control, "control", "", "control's `numbers`: converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)")
	flags.StringArrayVar(&f.treatments, "treatment", nil, "a variation's `numbers`, in the same form; repeat it for more variations")
	flags.StringSliceVar(&f.shares, "share", nil, "`shares` of the traffic, control's first: 50,50 or 1,1")
	flags.IntVar(&f.level, "level", 90, "significance level in `percent`: 80, 90, 95 or 100")
	flags.StringVar(&f.methodology, "methodology", "frequentist", "`school`: frequentist or bayesian")
	flags.IntVar(&f.power, "power", 80, "chance to find the smallest lift of interest in `percent`: 60 to 99")
	flags.Float64Var(&f.mde, "mde", 20, "smallest lift of interest in `percent` of control: 1 to 100")
	flags.Int64Var(&f.planned, "planned", 0, "`visitors` that were planned, for the always-valid answer (default 5000)")
	flags.BoolVar(&f.nonnegative, "nonnegative", false, "no visitor's value is below zero")
	flags.BoolVar(&f.json, "json", false, "answer in JSON lines wherever the answer goes")
	return cmd
}

// fieldOfFlag names the field of a question that a flag sets.
var fieldOfFlag = map[string]string{
	"level": "significanceLevel", "methodology": "methodology", "power": "power",
	"mde": "mde", "planned": "plannedVisitors", "nonnegative": "nonnegative", "share": "share",
}

// needQuestion refuses flags that belong to a question where none is asked.
func (f *compareFlags) needInput(changed func(name string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(fieldOfFlag)) {
		if changed(name) {
			return usageError{fmt.Errorf("compare: --%s goes with --control and --treatment; a line of standard input brings its own %s", name, fieldOfFlag[name])}
		}
	}
	return nil
}

// compareFlags answers a question in flags.
func (p *program) compareFlags(f *compareFlags, changed func(name string) bool) error {
	line, err := f.line(changed)
	if err != nil {
		return usageError{fmt.Errorf("compare: %w", err)}
	}
	input, err := engine.ParseCalculatorInput(line)
	var invalid *engine.InvalidError
	if errors.As(err, &invalid) {
		faults := make([]string, len(invalid.Faults))
		for i, fault := range invalid.Faults {
			faults[i] = f.flag(fault.Name) + ": " + fault.Detail
		}
		return usageError{fmt.Errorf("compare: %s", strings.Join(faults, "; "))}
	}
	answer := input.Answer()
	answer.Line = 1
	if f.json {
		return p.writeJSON(answer)
	}
	_, err = io.WriteString(p.out, render.Comparison(input, answer, p.screen()))
	return err
}

// line writes the flags as the line of JSON that asks the same.
func (f *compareFlags) line(changed func(name string) bool) ([]byte, error) {
	if f.control == "" || len(f.treatments) == 0 {
		return nil, errors.New("want --control once and --treatment at least once")
	}
	if changed("share") && len(f.shares) != 1+len(f.treatments) {
		return nil, fmt.Errorf("--share: want %d, control's and one for each --treatment, have %d", 1+len(f.treatments), len(f.shares))
	}
	metric, control, err := readSample(f.control)
	if err != nil {
		return nil, fmt.Errorf("--control %w", err)
	}
	variations := []map[string]any{control}
	for _, text := range f.treatments {
		other, treatment, err := readSample(text)
		if err != nil {
			return nil, fmt.Errorf("--treatment %w", err)
		}
		if other != metric {
			return nil, fmt.Errorf("--treatment %s: want the form of --control %s", text, f.control)
		}
		variations = append(variations, treatment)
	}
	for i, share := range f.shares {
		if !jsonNumber.MatchString(share) {
			return nil, fmt.Errorf("--share %s: %q is no number", strings.Join(f.shares, ","), share)
		}
		variations[i]["share"] = json.Number(share)
	}
	input := map[string]any{"metric": metric, "variations": variations}
	given := map[string]any{
		"level": f.level, "methodology": f.methodology, "power": f.power,
		"mde": f.mde, "planned": f.planned, "nonnegative": f.nonnegative,
	}
	for name, value := range given {
		if changed(name) {
			input[fieldOfFlag[name]] = value
		}
	}
	return json.Marshal(input)
}

var (
	rateForm = regexp.MustCompile(`^([^/:]+)/([^/:]+)$`)
	meanForm = regexp.MustCompile(`^([^/:]+):([^/:]+):([^/:]+)$`)
	// jsonNumber is what a line of JSON may hold.
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)
)

// readSample reads one variation's numbers from a flag.
func readSample(text string) (engine.CalculatorMetric, map[string]any, error) {
	metric, names := engine.MetricBinary, []string{"converted", "n"}
	parts := rateForm.FindStringSubmatch(text)
	if parts == nil {
		metric, names = engine.MetricMean, []string{"n", "mean", "variance"}
		parts = meanForm.FindStringSubmatch(text)
	}
	if parts == nil {
		return "", nil, fmt.Errorf("%s: want converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)", text)
	}
	fields := map[string]any{}
	for i, name := range names {
		number := strings.TrimSpace(parts[1+i])
		if !jsonNumber.MatchString(number) {
			return "", nil, fmt.Errorf("%s: %q is no number; want digits only, as in 500/10000 or 10000:4.2:81", text, number)
		}
		fields[name] = json.Number(number)
	}
	return metric, fields, nil
}

var variationPath = regexp.MustCompile(`^variations\[(\d+)\]\.(\w+)$`)

// flag names the flag that set a field of the question.
func (f *compareFlags) flag(field string) string {
	for flag, of := range fieldOfFlag {
		if of == field {
			return "--" + flag
		}
	}
	path := variationPath.FindStringSubmatch(field)
	if path == nil {
		return "--treatment"
	}
	i, _ := strconv.Atoi(path[1])
	switch name := path[2]; {
	case name == "share":
		return "--share"
	case i == 0:
		return "--control " + f.control + ": " + name
	default:
		return "--treatment " + f.treatments[i-1] + ": " + name
	}
}

// questionLine is one line of input, with its number.
type inputLine struct {
	number int64
	text   []byte
	err    error
}

// compareLines answers the questions of standard input, one by one.
func (p *program) compareLines(ctx context.Context, forceJSON bool) error {
	if isTerminal(p.in) {
		p.complain("type a question as a line of JSON; Ctrl-D ends, and 'lifthouse compare --help' has the form")
	}
	inJSON := forceJSON || !isTerminal(p.out)
	lines := make(chan inputLine)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go readInputs(ctx, p.in, lines)
	rejected := false
	for {
		var line inputLine
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line = <-lines:
		}
		switch {
		case errors.Is(line.err, io.EOF) && rejected:
			return &exitError{exitRejected}
		case errors.Is(line.err, io.EOF):
			return nil
		case line.err != nil:
			return line.err
		}
		answered, err := p.answerLine(line, inJSON)
		if err != nil {
			return err
		}
		rejected = rejected || !answered
	}
}

// answerLine answers one line, and is false where it holds no question that
// can be answered.
func (p *program) answerLine(line inputLine, inJSON bool) (answered bool, err error) {
	input, err := engine.ParseCalculatorInput(line.text)
	var invalid *engine.InvalidError
	if errors.As(err, &invalid) {
		p.complain("line %d: %v", line.number, invalid)
		if inJSON {
			return false, p.writeJSON(engine.RefuseInput(line.number, invalid))
		}
		return false, nil
	}
	answer := input.Answer()
	answer.Line = line.number
	if inJSON {
		return true, p.writeJSON(answer)
	}
	_, err = fmt.Fprintf(p.out, "line %d\n\n%s\n", line.number, render.Comparison(input, answer, p.screen()))
	return true, err
}

func (p *program) writeJSON(body any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(body)
}

// readQuestions sends the lines that are not blank, and last the error that
// ended them, until the context ends.
func readInputs(ctx context.Context, in io.Reader, lines chan<- inputLine) {
	reader := bufio.NewReaderSize(in, 64<<10)
	for number := int64(1); ; number++ {
		text, err := readLine(reader)
		send := func(line inputLine) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		}
		if len(bytes.TrimSpace(text)) > 0 && !send(inputLine{number: number, text: text}) {
			return
		}
		if err != nil {
			send(inputLine{number: number, err: err})
			return
		}
	}
}

// readLine reads up to a line's end and leaves that out. Of a line that is too
// long it keeps just enough to tell.
func readLine(reader *bufio.Reader) ([]byte, error) {
	const enough = engine.MaxCalculatorInput + 2
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part[:min(len(part), enough-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}
