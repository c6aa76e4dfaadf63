// Package looks schedules the looks of a subject and computes the result of each look: a group sequential test with one
// error budget over all looks of a campaign.
package looks

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

	"github.com/cespare/xxhash/v2"
)

// Kind says what a row is about.
type Kind string

// The kinds of rows.
const (
	OfLook Kind = "look"
	OfHarm Kind = "harm" // of the metric, at the end of a day; the row has the number 0
	OfEnd  Kind = "end"  // of the subject, with all its full days; the number of the row is theirs
	// OfReturns is of the first look at whose time orders had changed at different ages; the row has the number 0.
	OfReturns Kind = "returns"
	// OfSplit is of the visitors, at the end of the first day that finds a sample ratio mismatch. The number and the
	// variation are 0.
	OfSplit Kind = "split"
)

// IsState reports whether the row has the state of a subject at a time: the sums of visitors.
func (k Kind) IsState() bool { return k == OfLook || k == OfEnd }

// FixesClock reports whether the row has the first full day.
func (k Kind) FixesClock() bool { return k != OfSplit }

// LookRow is the result of a look for one variation, on one metric. The row of harm has only the end of the day and
// Upper, that of returns only Returns, the row of an end only visitors, strata and the sample ratio, and the row of a
// split only the end of the day and the sample ratio.
type LookRow struct {
	Look
	Kind        Kind `json:"-"`
	VariationID int64
	Visitors    int64 // of the look, over all variations
	Tau         float64
	Strata      []RowStratum
	stats.LookResult
	PValue     *float64
	Chance     *float64          // to beat control; only Bayesian
	FirstDay   time.Time         // of a recorded row: start of the first full day
	RecordedAt time.Time         `json:"-"` // zero: computed from the events
	Recomputed *stats.LookResult `json:"-"` // from the events of today, if it differs from what was recorded
	MismatchP  *float64          // the smallest p-value of the sample ratio at the end of any full day so far
	Upper      *float64          `json:",omitempty"` // the bound that shows harm
	Returns    *Returns          `json:",omitempty"`
}

// RowStratum has the exact sums of control and of the variation in one period of equal shares.
type RowStratum struct {
	Control, Variation moments.Moments
}

// conclusiveDirection returns 1 if the look concludes that the variation is above control, -1 if it is below, and 0
// otherwise. A Bayesian conclusion needs the chance as well.
func (r *LookRow) conclusiveDirection(alpha float64) int {
	if r.Chance != nil {
		return r.BayesianDirection(*r.Chance, alpha)
	}
	return r.SignificantDirection()
}

// Question has the looks at one metric.
type Question struct {
	Rows [][]LookRow // by look and variation, without control
}

// SupportsVerdict reports whether any look supports a verdict on a treatment.
func (q *Question) SupportsVerdict(treatment int, verdict stats.Verdict, alpha float64) bool {
	want := map[stats.Verdict]int{stats.VerdictBetter: 1, stats.VerdictWorse: -1}[verdict]
	return want != 0 && slices.ContainsFunc(q.Rows, func(rows []LookRow) bool {
		return rows[treatment].conclusiveDirection(alpha) == want
	})
}

// FindOutcome returns the winner or the loser of all looks, or nil.
func (q *Question) FindOutcome(alpha float64) *stats.Outcome {
	var findings [][]stats.Finding
	for _, rows := range q.Rows {
		look := make([]stats.Finding, len(rows))
		for i := range rows {
			look[i].Direction = rows[i].conclusiveDirection(alpha)
			if rows[i].Difference.Value != nil {
				look[i].Difference = *rows[i].Difference.Value
			}
		}
		findings = append(findings, look)
	}
	return stats.ConcludeLooks(findings)
}

// WinnerOf returns the winner that the looks among the rows of a plan's primary question conclude; nil: there is none.
// Rows of harm are not looks.
func WinnerOf(p *plan.Plan, rows []LookRow) *plan.Variation {
	var q Question
	for _, r := range rows {
		if r.Kind != OfLook {
			continue
		}
		for len(q.Rows) < r.Number {
			q.Rows = append(q.Rows, make([]LookRow, len(p.Variations)-1))
		}
		for t := range p.Variations[1:] {
			if p.Variations[t+1].ID == r.VariationID {
				q.Rows[r.Number-1][t] = r
			}
		}
	}
	if o := q.FindOutcome(alphaOf(p)); o != nil && o.Winner {
		return &p.Variations[o.Treatment+1]
	}
	return nil
}

