package calculator

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// maxPastTests is the maximum number of tests of a file: a fit of a thousand takes a tenth of a second.
const maxPastTests = 1000

// ReadPastTests reads a CSV file of past tests. Its first line has the names of the columns: name, then control and one
// column per treatment with numbers as compare takes them, and shipped: yes, no, or the number of the treatment. The
// error has all faults, with their lines.
func ReadPastTests(r io.Reader) ([]effects.PastTest, error) {
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
	var tests []effects.PastTest
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
		test := effects.PastTest{Name: cell(name)}
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
	var given []sumsText
	for _, text := range texts {
		metric, sums, err := ReadSums(text)
		if err != nil {
			return nil, err
		}
		if isRate := metric == MetricBinary; len(given) > 0 && isRate != (given[0].Converted != nil) {
			return nil, errors.New("must all be rates, or all be means")
		}
		numberOf := func(name string) *float64 {
			if number, has := sums[name].(json.Number); has {
				x, _ := number.Float64()
				return &x
			}
			return nil
		}
		given = append(given, sumsText{
			Visitors: numberOf("n"), Converted: numberOf("converted"),
			Mean: numberOf("mean"), Variance: numberOf("variance"),
		})
	}
	var c checker
	effects := c.checkPastSums("variations", given)
	if len(c.List) > 0 {
		return nil, errors.New(c.List.Join("; "))
	}
	return effects, nil
}

// pooledEffects returns the effects of the treatments.
func (q *Input) pooledEffects() []stats.PooledEffect {
	samples := q.statsSamples(q.Variations, q.controlFirst())
	var effects []stats.PooledEffect
	for _, treatment := range samples[1:] {
		effects = append(effects, stats.NewPooledEffect([]stats.Stratum{{Control: samples[0], Treatment: treatment}}))
	}
	return effects
}

// pastText is a past test: the sums of its variations, control first, or the lift of its treatment in per cent.
type pastText struct {
	Name          string     `yaml:"name"`
	Variations    []sumsText `yaml:"variations"`
	Lift          *float64   `yaml:"lift"`
	StandardError *float64   `yaml:"standardError"`
	Shipped       *float64   `yaml:"shipped"`
}

// checkPast returns the past tests of an input.
func (c *checker) checkPast(given []pastText) []effects.PastTest {
	if len(given) > maxPastTests {
		c.Add("past", len(given), fmt.Sprintf("must be an array of at most %d tests", maxPastTests))
		return nil
	}
	var tests []effects.PastTest
	for i := range given {
		g, path := &given[i], fmt.Sprintf("past[%d]", i)
		test := effects.PastTest{Name: g.Name}
		if g.Variations == nil {
			test.Effects = []stats.PooledEffect{{
				Value:         c.checkNumber(path+".lift", g.Lift, -100, 1000, perCent) / 100,
				StandardError: c.checkNumber(path+".standardError", g.StandardError, 0.01, 1000, perCent) / 100,
			}}
		} else {
			const detail = "must be omitted, because variations are given"
			c.refuse(path+".lift", g.Lift, detail)
			c.refuse(path+".standardError", g.StandardError, detail)
			test.Effects = c.checkPastSums(path+".variations", g.Variations)
		}
		if g.Shipped != nil {
			shipped, _ := c.checkWhole(path+".shipped", g.Shipped, 0, int64(max(len(test.Effects), 1)), "")
			test.Shipped = int(shipped)
		}
		tests = append(tests, test)
	}
	return tests
}

// checkPastSums returns the effects of the treatments of a past test: of rates if control has converted visitors, or
// else of means.
func (c *checker) checkPastSums(path string, given []sumsText) []stats.PooledEffect {
	if n := len(given); n < leastVariations || n > maxVariations {
		c.Add(path, n, fmt.Sprintf("must be an array of %d to %d variations, control first, has %d",
			leastVariations, maxVariations, n))
		return nil
	}
	q := Input{Metric: MetricMean}
	if given[0].Converted != nil {
		q.Metric = MetricBinary
	}
	for i := range given {
		v := Variation{ID: int64(i), Control: i == 0}
		c.checkSums(&q, fmt.Sprintf("%s[%d]", path, i), &given[i], &v)
		q.Variations = append(q.Variations, v)
	}
	return q.pooledEffects()
}

// AnswerWorth is what the treatments are truly worth, given past tests, in lifts.
type AnswerWorth struct {
	Pool  effects.PoolSummary `json:"pool"` // with the treatments of the input
	Items []AnswerWorthItem   `json:"items"`
	Total *effects.PastTotal  `json:"total,omitempty"` // of the shipped treatments of past tests; nil: there is none
	Text  string              `json:"text"`
}

// AnswerWorthItem is what a treatment is worth.
type AnswerWorthItem struct {
	VariationID int64             `json:"variationId"`
	Expected    *effects.Estimate `json:"expected"` // lift
	Chance      *float64          `json:"chance"`   // that the true effect is above 0
	Reason      stats.Reason      `json:"reason,omitempty"`
	Text        string            `json:"text,omitempty"`
}

// InWords says what to expect of each treatment, and how that is known. It says nothing if no treatment can be judged.
func (w *AnswerWorth) InWords() (sentences []string) {
	for _, item := range w.Items {
		if item.Text != "" {
			sentences = append(sentences, fmt.Sprintf("Variation %d: %s", item.VariationID, item.Text))
		}
	}
	if len(sentences) > 0 {
		sentences = append(sentences, w.Text)
	}
	return sentences
}

// computeWorth computes what the treatments are worth. The tests of a pool are the past ones and that of the input.
// With a sample ratio mismatch, its numbers say nothing, neither about itself nor about others.
func (q *Input) computeWorth(order []int, isInvalid bool) *AnswerWorth {
	tests := q.Past
	if !isInvalid {
		tests = append(tests[:len(tests):len(tests)], effects.PastTest{Effects: q.pooledEffects()})
	}
	found := effects.NewPast(q.MDE/100, tests)
	w := &AnswerWorth{Pool: found.Pool, Total: found.Total, Text: found.Pool.InWords("the metric", "test")}
	for place, i := range order[1:] {
		item := AnswerWorthItem{VariationID: q.Variations[i].ID, Reason: stats.ReasonSampleRatioMismatch}
		if !isInvalid {
			of := &found.Items[len(found.Items)-len(order)+1+place]
			item.Expected, item.Chance, item.Reason = of.Expected, of.Chance, of.Reason
		}
		if item.Expected != nil {
			item.Text = item.Expected.LiftInWords()
		}
		w.Items = append(w.Items, item)
	}
	return w
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
