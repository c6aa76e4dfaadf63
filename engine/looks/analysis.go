// Package looks schedules the looks of a subject and computes the result of each look: a group sequential test with one
// error budget over all looks of a campaign.
package looks

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/cespare/xxhash/v2"
)

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
	FollowUp   []Reading         // by declared window
}

// ReturnsOf says of a question that its orders change at different ages in the variations.
type ReturnsOf struct {
	Plan *plan.Plan // of the question
	*Returns
	Published time.Time // when its next look is published; zero: none is planned
	IsWaiting bool      // no look was published since
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
	return found, found.readFollowUp(recorded, series)
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

// RecordsToCome is like ComputedRecords, with the first full day. A schedule takes the looks of these records as ended.
func (a *Analysis) RecordsToCome() []Record {
	records := a.ComputedRecords()
	for i := range records {
		records[i].FirstDay = a.days[0].From
	}
	return records
}

// UnrecordedLooks returns the looks, the harm, the end and the readings that are not recorded and ended after the first
// view was accepted. Earlier ones are of imported data. now is the time of recording.
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
	for i := range a.FollowUp {
		for _, row := range a.FollowUp[i].Rows {
			record(a.FollowUp[i].Plan, row)
		}
	}
	return records
}