// LastLook returns the last look at a variation that has a boundary, or else the last one; nil: there is none. A look
// without new visitors has no boundary, and the look before it stays valid.
func (q *Question) LastLook(treatment int) *LookRow {
	if q == nil || len(q.Rows) == 0 {
		return nil
	}
	for _, rows := range slices.Backward(q.Rows) {
		if row := &rows[treatment]; row.hasBoundary() {
			return row
		}
	}
	return &q.Rows[len(q.Rows)-1][treatment]
}

// LastLook returns the last look with a boundary for any treatment, or else the last one. There must be a look.
func (a *Analysis) LastLook() Look {
	last := a.Looks[len(a.Looks)-1]
	for k, rows := range slices.Backward(a.Primary.Rows) {
		if slices.ContainsFunc(rows, func(r LookRow) bool { return r.hasBoundary() }) {
			return a.Looks[k]
		}
	}
	return last
}

// DecidingLooks returns the look that concluded, and the first one at the end of the plan.
func (a *Analysis) DecidingLooks() []Look {
	var found []Look
	if a.Outcome != nil {
		found = append(found, a.Looks[a.Outcome.Look])
	}
	at := slices.IndexFunc(a.Primary.Rows, func(rows []LookRow) bool { return rows[0].Tau >= 1 })
	if at >= 0 && (a.Outcome == nil || at != a.Outcome.Look) {
		found = append(found, a.Looks[at])
	}
	return found
}

// hasBoundary reports whether the look could be significant.
func (r *LookRow) hasBoundary() bool { return r.Critical != nil && r.Difference.Interval != nil }

// Analysis has the results of all looks of a subject.
type Analysis struct {
	*Schedule
	Plan       *plan.Plan // of the declared question
	Primary    Question
	Ends       []LookRow      // of the subject, by treatment; none: it has not ended
	Outcome    *stats.Outcome // the winner or the loser; nil: none
	Guardrails []Guardrail
	Harm       []GuardrailStatus // of the primary metric, whose margin is the minimum effect, by treatment
	SecondaryP [][]float64       // of the last look, by declared secondary goal and treatment; NaN: unknown
	MismatchP  *float64          // the smallest p-value of the sample ratio at the end of any full day; nil: unknown
	Visitors   int64             // of all full days
	Days       []DayVisitors     // all full days, in order
	Returns    []ReturnsOf       // the questions whose orders change at different ages in the variations
}

// ReturnsOf says of a question that its orders change at different ages in the variations.
type ReturnsOf struct {
	Plan *plan.Plan // of the question
	*Returns
	Published time.Time // when its next look is published; zero: none is planned
	IsWaiting bool      // no look was published since
}

// ReturnsOfPlan returns what is known of the returns of a question; nil: no difference.
func (a *Analysis) ReturnsOfPlan(p *plan.Plan) *ReturnsOf {
	for i := range a.Returns {
		if of := a.Returns[i].Plan; of.Measure() == p.Measure() && of.Metric == p.Metric {
			return &a.Returns[i]
		}
	}
	return nil
}

// State returns the rows that the ledger would have: the results of the primary question's looks and of the end.
func (a *Analysis) State() (rows []LookRow) {
	for _, of := range slices.Concat(a.Primary.Rows, [][]LookRow{a.Ends}) {
		for _, row := range of {
			row.MismatchP = a.MismatchP // of any full day
			rows = append(rows, row)
		}
	}
	return rows
}

// Harmed returns the variations that harm a guardrail.
func (a *Analysis) Harmed() (variations []int64) {
	for _, g := range a.Guardrails {
		for t, of := range g.Status {
			if of.Status == Harmed {
				variations = append(variations, a.Plan.Variations[t+1].ID)
			}
		}
	}
	return variations
}

// DayVisitors has the visitors whose first view is on a day, by variation.
type DayVisitors struct {
	Start    time.Time
	Visitors map[int64]int64
}

// lookBytes is the approximate size of a look at a variation on one metric, and sequenceBytes that of the critical
// values of a comparison, both for 50 looks.
const (
	lookBytes     = 1 << 10
	sequenceBytes = 50 << 10
)

