// Package calculator compares variations from given sums, without a store.
package calculator

import (
	"fmt"
	"slices"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// Input holds the sufficient statistics of the variations of an experiment, for a comparison without a store. Without
// looks, the comparison describes the variations. With looks, it also concludes.
type Input struct {
	Metric            Metric
	Variations        []Variation // with the sums of today
	Looks             []Look      // in order
	SignificanceLevel int         // per cent
	Methodology       stats.Methodology
	Power             int                // per cent
	MDE               float64            // minimum detectable effect, per cent of control
	PlannedDays       int                // to the planned end, at which tau is 1
	PlannedVisitors   int64              // which measure the time instead of days; 0: none
	Prior             *stats.Prior       // of lifts, as fractions; nil: frequentist, weak, or learned
	LearnsPrior       bool               // the prior is learned from Past
	NonNegative       bool               // no visitor's value is below zero
	Past              []effects.PastTest `json:",omitempty"` // of the same metric, which say how large effects are
}

// Look holds the sums of all variations at one time, in the order of the input.
type Look struct {
	Tau        float64 // time of the look; 1 is the planned end
	Variations []Variation
}

// Metric is the kind of a metric: what one visitor contributes to it.
type Metric string

// The kinds of metrics: each visitor converts or does not, or has a value.
const (
	MetricBinary Metric = "binary"
	MetricMean   Metric = "mean"
)

// Variation holds the sufficient statistics of one variation. Exactly one variation of an input is control. Either all
// variations have a share, or none.
type Variation struct {
	ID             int64
	Control        bool
	Share          *float64 // of the traffic; a relative weight
	Visitors       int64
	Converted      int64   // of a binary metric
	Mean, Variance float64 // of a mean metric; sample variance (n - 1) of one visitor's value
}

// Answer is the output of the calculator. Its parts are those of result.Report; its fields are in output order.
type Answer struct {
	Line              int64             `json:"line"` // of the input
	Metric            Metric            `json:"metric"`
	Methodology       stats.Methodology `json:"methodology"`
	SignificanceLevel int               `json:"significanceLevel"`
	Variations        []AnswerVariation `json:"variations"` // in the order of the input
	Looks             []AnswerLook      `json:"looks,omitempty"`
	Conclusion        result.Conclusion `json:"conclusion"`
	Checks            *AnswerChecks     `json:"checks,omitempty"` // nil: no shares
	Power             AnswerPower       `json:"power"`
	Worth             *AnswerWorth      `json:"worth"`
}

// AnswerLook is one look.
type AnswerLook struct {
	Number     int                    `json:"number"` // from 1
	Tau        float64                `json:"tau"`
	Visitors   int64                  `json:"visitors"`   // over all variations
	Variations []result.LookVariation `json:"variations"` // without control, in the order of the input
}

// AnswerVariation holds the estimate of one variation and its comparison with control.
type AnswerVariation struct {
	ID       int64    `json:"id"`
	Control  bool     `json:"control"`
	Share    *float64 `json:"share,omitempty"`
	Visitors int64    `json:"n"`
	result.Estimate
	Comparison *result.Comparison `json:"comparison"` // null for control
}

// AnswerChecks reports whether the data are valid.
type AnswerChecks struct {
	SampleRatio stats.SampleRatioCheck `json:"sampleRatio"` // in the order of the variations
}

// AnswerPower compares the number of visitors, over all variations, with the sample size that the power and the minimum
// detectable effect require.
type AnswerPower struct {
	stats.SampleProgress
	DaysRemaining *int64 `json:"daysRemaining,omitempty"` // hides those of the progress: the pace is not known
}

// Refusal is the output for an invalid line of input.
type Refusal struct {
	Line   int64       `json:"line"`
	Error  string      `json:"error"`
	Errors faults.List `json:"errors"`
}

// RefuseLine returns the output for an invalid line.
func RefuseLine(line int64, err *query.InvalidError) *Refusal {
	return &Refusal{Line: line, Error: err.Error(), Errors: err.Faults}
}

// ComputeAnswer compares every variation with control.
func (q *Input) ComputeAnswer() *Answer {
	if q.Methodology == stats.MethodologyBayesian && q.Prior == nil {
		q = q.withDefaultPrior()
	}
	order := q.controlFirst()
	options := q.statsOptions(order)
	answer := &Answer{
		Metric: q.Metric, Methodology: q.Methodology, SignificanceLevel: q.SignificanceLevel,
		Checks: q.checkSampleRatio(order),
	}
	samples := q.statsSamples(q.Variations, order)
	comparisons := stats.Compare(samples[0], samples[1:], options)
	found := q.analyzeLooks(order)
	answer.Looks = q.answerLooks(found)
	answer.Variations = make([]AnswerVariation, len(order))
	for place, i := range order {
		v := &q.Variations[i]
		shown := &answer.Variations[i]
		*shown = AnswerVariation{
			ID: v.ID, Control: v.Control, Share: v.Share, Visitors: v.Visitors,
			Estimate: result.NewEstimate(samples[place], options),
		}
		if place > 0 {
			shown.Comparison = result.NewComparison(comparisons[place-1])
			shown.Comparison.Conclusive = new(!answer.isInvalid() &&
				found.SupportsVerdict(place-1, comparisons[place-1].Verdict, options.Alpha()))
			if last := found.LastLook(place - 1); last != nil {
				shown.Comparison.Sequential = result.NewSequential(last, "")
			}
		}
	}
	answer.Power = q.computePower(samples[0], options)
	q.setConclusion(answer, found, comparisons)
	answer.Worth = q.computeWorth(order, answer.isInvalid())
	return answer
}

// withDefaultPrior returns the input with the prior that it learns from its past tests, or else with the weak one.
func (q *Input) withDefaultPrior() *Input {
	prior := plan.WeakPrior(q.MDE)
	if q.LearnsPrior {
		prior = worth.PriorOf(effects.NewPast(q.MDE/100, q.Past).Pool)
	}
	with := *q
	with.Prior = &stats.Prior{
		Mean: prior.Mean / 100, StandardDeviation: prior.StandardDeviation / 100, Campaigns: prior.Campaigns,
	}
	return &with
}

// answerLooks returns the looks, with the treatments in the order of the input.
func (q *Input) answerLooks(found *looks.Question) []AnswerLook {
	var all []AnswerLook
	for _, rows := range found.Rows {
		look := AnswerLook{Number: rows[0].Number, Tau: rows[0].Tau, Visitors: rows[0].Visitors}
		for _, v := range q.Variations {
			if at := slices.IndexFunc(rows, func(r looks.LookRow) bool { return r.VariationID == v.ID }); at >= 0 {
				look.Variations = append(look.Variations, result.NewLookVariation(&rows[at]))
			}
		}
		all = append(all, look)
	}
	return all
}

// computePower compares the visitors with the required sample size. This is that of the shares, or of the observed
// split if there are no shares. The plan has a look each week. The pace is not known.
func (q *Input) computePower(control stats.Sample, options stats.Options) AnswerPower {
	const week, anyPace = 7, 1
	size, reason := stats.NewSampleSize(stats.SamplePlan{
		Control: control, Shares: options.Shares, Looks: max(q.PlannedDays/week, 1), Power: float64(q.Power) / 100,
		Prior: q.Prior,
	}, stats.NewLookDesign(options.Alpha(), options.Shares))
	var power AnswerPower
	power.Reason = reason
	if reason == "" {
		power.SampleProgress = size.ProgressTowards(q.MDE/100, visitorsOf(q.Variations), anyPace)
	}
	return power
}

// computeWorth returns what the treatments are worth. The tests of a pool are the past ones and that of the input. With
// a sample ratio mismatch, its numbers say nothing, neither about itself nor about others.
func (q *Input) computeWorth(order []int, isInvalid bool) *AnswerWorth {
	tests := q.Past
	if !isInvalid {
		tests = append(tests[:len(tests):len(tests)], effects.PastTest{Effects: q.pooledEffects()})
	}
	judged := effects.NewPast(q.MDE/100, tests)
	found := &AnswerWorth{Pool: judged.Pool, Total: judged.Total, Text: judged.Pool.InWords("the metric", "test")}
	for place, i := range order[1:] {
		item := AnswerWorthItem{VariationID: q.Variations[i].ID, Reason: stats.ReasonSampleRatioMismatch}
		if !isInvalid {
			of := &judged.Items[len(judged.Items)-len(order)+1+place]
			item.Expected = of.Expected
			item.Chance = of.Chance
			item.Reason = of.Reason
		}
		if item.Expected != nil {
			item.Text = item.Expected.LiftInWords()
		}
		found.Items = append(found.Items, item)
	}
	return found
}

// isInvalid reports a sample ratio mismatch.
func (a *Answer) isInvalid() bool { return a.Checks != nil && a.Checks.SampleRatio.Mismatch }

// controlFirst returns the indexes of the variations, control first.
func (q *Input) controlFirst() []int {
	order := make([]int, 1, len(q.Variations))
	for i, v := range q.Variations {
		if v.Control {
			order[0] = i
		} else {
			order = append(order, i)
		}
	}
	return order
}

// statsOptions returns the options of package stats for today's comparison.
func (q *Input) statsOptions(order []int) stats.Options {
	return stats.Options{
		Shares:            expectedShares(q.Variations, order),
		Prior:             q.Prior,
		SignificanceLevel: q.SignificanceLevel,
		Methodology:       q.Methodology,
		NonNegative:       q.NonNegative || q.Metric == MetricBinary,
	}
}

// statsSamples returns the samples of variations, control first.
func (q *Input) statsSamples(variations []Variation, order []int) []stats.Sample {
	samples := make([]stats.Sample, len(order))
	for place, i := range order {
		v := &variations[i]
		samples[place] = stats.Rate{Visitors: v.Visitors, Converted: v.Converted}
		if q.Metric == MetricMean {
			samples[place] = stats.Mean{Visitors: v.Visitors, Mean: v.Mean, Variance: v.Variance, Nonzero: -1}
		}
	}
	return samples
}

// checkSampleRatio compares the visitors with the shares. It returns the first mismatch at a look, or else today's
// check. It returns nil if there are no shares.
func (q *Input) checkSampleRatio(order []int) *AnswerChecks {
	if q.Variations[0].Share == nil {
		return nil
	}
	given := expectedShares(q.Variations, order)
	total := 0.0
	for _, share := range given {
		total += share
	}
	var shown stats.SampleRatioCheck
	for k := range len(q.Looks) + 1 {
		variations := q.Variations
		if k < len(q.Looks) {
			variations = q.Looks[k].Variations
		}
		period := stats.SharePeriod{Split: stats.Split{Control: 100 * (given[0] / total), Variations: given[1:]}}
		for _, i := range order {
			period.Observed = append(period.Observed, variations[i].Visitors)
		}
		check := stats.SampleRatioMismatch([]stats.SharePeriod{period})
		shown = check
		shown.Expected = make([]float64, len(check.Expected))
		shown.Observed = make([]int64, len(order))
		for place, i := range order {
			shown.Observed[i] = period.Observed[place]
			if len(check.Expected) > place {
				shown.Expected[i] = check.Expected[place]
			}
		}
		if shown.Mismatch {
			break
		}
	}
	return &AnswerChecks{SampleRatio: shown}
}

// expectedShares returns the expected shares of the variations, or else the observed ones.
func expectedShares(variations []Variation, order []int) []float64 {
	shares := make([]float64, len(order))
	for place, i := range order {
		v := &variations[i]
		shares[place] = float64(v.Visitors)
		if v.Share != nil {
			shares[place] = *v.Share
		}
	}
	return shares
}

// isTested reports whether a look has compared a treatment with its bound.
func isTested(r looks.LookRow) bool { return r.Critical != nil && r.Z != nil }

func (q *Input) setConclusion(a *Answer, found *looks.Question, comparisons []stats.Comparison) {
	c, enough := &a.Conclusion, slices.ContainsFunc(comparisons, func(c stats.Comparison) bool {
		return c.Verdict != stats.VerdictInsufficientData
	})
	// The reasons of the last look, and of the comparisons with insufficient data; without looks, of all comparisons.
	c.Status = stats.StatusInconclusive
	c.Reasons = []stats.Reason{}
	if n := len(found.Rows); n > 0 {
		for _, row := range found.Rows[n-1] {
			c.Reasons = stats.AppendReasons(c.Reasons, row.Reason)
		}
	}
	for _, of := range comparisons {
		if len(found.Rows) == 0 || of.Verdict == stats.VerdictInsufficientData {
			c.Reasons = stats.AppendReasons(c.Reasons, of.Reasons...)
		}
	}
	outcome := found.FindOutcome(stats.Options{SignificanceLevel: q.SignificanceLevel}.Alpha())
	switch number := len(found.Rows); {
	case a.isInvalid():
		c.Status = stats.StatusInvalid
		c.Reasons = []stats.Reason{stats.ReasonSampleRatioMismatch}
		c.Text = result.InvalidInWords(*a.Checks.SampleRatio.PValue, q.Methodology == stats.MethodologyBayesian)
	case outcome != nil:
		row := &found.Rows[outcome.Look][outcome.Treatment]
		verdict := "better"
		c.Status = stats.StatusWinner
		c.Reasons = []stats.Reason{}
		if !outcome.Winner {
			c.Status = stats.StatusLoser
			verdict = "worse"
		}
		if row.Reason != "" {
			c.Reasons = append(c.Reasons, row.Reason)
		}
		c.VariationID = &row.VariationID
		c.Look = &row.Number
		c.Text = fmt.Sprintf("Variation %d is %s than control at look %d: %s.", row.VariationID, verdict, row.Number,
			result.LookInWords(row, q.SignificanceLevel, q.Metric == MetricBinary))
	case q.SignificanceLevel == result.LevelWithoutAlpha:
		c.Text = "No conclusion is possible: " + wording.ExplainReason(stats.ReasonLevel100) + "."
	case !enough:
		c.Status = stats.StatusInsufficientData
		c.Text = "Not enough data for a verdict: " + result.ExplainAll(c.Reasons) + "."
	case number == 0:
		c.Text = "No conclusion: pass the sums at each weekly look to conclude."
	case !slices.ContainsFunc(found.Rows[number-1], isTested):
		c.Text = fmt.Sprintf("No conclusion at look %d: %s.", number, result.ExplainAll(c.Reasons))
	default:
		c.Text = fmt.Sprintf("No variation differs significantly from control by look %d (%d %% level).",
			number, q.SignificanceLevel)
	}
}

func (q *Input) analyzeLooks(order []int) *looks.Question {
	all := &looks.Question{Rows: make([][]looks.LookRow, len(q.Looks))}
	if len(q.Looks) == 0 {
		return all
	}
	// the shares at the first look: the given ones, or else the observed ones, or equal ones if a variation has none
	shares := expectedShares(q.Looks[0].Variations, order)
	o := q.statsOptions(order)
	if q.Variations[0].Share != nil {
		shares = expectedShares(q.Variations, order)
	} else if slices.Min(shares) == 0 {
		shares = slices.Repeat([]float64{1}, len(shares))
	}
	design := stats.NewLookDesign(o.Alpha(), shares)
	data := make([]looks.LookData, len(q.Looks))
	for k, look := range q.Looks {
		sums := looks.StratumData{Samples: q.statsSamples(look.Variations, order), NonNegative: o.NonNegative}
		if q.Variations[0].Share != nil {
			sums.Shares = shares
		}
		data[k] = looks.LookData{
			Look: looks.Look{Number: k + 1}, Tau: look.Tau, Visitors: visitorsOf(look.Variations),
			Strata: []looks.StratumData{sums},
		}
	}
	for t, i := range order[1:] {
		rows := looks.RowsWithout(data, q.Variations[i].ID, stats.ReasonNoTraffic)
		if shares[0] > 0 && shares[t+1] > 0 {
			rows = looks.AnalyzeTreatment(data, t, q.Variations[i].ID, nil,
				func(points []stats.LookPoint) *stats.LookSequence { return design.NewSequence(points, nil) })
		}
		for k := range rows {
			all.Rows[k] = append(all.Rows[k], rows[k])
		}
	}
	if q.Methodology == stats.MethodologyBayesian {
		for k := range data {
			samples := data[k].Strata[0].Samples
			looks.AddChances(all.Rows[k], stats.Compare(samples[0], samples[1:], o))
		}
	}
	return all
}

// visitorsOf returns the number of visitors over all variations.
func visitorsOf(variations []Variation) int64 {
	var n int64
	for i := range variations {
		n += variations[i].Visitors
	}
	return n
}

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

func (c *checker) checkPast(given []pastText) []effects.PastTest {
	if len(given) > maxPastTests {
		c.Add("past", len(given), fmt.Sprintf("must be an array of at most %d tests", maxPastTests))
		return nil
	}
	var tests []effects.PastTest
	for i := range given {
		g := &given[i]
		path := fmt.Sprintf("past[%d]", i)
		test := effects.PastTest{Name: g.Name}
		if g.Variations == nil {
			test.Effects = []stats.PooledEffect{{
				Value:         c.checkNumber(path+".lift", g.Lift, -100, 1000, perCent) / 100,
				StandardError: c.checkNumber(path+".standardError", g.StandardError, 0.01, 1000, perCent) / 100,
			}}
		} else {
			const detail = "must be omitted, because variations are given"
			c.refuseField(path+".lift", g.Lift, detail)
			c.refuseField(path+".standardError", g.StandardError, detail)
			n := len(g.Variations)
			path := path + ".variations"
			if n < leastVariations || n > maxVariations {
				c.Add(path, n, fmt.Sprintf("must be an array of %d to %d variations, control first, has %d",
					leastVariations, maxVariations, n))
			} else {
				// The effects are of rates if control has converted visitors, or else of means.
				q := Input{Metric: MetricMean}
				if g.Variations[0].Converted != nil {
					q.Metric = MetricBinary
				}
				for i := range g.Variations {
					v := Variation{ID: int64(i), Control: i == 0}
					c.checkSums(&q, fmt.Sprintf("%s[%d]", path, i), &g.Variations[i], &v)
					q.Variations = append(q.Variations, v)
				}
				test.Effects = q.pooledEffects()
			}
		}
		if g.Shipped != nil {
			test.Shipped = int(c.checkWhole(path+".shipped", g.Shipped, 0, int64(max(len(test.Effects), 1)), ""))
		}
		tests = append(tests, test)
	}
	return tests
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
