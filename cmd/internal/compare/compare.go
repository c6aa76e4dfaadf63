// Package compare reads the inputs of the calculator from flags and from JSON lines.
package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/calculator"
)

// Flags hold one input of the calculator, given as flags.
type Flags struct {
	Control     string   // numbers of control
	Treatments  []string // numbers of the other variations
	Shares      []string // of the traffic, control first
	Methodology string
	Level       int     // significance level in per cent
	Power       int     // in per cent
	MDE         float64 // minimum detectable effect in per cent of control
	Tau         float64 // time of the first look, which has the numbers above
	Prior       string  // flat, or mean:standard deviation in per cent
	NonNegative bool
}

// fieldOfFlag maps a flag to the field of the JSON input that it sets.
var fieldOfFlag = map[string]string{
	"level": "significanceLevel", "methodology": "methodology", "power": "power",
	"mde": "mde", "tau": "looks", "nonnegative": "nonnegative", "share": "share", "prior": "prior",
}

// CheckAlone returns an error if a flag is set that needs --control.
func (f *Flags) CheckAlone(changed func(name string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(fieldOfFlag)) {
		if changed(name) {
			return fmt.Errorf("--%s requires --control and --treatment; a line of standard input has its own %s", name, fieldOfFlag[name])
		}
	}
	return nil
}

// JSON returns the flags as a line of JSON input.
func (f *Flags) JSON(changed func(name string) bool) ([]byte, error) {
	if f.Control == "" || len(f.Treatments) == 0 {
		return nil, errors.New("--control and at least one --treatment are required")
	}
	if changed("share") && len(f.Shares) != 1+len(f.Treatments) {
		return nil, fmt.Errorf("--share: must have %d values, one for control and one per --treatment; it has %d", 1+len(f.Treatments), len(f.Shares))
	}
	metric, control, err := readSample(f.Control)
	if err != nil {
		return nil, fmt.Errorf("--control %w", err)
	}
	variations, look := []map[string]any{control}, []map[string]any{maps.Clone(control)}
	for _, text := range f.Treatments {
		other, treatment, err := readSample(text)
		if err != nil {
			return nil, fmt.Errorf("--treatment %w", err)
		}
		if other != metric {
			return nil, fmt.Errorf("--treatment %s: must have the form of --control %s", text, f.Control)
		}
		variations, look = append(variations, treatment), append(look, maps.Clone(treatment))
	}
	for i, share := range f.Shares {
		if !jsonNumber.MatchString(share) {
			return nil, fmt.Errorf("--share %s: %q is not a number", strings.Join(f.Shares, ","), share)
		}
		variations[i]["share"] = json.Number(share)
	}
	input := map[string]any{"metric": metric, "variations": variations}
	given := map[string]any{
		"level": f.Level, "methodology": f.Methodology, "power": f.Power,
		"mde": encodableNumber(f.MDE), "tau": []any{map[string]any{"tau": encodableNumber(f.Tau), "variations": look}}, "nonnegative": f.NonNegative,
	}
	if changed("prior") {
		if given["prior"], err = readPrior(f.Prior); err != nil {
			return nil, err
		}
	}
	for name, value := range given {
		if changed(name) {
			input[fieldOfFlag[name]] = value
		}
	}
	return json.Marshal(input)
}

// encodableNumber returns a number that JSON can encode. NaN and infinities become text, which
// the calculator rejects.
func encodableNumber(number float64) any {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return strconv.FormatFloat(number, 'g', -1, 64)
	}
	return number
}

// readPrior returns the prior in the form of the JSON input.
func readPrior(text string) (any, error) {
	mean, deviation, isNormal := strings.Cut(text, ":")
	switch {
	case text == "flat":
		return text, nil
	case !isNormal || !jsonNumber.MatchString(mean) || !jsonNumber.MatchString(deviation):
		return nil, fmt.Errorf("--prior %s: must be flat, or mean:deviation in per cent (0:5)", text)
	}
	return map[string]any{"mean": json.Number(mean), "standardDeviation": json.Number(deviation)}, nil
}

var (
	rateForm = regexp.MustCompile(`^([^/:]+)/([^/:]+)$`)
	meanForm = regexp.MustCompile(`^([^/:]+):([^/:]+):([^/:]+)$`)
	// jsonNumber matches a number in JSON.
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)
)

// readSample parses the numbers of a variation.
func readSample(text string) (calculator.Metric, map[string]any, error) {
	metric, names := calculator.MetricBinary, []string{"converted", "n"}
	parts := rateForm.FindStringSubmatch(text)
	if parts == nil {
		metric, names = calculator.MetricMean, []string{"n", "mean", "variance"}
		parts = meanForm.FindStringSubmatch(text)
	}
	if parts == nil {
		return "", nil, fmt.Errorf("%s: must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)", text)
	}
	fields := map[string]any{}
	for i, name := range names {
		number := strings.TrimSpace(parts[1+i])
		if !jsonNumber.MatchString(number) {
			return "", nil, fmt.Errorf("%s: %q is not a number; use digits only, as in 500/10000 or 10000:4.2:81", text, number)
		}
		fields[name] = json.Number(number)
	}
	return metric, fields, nil
}

var variationPath = regexp.MustCompile(`^(?:looks\[0\]\.)?variations\[(\d+)\]\.(\w+)$`)

// FlagOf returns the flag that set a field of the JSON input, with its value. The look has
// the same numbers as the variations.
func (f *Flags) FlagOf(field, value string) string {
	field = strings.TrimSuffix(field, "[0].tau")
	for flag, of := range fieldOfFlag {
		switch {
		case of != field:
		case value == "" || strings.HasPrefix(value, "{"): // the value is not the text of the flag
			return "--" + flag
		default:
			return fmt.Sprintf("--%s %q", flag, value)
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
		return "--control " + f.Control + ": " + name
	default:
		return "--treatment " + f.Treatments[i-1] + ": " + name
	}
}

// Line is a line of input.
type Line struct {
	Number int64 // from 1
	Text   []byte
	Err    error // error that ended the input
}

// ReadLines sends the lines that are not blank and, last, the error that ended the
// input. It stops when the context ends.
func ReadLines(ctx context.Context, input io.Reader, lines chan<- Line) {
	reader := bufio.NewReaderSize(input, 64<<10)
	for number := int64(1); ; number++ {
		text, err := readLine(reader)
		send := func(line Line) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		}
		if len(bytes.TrimSpace(text)) > 0 && !send(Line{Number: number, Text: text}) {
			return
		}
		if err != nil {
			send(Line{Number: number, Err: err})
			return
		}
	}
}

// readLine reads a line without its end. It cuts a line that is too long, but
// keeps enough for the parser to reject it.
func readLine(reader *bufio.Reader) ([]byte, error) {
	const enough = calculator.MaxInput + 2
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part[:min(len(part), enough-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}