// Bytes returns the approximate size of the analysis.
func (a *Analysis) Bytes() int64 {
	metrics := 1 + len(a.Guardrails)
	return int64(metrics*len(a.Looks)*len(a.Plan.Variations)+len(a.Days)) * lookBytes
}

// Analyzer analyzes looks. It caches results by the sums of the looks, which only late events change.
type Analyzer struct{ cache *cache.Cache }

// NewAnalyzer returns an Analyzer.
func NewAnalyzer(results *cache.Cache) *Analyzer { return &Analyzer{results} }

// computeOnce returns the cached result for equal inputs, or calls compute. bytes is the size of the result.
func computeOnce[T any](a *Analyzer, bytes int, compute func() T, inputs ...any) T {
	type digest uint64
	text, err := json.Marshal(inputs)
	if err != nil {
		return compute()
	}
	found, _ := cache.ValueAt(a.cache, digest(xxhash.Sum64(text)), nil,
		func() (T, int64, error) { return compute(), int64(bytes), nil })
	return found
}

// Series returns the daily series of measures: for each, the steps of the visitors whose first view is at or after a
// time.
type Series func(
	since time.Time, measures []plan.Measure, timing plan.Timing,
) (map[plan.Measure][]moments.Step, error)

// readSums reads the daily series of measures since each cut, and returns a function for the sums of a plan.
func (read Series) readSums(
	cuts []time.Time, measures []plan.Measure, timing plan.Timing,
) (func(*plan.Plan) *DailySums, error) {
	steps := map[plan.Measure][][]moments.Step{}
	for _, cut := range cuts {
		found, err := read(cut, measures, timing)
		if err != nil {
			return nil, err
		}
		for _, of := range measures {
			steps[of] = append(steps[of], found[of])
		}
	}
	return func(p *plan.Plan) *DailySums { return newSums(p, cuts, steps[p.Measure()]) }, nil
}

// askedQuestion is the primary question or a guardrail, with its daily sums.
type askedQuestion struct {
	plan     *plan.Plan
	schedule *Schedule // of its looks, which wait for its conversion window, and until its orders have settled
	sums     *DailySums
	harm     harmData
}

// harmData has the days and sums in which harm is looked for. It waits neither for a conversion window nor for orders,
// so an event in a conversion window counts from when it happened.
type harmData struct {
	schedule *Schedule
	sums     *DailySums
}

// readQuestions reads the daily sums of the primary question and of the guardrails, in this order. It also returns a
// function for the sums of another plan of a declared measure.
func (read Series) readQuestions(
	p *plan.Plan, s *Schedule, recorded []Record,
) (asked []askedQuestion, sumsOf func(*plan.Plan) *DailySums, err error) {
	schedules := []*Schedule{s}
	var windowed []plan.Measure // those with a conversion window
	waits := s.waits()
	for i, question := range questionsOf(p) {
		if i > 0 {
			schedules = append(schedules, s.about(question, recorded))
		}
		if question.ConversionWindow.IsSet() {
			windowed = append(windowed, question.Measure())
		}
		waits = waits || schedules[i].waits()
	}
	open := s
	if waits {
		open = s.about(p.AboutMeasure(plan.Measure{GoalID: p.GoalID}), withoutReturns(recorded))
	}
	cuts := SeriesCuts(append(schedules, open)...)
	sumsOf, err = read.readSums(cuts, p.Declared.AllMeasures(), plan.OnFirstView)
	if err != nil {
		return nil, nil, err
	}
	eventSumsOf, err := read.readSums(cuts, plan.SortedMeasures(windowed), plan.OnEvent)
	if err != nil {
		return nil, nil, err
	}
	for i, question := range questionsOf(p) {
		of := askedQuestion{plan: question, schedule: schedules[i], sums: sumsOf(question)}
		of.harm = harmData{of.schedule, of.sums}
		if of.schedule.waits() {
			of.harm.schedule = open
		}
		if question.ConversionWindow.IsSet() {
			of.harm = harmData{open, eventSumsOf(question)}
		}
		asked = append(asked, of)
	}
	return asked, sumsOf, nil
}

