package looks

import (
	"math"
	"slices"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

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

func alphaOf(p *plan.Plan) float64 {
	return stats.Options{SignificanceLevel: p.Rules.SignificanceLevel}.Alpha()
}
