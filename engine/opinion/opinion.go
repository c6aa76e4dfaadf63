// Package opinion is a second opinion on past tests: it reads a table of them, judges each by our statistics, and says
// what all of them are truly worth together. It needs no store, and runs in a browser.
package opinion

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"lifthouse/engine/effects"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// Opinion is the second opinion on a table. Its fields are in output order.
type Opinion struct {
	Text      string              `json:"text"`
	Sentences []string            `json:"sentences"`
	Pool      effects.PoolSummary `json:"pool"`
	Total     *effects.PastTotal  `json:"total"` // of the winners; null: there is none
	Required  *int64              `json:"requiredVisitors"`
	Tests     []JudgedTest        `json:"tests"`
	Notes     []string            `json:"notes"` // what was left out

	sequences map[plan]*stats.LookSequence
}

// plan is what the critical values of equal looks depend on. To compute them again for each test takes a third of the
// time of an opinion.
type plan struct {
	looks int
	level float64
}

// JudgedTest is a test with its treatments. Looks is the number of weekly looks of the plan by which they are judged.
type JudgedTest struct {
	Name        string                  `json:"name"`
	Line        int                     `json:"line"`
	Looks       int                     `json:"looks"`
	SampleRatio *stats.SampleRatioCheck `json:"sampleRatio"` // null: the planned shares are not known
	Treatments  []JudgedTreatment       `json:"treatments"`
}

// JudgedTreatment is a treatment: what was observed, at a fixed horizon, and what is expected of its true effect.
type JudgedTreatment struct {
	Name       string            `json:"name"`
	Shipped    bool              `json:"shipped"` // if the table does not say so, the best significant one
	Winner     bool              `json:"winner"`  // shipped, and ahead of control
	Difference stats.Effect      `json:"difference"`
	Lift       stats.Effect      `json:"lift"`
	PValue     *float64          `json:"pValue"`
	Concludes  bool              `json:"concludes"` // at the last look of the plan
	Expected   *effects.Estimate `json:"expected"`  // lift
	Chance     *float64          `json:"chance"`    // that the true effect is above 0
	Reason     stats.Reason      `json:"reason,omitempty"`
	Text       string            `json:"text"`
}

// New judges the tests of a table. mde is their minimum effect, as a fraction.
func New(t *Table, mde float64) *Opinion {
	o := &Opinion{
		Tests: []JudgedTest{}, Notes: t.Notes, sequences: map[plan]*stats.LookSequence{},
	}
	past := t.Past()
	var sizes []*stats.SampleSize
	for i := range t.Tests {
		test, size := o.judge(&t.Tests[i])
		if size != nil {
			sizes = append(sizes, size)
		}
		if !t.KnowsShipped && !test.isInvalid() {
			past[i].Shipped = test.findBestTreatment()
		}
		o.Tests = append(o.Tests, test)
	}
	o.setExpectations(effects.NewPast(mde, past))
	if o.hasWinnersOnly() {
		o.Text = fmt.Sprintf("All %d tests that can be judged have a winner. Tests are not like that, so this is a "+
			"selection of winners, and nothing can be promised of them: add the tests that found nothing.",
			o.countJudged())
		o.promiseNothing(mde)
	} else {
		o.Required = requiredBy(sizes, o.Pool.TypicalEffect.Value)
		o.setSentences()
	}
	for i := range o.Tests {
		for k := range o.Tests[i].Treatments {
			treatment := &o.Tests[i].Treatments[k]
			treatment.Text = treatment.inWords()
		}
	}
	return o
}

// findBestTreatment returns the number of the treatment that people would have shipped: the one with the largest
// difference of those that are significantly better; 0: there is none.
func (t *JudgedTest) findBestTreatment() int {
	best := 0
	largest := 0.0
	for k, treatment := range t.Treatments {
		difference := treatment.Difference.Value
		isSignificant := treatment.PValue != nil && *treatment.PValue < .05
		if isSignificant && difference != nil && *difference > largest {
			best = k + 1
			largest = *difference
		}
	}
	return best
}