// AnalyzeLooks returns the results of the looks at the declared question. p is the plan of this question, see
// plan.Plan.DeclaredPlan. recorded has the looks in the ledger, whose results do not change.
func (a *Analyzer) AnalyzeLooks(p *plan.Plan, s *Schedule, recorded []Record, series Series) (*Analysis, error) {
	asked, sumsOf, err := series.readQuestions(p, s, recorded)
	if err != nil {
		return nil, err
	}
	primary := &asked[0]
	guardrails := asked[1:]
	found := &Analysis{
		Schedule: s, Plan: p, Primary: a.analyzeQuestion(s, primary.sums, recorded), Ends: endRows(s, primary.sums),
		Returns: s.returnsOfAll(p, recorded),
	}
	found.Outcome = found.Primary.FindOutcome(alphaOf(p))
	found.Harm = a.guardrailOf(&primary.harm, stats.Margin{Relative: p.Rules.MDE / 100}, &found.Primary, recorded)
	for i := range guardrails {
		g := &guardrails[i]
		of := Guardrail{Question: a.analyzeQuestion(g.schedule, g.sums, recorded), Plan: g.plan}
		of.Status = a.guardrailOf(&g.harm, p.Declared.Guardrails[i].Margin, &of.Question, recorded)
		found.Guardrails = append(found.Guardrails, of)
	}
	if len(s.Looks) > 0 {
		for _, g := range p.Declared.Secondary {
			question := p.AboutMeasure(g.Measure).WithMetric(g.Metric)
			last := s.lastLookOf(question, recorded)
			found.SecondaryP = append(found.SecondaryP, adjustedP(s, last, sumsOf(question)))
		}
	}
	splits := found.addDays(primary.sums)
	least := computeOnce(a, 0, func() []*float64 { return leastMismatchPs(splits) }, "mismatch", splits)
	found.addMismatch(least, recorded)
	return found, nil
}

// lastLookOf returns the last look that has ended for another question, too; zero: none has. A question with a longer
// conversion window has fewer looks.
func (s *Schedule) lastLookOf(question *plan.Plan, recorded []Record) Look {
	last := s.Looks[len(s.Looks)-1]
	mature := s.about(question, recorded).Looks
	switch n := len(mature); {
	case last.Number <= n:
		return last
	case n == 0:
		return Look{}
	default:
		return mature[n-1]
	}
}

// addDays counts the visitors of each full day, and returns the split of all visitors until the end of each.
func (a *Analysis) addDays(sums *DailySums) (splits [][]stats.SharePeriod) {
	before := map[int64]int64{} // visitors by variation, until the end of the day before
	for _, end := range a.fullDays() {
		var periods []stats.SharePeriod
		through := map[int64]int64{} // the same until the end of the day
		a.Visitors = 0
		for _, st := range sums.strataUntil(a.days, end) {
			periods = append(periods,
				a.Plan.ObservedSplit(st.period, func(variation int64) int64 { return st.firstViews[variation] }))
			for variation, n := range st.firstViews {
				a.Visitors += n
				through[variation] += n
			}
		}
		today := DayVisitors{Start: end.Add(-day), Visitors: maps.Clone(through)}
		for variation, n := range before {
			today.Visitors[variation] -= n
		}
		a.Days = append(a.Days, today)
		splits = append(splits, periods)
		before = through
	}
	return splits
}

// addMismatch adds the p-value of the sample ratio: the smallest one at the end of any full day so far, of all visitors
// or, if the ledger has an alarm, of a segment. least has those of all visitors by full day.
func (a *Analysis) addMismatch(least []*float64, recorded []Record) {
	if len(least) > 0 {
		a.MismatchP = least[len(least)-1]
	}
	a.MismatchP = smaller(a.MismatchP, alarmUntil(recorded, schema.EndOfTime))
	for k, rows := range a.Primary.Rows {
		for t := range rows {
			if rows[t].RecordedAt.IsZero() {
				at := slices.IndexFunc(a.fullDays(), a.Looks[k].End.Equal)
				rows[t].MismatchP = smaller(least[at], alarmUntil(recorded, a.Looks[k].End))
			}
		}
	}
	for t := range a.Ends {
		a.Ends[t].MismatchP = a.MismatchP
	}
}

// endRows returns the rows of the end of a subject, by treatment; none if it has not ended. They are about the visitors
// of the whole weeks and of the full days after them.
func endRows(s *Schedule, sums *DailySums) (rows []LookRow) {
	if !s.HasEnd() {
		return nil
	}
	last := s.LastFullDay()
	strata := sums.strataUntil(s.sinceLooks(last.End), last.End)
	visitors := int64(0)
	for i := range strata {
		_, n := samplesOf(sums.plan, &strata[i])
		visitors += n
	}
	for _, v := range sums.plan.Variations[1:] {
		rows = append(rows, LookRow{
			Look: last, Kind: OfEnd, VariationID: v.ID, Visitors: visitors, Strata: rowStrata(sums.plan, strata, v.ID),
		})
	}
	return rows
}

