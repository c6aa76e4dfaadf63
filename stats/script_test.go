package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata/scripts. -rewrite records their outputs. Lines of an input are about a name,
// a colon and numbers. A sample is a rate, CONVERTED/VISITORS, or the visitors, mean, variance and perhaps visitors with
// a value of a mean. A margin is a percentage or an amount, below 0 if less is better. The commands are:
//
//	compare   CONTROL TREATMENT at level 95, by both methodologies
//	estimate  SAMPLE at level 95
//	split     CONTROL WEIGHTS
//	ratio     CONTROL WEIGHTS VISITORS of each period
//	exposed   MULTI-EXPOSED VISITORS
//	safe      MARGIN CONTROL TREATMENT of a look
//	harm      MARGIN, and CONTROL TREATMENT of each stratum
//	conclude  the findings of each look: DIRECTION/DIFFERENCE
func TestScripts(t *testing.T) {
	scripts.RunLines(t, func(t *testing.T, d *datadriven.TestData, line string) string {
		t.Helper()
		name, words, _ := strings.Cut(line, ":")
		return strings.TrimSpace(name + ": " + shown(t, d, strings.Fields(words)))
	})
}

func shown(t *testing.T, d *datadriven.TestData, words []string) string {
	t.Helper()
	switch d.Cmd {
	case "compare":
		return comparedBoth(t, sampleOf(t, words[0]), sampleOf(t, words[1]))
	case "estimate":
		var e Estimate
		switch sample := sampleOf(t, words[0]).(type) {
		case Rate:
			e = EstimateRate(sample, Options{SignificanceLevel: 95})
		case Mean:
			e = EstimateMean(sample, Options{SignificanceLevel: 95})
		}
		return fmt.Sprint("value ", e.Value != nil, " ", e.Reason)
	case "split":
		return fmt.Sprintf("%.4g", splitOf(t, words).ExpectedShares())
	case "ratio":
		var periods []SharePeriod
		for period := range slices.Chunk(words, 3) {
			periods = append(periods, SharePeriod{splitOf(t, period), integers(t, period[2])})
		}
		found := SampleRatioMismatch(periods)
		mustFinite(t, found)
		check.That(t, found.PValue == nil || *found.PValue >= 0 && *found.PValue <= 1, "%v: p = %v", words,
			found.PValue)
		return fmt.Sprint("mismatch ", found.Mismatch, ", p ", found.PValue != nil, " ", found.Reason)
	case "exposed":
		found := CompareShares(integers(t, words[0]), integers(t, words[1]))
		mustFinite(t, found)
		return fmt.Sprint("differ ", found.Differ, ", p ", found.PValue != nil, " ", found.Reason)
	case "safe":
		return fmt.Sprint(marginOf(t, words[0]).IsSafe(newLooked(.05, 1, 1).Analyze(1, strataOf(t, words[1:]), true)))
	case "harm":
		rule := HarmRule{Alpha: .05, Treatments: 1, Guardrails: 1, PlannedVisitors: 20_000}
		h := marginOf(t, words[0]).HarmBound(strataOf(t, words[1:]), true, rule)
		return fmt.Sprint("below ", h.Below, ", breaks ", h.Breaks, " ", h.Reason)
	case "conclude":
		var looks [][]Finding
		for _, word := range words {
			var look []Finding
			for finding := range strings.SplitSeq(word, ",") {
				direction, difference, _ := strings.Cut(finding, "/")
				look = append(look, Finding{int(integers(t, direction)[0]), floats(t, difference)[0]})
			}
			looks = append(looks, look)
		}
		if c := ConcludeLooks(looks); c != nil {
			return fmt.Sprintf("%+v", *c)
		}
		return "nothing"
	}
	t.Fatalf("%s: no such command", d.Pos)
	return ""
}

// comparedBoth compares by both methodologies, and also at level 100, where only invariants are checked.
func comparedBoth(t *testing.T, control, treatment Sample) string {
	t.Helper()
	var texts []string
	for _, methodology := range []Methodology{MethodologyFrequentist, MethodologyBayesian} {
		o := Options{SignificanceLevel: 95, Methodology: methodology, Prior: &Prior{StandardDeviation: 5 / 1.96}}
		c := mustSound(t, control, []Sample{treatment}, o)[0]
		has := c.Frequentist != nil && c.Frequentist.PValue != nil || c.Bayesian != nil &&
			c.Bayesian.ChanceToBeatControl != nil
		text := fmt.Sprint(c.Verdict, ", p ", has)
		if methodology == MethodologyFrequentist {
			text += fmt.Sprint(" ", c.Reasons)
		}
		texts = append(texts, text)
		o.SignificanceLevel = 100
		mustSound(t, control, []Sample{treatment, treatment}, o)
	}
	return strings.Join(texts, "; Bayesian ")
}

// sampleOf returns the sample of a word; "-": none.
func sampleOf(t *testing.T, word string) Sample {
	t.Helper()
	if word == "-" {
		return nil
	}
	if converted, visitors, rate := strings.Cut(word, "/"); rate {
		return Rate{Visitors: integers(t, visitors)[0], Converted: integers(t, converted)[0]}
	}
	numbers := append(floats(t, word), -1)
	return Mean{Visitors: int64(numbers[0]), Mean: numbers[1], Variance: numbers[2], Nonzero: int64(numbers[3])}
}

func strataOf(t *testing.T, words []string) (strata []Stratum) {
	t.Helper()
	for pair := range slices.Chunk(words, 2) {
		strata = append(strata, Stratum{Control: sampleOf(t, pair[0]), Treatment: sampleOf(t, pair[1])})
	}
	return strata
}

func splitOf(t *testing.T, words []string) Split {
	t.Helper()
	return Split{Control: floats(t, words[0])[0], Variations: floats(t, words[1])}
}

func marginOf(t *testing.T, word string) Margin {
	t.Helper()
	amount, down := strings.CutPrefix(word, "-")
	if percent, relative := strings.CutSuffix(amount, "%"); relative {
		return Margin{Relative: floats(t, percent)[0] / 100, Down: down}
	}
	return Margin{Absolute: floats(t, amount)[0], Down: down}
}

func floats(t *testing.T, word string) (numbers []float64) {
	t.Helper()
	for number := range strings.SplitSeq(word, ",") {
		numbers = append(numbers, must.Get(strconv.ParseFloat(number, 64))(t))
	}
	return numbers
}

func integers(t *testing.T, word string) (numbers []int64) {
	t.Helper()
	for number := range strings.SplitSeq(word, ",") {
		numbers = append(numbers, must.Get(strconv.ParseInt(strings.ReplaceAll(number, "_", ""), 10, 64))(t))
	}
	return numbers
}