// setExpectations sets what the fit of all tests expects of each treatment, and of all that were shipped.
func (o *Opinion) setExpectations(found *effects.Past) {
	o.Pool = found.Pool
	o.Total = found.Total
	n := 0
	for i := range o.Tests {
		for k := range o.Tests[i].Treatments {
			treatment := &o.Tests[i].Treatments[k]
			item := &found.Items[n]
			treatment.Shipped = item.Shipped
			treatment.Expected = item.Expected
			treatment.Chance = item.Chance
			treatment.Winner = item.Shipped && item.Observed != nil && *item.Observed > 0
			treatment.Reason = cmp.Or(item.Reason, treatment.Reason, treatment.Lift.Reason)
			n++
		}
	}
}

// leastOfSelection is the number of tests from which a table of winners only is a selection. If a third of all tests
// win, three in a row do with a probability of 4 %.
const leastOfSelection = 3

// countJudged returns the number of tests with a treatment that can be judged.
func (o *Opinion) countJudged() (n int) {
	for _, test := range o.Tests {
		if slices.ContainsFunc(test.Treatments, func(t JudgedTreatment) bool { return t.Expected != nil }) {
			n++
		}
	}
	return n
}

// hasWinnersOnly reports whether each of several tests that can be judged has a winner.
func (o *Opinion) hasWinnersOnly() bool {
	for _, test := range o.Tests {
		isJudged := slices.ContainsFunc(test.Treatments, func(t JudgedTreatment) bool { return t.Expected != nil })
		hasWinner := slices.ContainsFunc(test.Treatments, func(t JudgedTreatment) bool { return t.Winner })
		if isJudged && !hasWinner {
			return false
		}
	}
	return o.countJudged() >= leastOfSelection
}

// reasonWinnersOnly is the reason why nothing can be expected of a selection.
const reasonWinnersOnly stats.Reason = "WINNERS_ONLY"

// promiseNothing removes what was learned from a selection.
func (o *Opinion) promiseNothing(mde float64) {
	o.Pool = effects.NewPast(mde, nil).Pool
	o.Total = nil
	for i := range o.Tests {
		for k := range o.Tests[i].Treatments {
			t := &o.Tests[i].Treatments[k]
			if t.Expected != nil {
				t.Expected = nil
				t.Chance = nil
				t.Reason = reasonWinnersOnly
			}
		}
	}
}