// rowStrata returns the sums of control and a variation.
func rowStrata(p *plan.Plan, strata []stratum, variation int64) (rows []RowStratum) {
	for _, st := range strata {
		SpreadUnknown(p, st.counted)
		rows = append(rows, RowStratum{st.counted[p.Variations[0].ID], st.counted[variation]})
	}
	return rows
}

func alphaOf(p *plan.Plan) float64 {
	return stats.Options{SignificanceLevel: p.Rules.SignificanceLevel}.Alpha()
}

// LookData are the sums of one look.
type LookData struct {
	Look
	Tau      float64
	Visitors int64
	Strata   []StratumData
}

// StratumData has the samples of all variations in one period of equal shares.
type StratumData struct {
	Samples     []stats.Sample
	Shares      []float64
	NonNegative bool
}

// samplesOf returns the samples of a stratum, and its counted visitors.
func samplesOf(p *plan.Plan, s *stratum) (StratumData, int64) {
	data := StratumData{Shares: p.SharePeriods[s.period].Shares, NonNegative: true}
	visitors := int64(0)
	SpreadUnknown(p, s.counted)
	for _, v := range p.Variations {
		m := s.counted[v.ID]
		visitors += m.Visitors
		data.Samples = append(data.Samples, SampleOfQuestion(&m, &p.Question))
		capped := m.WithCappedValues()
		data.NonNegative = data.NonNegative && NeverNegativeIn(&capped, &p.Question)
	}
	return data, visitors
}

// strataOf returns the strata of control and a treatment, and whether no value is negative.
func strataOf(all []StratumData, treatment int) (strata []stats.Stratum, nonNegative bool) {
	nonNegative = true
	for _, s := range all {
		strata = append(strata, stats.Stratum{
			Control: s.Samples[0], Treatment: s.Samples[treatment+1],
			SmallerShare: stats.SmallerShare(s.Shares, treatment),
		})
		nonNegative = nonNegative && s.NonNegative
	}
	return strata, nonNegative
}

// analyzeQuestion returns the looks at a question.
func (a *Analyzer) analyzeQuestion(s *Schedule, sums *DailySums, recorded []Record) Question {
	p := sums.plan
	if len(s.Looks) == 0 || len(p.Variations) < 2 {
		return Question{}
	}
	var data []LookData
	var most int64
	for _, l := range s.Looks {
		d := LookData{Look: l}
		for _, st := range sums.strataUntil(s.LookWindows(l.End), l.End) {
			samples, visitors := samplesOf(p, &st)
			d.Strata = append(d.Strata, samples)
			d.Visitors += visitors
		}
		most = max(most, d.Visitors)
		d.Tau = float64(l.Days) / float64(s.rules.PlannedDays)
		if s.rules.PlannedVisitors > 0 {
			d.Tau = float64(most) / float64(s.rules.PlannedVisitors)
		}
		data = append(data, d)
	}
	var own []LookRow
	for _, r := range recorded {
		if r.isAbout(p) && r.Kind == OfLook {
			own = append(own, r.LookRow)
		}
	}
	q := a.analyzeSums(p, s, data, own)
	q.Rows = slices.Clone(q.Rows) // of the cache
	for k, look := range s.Looks {
		q.Rows[k] = slices.Clone(q.Rows[k])
		if !slices.ContainsFunc(q.Rows[k], func(r LookRow) bool { return r.RecordedAt.IsZero() }) {
			continue
		}
		strata := sums.strataUntil(s.LookWindows(look.End), look.End)
		for t := range q.Rows[k] {
			if row := &q.Rows[k][t]; row.RecordedAt.IsZero() {
				row.Strata = rowStrata(p, strata, row.VariationID)
			}
		}
	}
	return q
}

