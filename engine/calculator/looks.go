package calculator

import (
	"math"
	"slices"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

// lookRow is the result of one treatment at one look.
type lookRow struct {
	stats.LookResult
	pValue    *float64
	chance    *float64 // to beat control; nil unless the methodology is Bayesian
	direction int      // 1: the look found the treatment better, -1: worse
}

// looks holds the results by look and treatment.
type looks struct {
	rows    [][]lookRow
	outcome *stats.Outcome // nil: no look found a winner or loser
}

// analyze analyzes all looks of all treatments.
func (q *Input) analyze(order []int) *looks {
	all := &looks{}
	if len(q.Looks) == 0 {
		return all
	}
	shares, o := q.lookShares(order), q.options(order)
	design := stats.NewLookDesign(o.Alpha(), shares)
	sequences := make([]*stats.LookSequence, len(order)-1)
	for t := range sequences {
		sequences[t] = design.NewSequence()
	}
	var findings [][]stats.Finding
	for _, look := range q.Looks {
		samples := q.samples(look.Variations, order)
		var compared []stats.Comparison
		if q.Methodology == stats.MethodologyBayesian {
			compared = stats.Compare(samples[0], samples[1:], o)
		}
		rows := make([]lookRow, len(sequences))
		for t, sequence := range sequences {
			row := &rows[t]
			if shares[0] == 0 || shares[t+1] == 0 {
				row.Reason, row.Difference.Reason, row.Lift.Reason = stats.ReasonNoTraffic, stats.ReasonNoTraffic, stats.ReasonNoTraffic
				continue
			}
			stratum := stats.Stratum{Control: samples[0], Treatment: samples[t+1]}
			if q.Variations[0].Share != nil {
				stratum.SmallerShare = math.Min(shares[0], shares[t+1]) / (shares[0] + shares[t+1])
			}
			row.LookResult = sequence.Analyze(look.Tau, []stats.Stratum{stratum}, o.NonNegative)
			row.pValue, row.direction = sequence.PValue(row.LookResult), row.Direction()
			if compared != nil {
				row.chance, row.direction = compared[t].Bayesian.ChanceToBeatControl, 0
			}
			if row.chance != nil {
				row.direction = row.BayesianDirection(*row.chance, o.Alpha())
			}
		}
		all.rows, findings = append(all.rows, rows), append(findings, findingsOf(rows))
	}
	all.outcome = stats.ConcludeLooks(findings)
	return all
}

func findingsOf(rows []lookRow) []stats.Finding {
	findings := make([]stats.Finding, len(rows))
	for t, row := range rows {
		if row.direction != 0 {
			findings[t] = stats.Finding{Direction: row.direction, Difference: *row.Difference.Value}
		}
	}
	return findings
}

// lookShares returns the shares at the first look, control first: the given ones, or else
// the observed ones. They are equal if a variation has no visitors at the first look.
func (q *Input) lookShares(order []int) []float64 {
	if q.Variations[0].Share != nil {
		return shares(q.Variations, order)
	}
	observed := shares(q.Looks[0].Variations, order)
	if slices.Min(observed) == 0 {
		return slices.Repeat([]float64{1}, len(observed))
	}
	return observed
}

// supports reports whether a look found what the verdict on a treatment says.
func (l *looks) supports(treatment int, verdict stats.Verdict) bool {
	want := map[stats.Verdict]int{stats.VerdictBetter: 1, stats.VerdictWorse: -1}[verdict]
	return want != 0 && slices.ContainsFunc(l.rows, func(rows []lookRow) bool { return rows[treatment].direction == want })
}

// sequential returns the last look of a treatment; nil: there is none.
func (l *looks) sequential(treatment int) *result.Sequential {
	number := len(l.rows)
	if number == 0 {
		return nil
	}
	row := &l.rows[number-1][treatment]
	return &result.Sequential{
		Look: &number, PValue: row.pValue, Difference: boundsOf(row.Difference.Interval), Improvement: boundsOf(row.Lift.Interval),
		Significant: row.Significant, Reason: row.Reason, ImprovementReason: row.Lift.Reason,
	}
}

// shown returns the looks for the answer.
func (l *looks) shown(q *Input, order []int) []AnswerLook {
	var all []AnswerLook
	for k, rows := range l.rows {
		look := AnswerLook{Number: k + 1, Tau: q.Looks[k].Tau, Visitors: visitorsOf(q.Looks[k].Variations)}
		for i, v := range q.Variations {
			if !v.Control {
				look.Variations = append(look.Variations, rows[slices.Index(order, i)-1].shown(v.ID))
			}
		}
		all = append(all, look)
	}
	return all
}

func (r *lookRow) shown(id int64) LookComparison {
	return LookComparison{
		ID: id, CriticalValue: r.Critical, Z: r.Z, PValue: r.pValue, Difference: effectOf(r.Difference), Improvement: effectOf(r.Lift),
		ChanceToBeatControl: r.chance, Significant: r.Significant, Reason: r.Reason,
	}
}

func effectOf(e stats.Effect) result.Effect {
	return result.Effect{Value: e.Value, Interval: boundsOf(e.Interval), Reason: e.Reason}
}

func boundsOf(in *stats.Interval) *result.Bounds {
	if in == nil {
		return nil
	}
	return &result.Bounds{in.Lower, in.Upper}
}

// visitorsOf returns the number of visitors over all variations.
func visitorsOf(variations []Variation) int64 {
	var n int64
	for i := range variations {
		n += variations[i].Visitors
	}
	return n
}