// requiredBy returns the median of the visitors with which the tests find an effect; nil: it is not known.
func requiredBy(sizes []*stats.SampleSize, effect float64) *int64 {
	var needs []int64 // visitors that find an effect that is typical here
	for _, size := range sizes {
		if n, _ := size.RequiredVisitors(effect); n != nil {
			needs = append(needs, *n)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	slices.Sort(needs)
	return &needs[(len(needs)-1)/2]
}

// setSentences says what to expect. The first sentence says what was reported, and what to expect of it.
func (o *Opinion) setSentences() {
	unjudged, behind := o.countWithoutWin()
	o.Text = fmt.Sprintf("None of %d tests has a winner that can be judged.", len(o.Tests))
	if len(o.Tests) == 1 {
		o.Text = "The test has no winner that can be judged."
	}
	if o.Total != nil {
		noun := "winner"
		if behind > 0 {
			noun = "shipped variation"
		}
		o.Text = reportedInWords(o.Total, noun) + " " + harmInWords(o.Total, noun)
		e := effects.Estimate{Value: o.Total.Expected, Interval: o.Total.Interval}
		o.Sentences = append(o.Sentences,
			fmt.Sprintf("The %ss are expected to add up to %s.", noun, e.InWords(formatTotal)))
		if behind > 0 {
			o.Sentences = append(o.Sentences,
				fmt.Sprintf("Shipped although behind control, and no winners: %d.", behind))
		}
	}
	if unjudged > 0 {
		o.Sentences = append(o.Sentences,
			fmt.Sprintf("Shipped variations that cannot be judged, and are not counted: %d.", unjudged))
	}
	o.Sentences = append(o.Sentences, o.Pool.InWords("the metric", "test"))
	if o.Required != nil {
		o.Sentences = append(o.Sentences, fmt.Sprintf("To find an effect of %s, a test like these needs %s visitors.",
			wording.FormatPercent(o.Pool.TypicalEffect.Value, 1, false), wording.FormatCount(*o.Required)))
	}
}

// countWithoutWin returns the numbers of shipped treatments that cannot be judged, and that are not ahead of control.
func (o *Opinion) countWithoutWin() (unjudged, behind int) {
	for _, test := range o.Tests {
		for _, t := range test.Treatments {
			switch {
			case t.Shipped && t.Expected == nil:
				unjudged++
			case t.Shipped && !t.Winner:
				behind++
			}
		}
	}
	return unjudged, behind
}

// formatTotal writes a sum of lifts, with a decimal if it is small.
func formatTotal(x float64) string {
	decimals := 1
	if math.Abs(x) >= .1 {
		decimals = 0
	}
	return wording.FormatPercent(x, decimals, true)
}

// reportedInWords says what was reported of the shipped treatments, which have a noun, and what to expect of them.
func reportedInWords(t *effects.PastTotal, noun string) string {
	reported := fmt.Sprintf("You reported %s.", formatTotal(t.Observed))
	if t.Shipped != 1 {
		reported = fmt.Sprintf("The lifts of %s add up to %s.", wording.CountNoun(int64(t.Shipped), noun),
			formatTotal(t.Observed))
	}
	return fmt.Sprintf("%s Expect %s to %s.", reported, formatTotal(t.Interval[0]), formatTotal(t.Interval[1]))
}

// harmInWords says how many of the shipped treatments are expected to do harm or nothing.
func harmInWords(t *effects.PastTotal, noun string) string {
	switch harmful := math.Round(t.HarmOrNothing); {
	case t.Shipped == 1:
		return fmt.Sprintf("The chance that the %s does harm or nothing is %s.", noun,
			wording.FormatChance(t.HarmOrNothing))
	case harmful == 0: // where many ideas are nothing, some of these often are: see docs/benchmarks/programme.md
		return fmt.Sprintf("Of the %d, less than 1 is expected to do harm or nothing.", t.Shipped)
	case harmful == 1:
		return fmt.Sprintf("Of the %d, about 1 does harm or nothing.", t.Shipped)
	default:
		return fmt.Sprintf("Of the %d, about %.0f do harm or nothing.", t.Shipped, harmful)
	}
}

// judge judges the treatments of a test at a fixed horizon, and at the last of its weekly looks.
func (o *Opinion) judge(t *Test) (JudgedTest, *stats.SampleSize) {
	test := JudgedTest{Name: t.Name, Line: t.Line, SampleRatio: t.checkSampleRatio()}
	test.Looks = 4 // weeks of the catalogue's default plan, for tests whose days are not known
	if t.Days > 0 {
		test.Looks = min(max(int(t.Days)/7, 1), 52)
	}
	control := t.Samples[0]
	shares := make([]float64, len(t.Samples))
	for i, sample := range t.Samples {
		shares[i] = float64(visitorsOf(sample))
	}
	_, isRate := control.(stats.Rate)
	options := stats.Options{SignificanceLevel: 95, Shares: shares, NonNegative: isRate}
	design := stats.NewLookDesign(options.Alpha(), shares)
	key := plan{test.Looks, design.Level}
	if o.sequences[key] == nil {
		points := make([]stats.LookPoint, test.Looks)
		for k := range points {
			tau := float64(k+1) / float64(test.Looks)
			points[k] = stats.LookPoint{Tau: tau, Information: tau}
		}
		o.sequences[key] = design.NewSequence(points, nil)
	}
	size, _ := stats.NewSampleSize(
		stats.SamplePlan{Control: control, Shares: shares, Looks: test.Looks, Power: .8}, design)
	for i, c := range stats.Compare(control, t.Samples[1:], options) {
		treatment := JudgedTreatment{Name: t.Variations[i+1], Difference: c.Difference, Lift: c.Lift}
		if c.Frequentist != nil {
			treatment.PValue = c.Frequentist.AdjustedPValue
			treatment.Reason = c.Frequentist.Reason
		}
		if shares[0] > 0 && shares[i+1] > 0 && !test.isInvalid() {
			treatment.Concludes = o.sequences[key].AnalyzeLook(test.Looks-1,
				[]stats.Stratum{{Control: control, Treatment: t.Samples[i+1]}}, isRate).Significant
		}
		test.Treatments = append(test.Treatments, treatment)
	}
	return test, size
}

func visitorsOf(s stats.Sample) int64 {
	if rate, is := s.(stats.Rate); is {
		return rate.Visitors
	}
	return s.(stats.Mean).Visitors
}

// checkSampleRatio compares the visitors with the shares. Without shares, a split that is nearly even was meant to be
// even, and of another one nothing is known.
func (t *Test) checkSampleRatio() *stats.SampleRatioCheck {
	var period stats.SharePeriod
	for _, s := range t.Samples {
		period.Observed = append(period.Observed, visitorsOf(s))
	}
	shares := t.Shares
	if shares == nil {
		if float64(slices.Min(period.Observed)) < .95*float64(slices.Max(period.Observed)) {
			return nil
		}
		shares = slices.Repeat([]float64{1}, len(t.Samples))
	}
	total := 0.0
	for _, share := range shares {
		total += share
	}
	period.Split = stats.Split{Control: 100 * shares[0] / total, Variations: shares[1:]}
	return new(stats.SampleRatioMismatch([]stats.SharePeriod{period}))
}

// isInvalid reports a sample ratio mismatch.
func (t *JudgedTest) isInvalid() bool { return t.SampleRatio != nil && t.SampleRatio.Mismatch }

// inWords says what was observed and what is expected.
func (t *JudgedTreatment) inWords() string {
	inPercent := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	said := ""
	if t.Lift.Value != nil {
		said = fmt.Sprintf("Observed %s (%s)", inPercent(*t.Lift.Value),
			wording.RangeInWords(t.Lift.Interval, inPercent))
		if t.PValue != nil {
			said += ", " + wording.PValueInWords(*t.PValue)
		}
		if t.Concludes {
			said += ", concludes. "
		} else {
			said += ", does not conclude. "
		}
	}
	if t.Expected == nil {
		return said + "Nothing can be expected: " + wording.ExplainReason(t.Reason) + "."
	}
	return said + fmt.Sprintf("Expected %s.", t.Expected.InWords(inPercent))
}

// columns are the names of the columns of a CSV file.
var columns = []string{
	"test", "treatment", "shipped", "winner", "lift", "liftLower", "liftUpper", "pValue", "concludes",
	"sampleRatioPValue", "expected", "expectedLower", "expectedUpper", "chance", "reason",
}

// WriteCSV writes a row per treatment.
func (o *Opinion) WriteCSV(w io.Writer) error {
	number := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	rows := [][]string{columns}
	for _, test := range o.Tests {
		ratio := ""
		if test.SampleRatio != nil {
			ratio = number(test.SampleRatio.PValue)
		}
		for _, t := range test.Treatments {
			var lift stats.Interval
			var expected [3]*float64
			if t.Lift.Interval != nil {
				lift = *t.Lift.Interval
			}
			if e := t.Expected; e != nil {
				expected = [3]*float64{&e.Value, &e.Interval[0], &e.Interval[1]}
			}
			rows = append(rows, []string{
				wording.EscapeFormula(test.Name), wording.EscapeFormula(t.Name), strconv.FormatBool(t.Shipped),
				strconv.FormatBool(t.Winner),
				number(t.Lift.Value), number(lift[0]), number(lift[1]), number(t.PValue),
				strconv.FormatBool(t.Concludes), ratio, number(expected[0]), number(expected[1]),
				number(expected[2]), number(t.Chance),
				string(t.Reason),
			})
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}