// analyzeSums computes the looks from their sums. Recorded results do not change. If later data
// give another result at the same critical value, Recomputed has it.
func (a *Analyzer) analyzeSums(p *plan.Plan, s *Schedule, data []LookData, recorded []LookRow) Question {
	shares := s.firstShares(p)
	treatments := len(p.Variations) - 1
	compute := func() Question {
		q := Question{Rows: make([][]LookRow, len(data))}
		for t := range treatments {
			for k, row := range a.analyzeVariation(p, shares, data, t, recorded) {
				q.Rows[k] = append(q.Rows[k], row)
			}
		}
		if p.Rules.Methodology == catalogue.Bayesian {
			for k := range data {
				addPosterior(p, q.Rows[k], data[k].Strata)
			}
		}
		return q
	}
	return computeOnce(a, len(data)*treatments*lookBytes, compute, "looks", p.Rules.Methodology,
		p.Rules.SignificanceLevel, p.Rules.Prior, shares, p.Metric, p.Variations, data, recorded)
}

// analyzeVariation returns the results of the looks at a treatment, see AnalyzeTreatment. A variation that was added to
// the plan later has none.
func (a *Analyzer) analyzeVariation(
	p *plan.Plan, shares []float64, data []LookData, treatment int, recorded []LookRow,
) []LookRow {
	variation := &p.Variations[treatment+1]
	if variation.Added {
		return RowsWithout(data, variation.ID, stats.ReasonPlanChanged)
	}
	known, results := map[int]LookRow{}, map[int]stats.LookResult{}
	for _, r := range recorded {
		if r.VariationID == variation.ID {
			known[r.Number-1] = r
			results[r.Number-1] = stats.LookResult{Point: r.Point, Critical: r.Critical, Reason: r.Reason}
		}
	}
	sequenceOf := func(points []stats.LookPoint) *stats.LookSequence {
		// Late conversions do not change the critical values.
		return computeOnce(a, sequenceBytes, func() *stats.LookSequence {
			return stats.NewLookDesign(alphaOf(p), shares).NewSequence(points, results)
		}, "sequence", alphaOf(p), shares, points, results)
	}
	return AnalyzeTreatment(data, treatment, variation.ID, known, sequenceOf)
}

// addPosterior adds the results of the Bayesian comparison of a look to its rows.
func addPosterior(p *plan.Plan, rows []LookRow, strata []StratumData) {
	if len(strata) == 0 {
		return
	}
	o := stats.Options{
		SignificanceLevel: p.Rules.SignificanceLevel, Methodology: stats.MethodologyBayesian, Prior: p.Rules.Prior,
	}
	_, o.NonNegative = strataOf(strata, 0)
	if len(strata) == 1 {
		o.Shares = strata[0].Shares
		AddChances(rows, stats.Compare(strata[0].Samples[0], strata[0].Samples[1:], o))
		return
	}
	periods := make([]stats.Period, len(strata))
	for i, s := range strata {
		periods[i] = stats.Period{Samples: s.Samples, Shares: s.Shares}
	}
	last := strata[len(strata)-1].Samples // the chances need no pooled samples
	AddChances(rows, stats.ComparePeriods(last, periods, o))
}

// AnalyzeTreatment returns the results of looks at a treatment. sequence returns the critical values of the looks.
// Rows in known, by index, keep their results; if today's sums give another one, Recomputed has it.
func AnalyzeTreatment(
	data []LookData, treatment int, id int64, known map[int]LookRow,
	sequence func([]stats.LookPoint) *stats.LookSequence,
) []LookRow {
	points, strata := make([]stats.LookPoint, len(data)), make([][]stats.Stratum, len(data))
	nonNegative := make([]bool, len(data))
	for k, look := range data {
		strata[k], nonNegative[k] = strataOf(look.Strata, treatment)
		points[k] = stats.LookPoint{
			Tau: look.Tau, Information: stats.LookInformation(strata[k], nonNegative[k]),
		}
	}
	critical := sequence(points)
	rows := RowsWithout(data, id, "")
	isEqual := func(a, b *float64) bool {
		if a == nil || b == nil {
			return a == b
		}
		return *a == *b
	}
	for k := range rows {
		today := critical.AnalyzeLook(k, strata[k], nonNegative[k])
		row, isKnown := known[k]
		switch {
		case !isKnown:
			row = rows[k]
			row.LookResult = today
			row.PValue = critical.PValue(k, today)
		case today.Reason == stats.ReasonRateUnknown: // then today's result is not known
		case !isEqual(today.Z, row.Z) || points[k].Information != row.Point.Information:
			row.Recomputed = &today
		}
		rows[k] = row
	}
	return rows
}

