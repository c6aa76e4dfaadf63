package calculator

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lifthouse/engine/query"
	"lifthouse/engine/worth"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// maxPastTests is the maximum number of tests of a file: a fit of a thousand takes a tenth of a second.
const maxPastTests = 1000

// ReadPastTests reads a CSV file of past tests. Its first line has the names of the columns: name, then control and one
// column per treatment with numbers as compare takes them, and shipped: yes, no, or the number of the treatment. The
// error has all faults, with their lines.
func ReadPastTests(r io.Reader) ([]worth.PastTest, error) {
	table := csv.NewReader(r)
	table.FieldsPerRecord, table.TrimLeadingSpace = -1, true
	header, err := table.Read()
	if err != nil {
		return nil, faults.List{{Name: "file", Detail: "must be CSV with a header: name,control,treatment,shipped"}}
	}
	var found faults.Collector
	name, shipped := -1, -1
	var arms []int
	for i, column := range header {
		switch column = strings.ToLower(strings.TrimSpace(column)); column {
		case "name":
			name = i
		case "shipped":
			shipped = i
		default:
			arms = append(arms, i)
		}
	}
	if name < 0 || len(arms) < leastVariations {
		found.Add("header", strings.Join(header, ","), "must have name, control and at least one treatment")
		return nil, found.List
	}
	var tests []worth.PastTest
	for {
		record, err := table.Read()
		line, _ := table.FieldPos(0)
		switch {
		case errors.Is(err, io.EOF):
			if len(tests) == 0 && len(found.List) == 0 {
				found.Add("file", "", "must have at least one test")
			}
			return tests, found.List.Err()
		case err != nil:
			found.Append(faults.Fault{Line: line, Name: "line", Detail: err.Error(), WithoutValue: true})
			return nil, found.List
		case len(tests) == maxPastTests:
			found.Add("file", "", fmt.Sprintf("must have at most %d tests", maxPastTests))
			return nil, found.List
		}
		cell := func(column int) string {
			if column < 0 || column >= len(record) {
				return ""
			}
			return strings.TrimSpace(record[column])
		}
		test := worth.PastTest{Name: cell(name)}
		var texts []string
		for _, column := range arms {
			if text := cell(column); text != "" {
				texts = append(texts, text)
			}
		}
		fault := func(column, value, detail string) {
			found.Append(faults.Fault{Line: line, Name: column, Value: faults.Clip(value, maxShown), Detail: detail})
		}
		if test.Effects, err = effectsOf(texts); err != nil {
			fault("variations", strings.Join(texts, ", "), err.Error())
		}
		if test.Shipped, err = shippedOf(cell(shipped), len(texts)-1); err != nil {
			fault("shipped", cell(shipped), err.Error())
		}
		tests = append(tests, test)
	}
}

// effectsOf returns the effects of the treatments of a test. texts has the numbers of its variations, control first.
func effectsOf(texts []string) ([]stats.PooledEffect, error) {
	var variations []map[string]any
	given := map[string]any{}
	for _, text := range texts {
		metric, sums, err := ReadSums(text)
		if err != nil {
			return nil, err
		}
		if given["metric"] != nil && given["metric"] != metric {
			return nil, errors.New("must all be rates, or all be means")
		}
		given["metric"], variations = metric, append(variations, sums)
	}
	given["variations"] = variations
	line, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	q, err := ParseInput(line)
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		return nil, errors.New(invalid.Faults.Join("; "))
	}
	samples := q.statsSamples(q.Variations, q.controlFirst())
	var effects []stats.PooledEffect
	for _, treatment := range samples[1:] {
		effects = append(effects, stats.NewPooledEffect([]stats.Stratum{{Control: samples[0], Treatment: treatment}}))
	}
	return effects, nil
}

// shippedOf returns the number of the shipped treatment.
func shippedOf(text string, treatments int) (int, error) {
	number, err := strconv.Atoi(text)
	switch strings.ToLower(text) {
	case "", "no":
		return 0, nil
	case "yes":
		number, err = 1, nil
		if treatments > 1 {
			return 0, fmt.Errorf("must be the number of the treatment, 1 to %d, or no", treatments)
		}
	}
	if err != nil || number < 1 || number > treatments {
		return 0, fmt.Errorf("must be yes, no, or the number of the treatment, 1 to %d", treatments)
	}
	return number, nil
}