// RowsWithout returns the rows of looks at a treatment that have no result, for a reason.
func RowsWithout(data []LookData, id int64, reason stats.Reason) []LookRow {
	rows := make([]LookRow, len(data))
	for k, look := range data {
		rows[k] = LookRow{Look: look.Look, Kind: OfLook, VariationID: id, Visitors: look.Visitors, Tau: look.Tau}
		rows[k].Reason, rows[k].Difference.Reason, rows[k].Lift.Reason = reason, reason, reason
	}
	return rows
}

// AddChances adds the chances to beat control to the unrecorded rows of a look. Without data, the chance is 1/2.
func AddChances(rows []LookRow, compared []stats.Comparison) {
	for i, c := range compared {
		chance := 0.5
		if c.Bayesian.ChanceToBeatControl != nil {
			chance = *c.Bayesian.ChanceToBeatControl
		}
		if rows[i].RecordedAt.IsZero() {
			rows[i].Chance = &chance
		}
	}
}

// adjustedP returns the fixed-horizon p-values of all visitors of a look, adjusted for the number of treatments.
func adjustedP(s *Schedule, last Look, sums *DailySums) []float64 {
	p := sums.plan
	all := map[int64]moments.Moments{}
	for _, st := range sums.strataUntil(s.LookWindows(last.End), last.End) {
		for id, m := range st.counted {
			all[id] = all[id].Merge(m)
		}
	}
	data, _ := samplesOf(p, &stratum{period: len(p.SharePeriods) - 1, counted: all})
	o := stats.Options{SignificanceLevel: p.Rules.SignificanceLevel, Shares: data.Shares, NonNegative: data.NonNegative}
	found := make([]float64, len(data.Samples)-1)
	for i, c := range stats.Compare(data.Samples[0], data.Samples[1:], o) {
		found[i] = math.NaN()
		if c.Frequentist.AdjustedPValue != nil {
			found[i] = *c.Frequentist.AdjustedPValue
		}
	}
	return found
}

// waitsForRate reports whether the row is not known because amounts are in another currency.
func (r *LookRow) waitsForRate(p *plan.Plan) bool {
	return readsAmounts(&p.Question) && slices.ContainsFunc(r.Strata, func(s RowStratum) bool {
		return s.Control.Unknown+s.Variation.Unknown > 0
	})
}

// ComputedRecords returns the rows of the looks, and of the end of the subject, that are computed from the events and
// are not in the ledger, as records without a time.
func (a *Analysis) ComputedRecords() (records []Record) {
	add := func(p *plan.Plan, all ...[]LookRow) {
		for _, rows := range all {
			for i := range rows {
				if rows[i].RecordedAt.IsZero() {
					records = append(records, Record{DeclarationOf(a.Plan), p.Measure(), p.Metric, rows[i]})
				}
			}
		}
	}
	add(a.Plan, append(slices.Clip(a.Primary.Rows), a.Ends)...)
	for i, question := range questionsOf(a.Plan)[1:] {
		add(question, a.Guardrails[i].Rows...)
	}
	return records
}

// UnrecordedLooks returns the looks, the harm and the end that are not recorded and ended after the first view was
// accepted. Earlier ones are of imported data. now is the time of recording.
func (a *Analysis) UnrecordedLooks(now time.Time) []Record {
	var records []Record
	record := func(p *plan.Plan, row LookRow) {
		if row.RecordedAt.IsZero() && row.End.After(a.FirstView.Accepted) && !row.waitsForRate(p) {
			row.RecordedAt, row.FirstDay = now, a.days[0].From
			records = append(records, Record{DeclarationOf(a.Plan), p.Measure(), p.Metric, row})
		}
	}
	add := func(p *plan.Plan, q *Question, harm []GuardrailStatus) {
		for _, rows := range q.Rows {
			for _, row := range rows {
				record(p, row)
			}
		}
		for t, s := range harm {
			if s.Status == Harmed && !s.recorded {
				record(p, LookRow{
					Look: Look{End: s.DecidedAt}, Kind: OfHarm, VariationID: p.Variations[t+1].ID,
					Upper: s.Upper,
				})
			}
		}
	}
	add(a.Plan, &a.Primary, a.Harm)
	for _, row := range a.Ends {
		record(a.Plan, row)
	}
	for i, question := range questionsOf(a.Plan)[1:] {
		add(question, &a.Guardrails[i].Question, a.Guardrails[i].Status)
	}
	return records
}
