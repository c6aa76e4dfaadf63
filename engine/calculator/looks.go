package calculator

import (
	"math"
	"slices"

	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// analyzeLooks analyzes all looks of all treatments.
func (q *Input) analyzeLooks(order []int) *looks.Question {
	all := &looks.Question{Rows: make([][]looks.Row, len(q.Looks))}
	if len(q.Looks) == 0 {
		return all
	}
	shares, o := q.lookShares(order), q.statsOptions(order)
	design := stats.NewLookDesign(o.Alpha(), shares)
	for t, i := range order[1:] {
		var points []stats.LookPoint
		var strata [][]stats.Stratum
		for k, look := range q.Looks {
			samples := q.statsSamples(look.Variations, order)
			stratum := stats.Stratum{Control: samples[0], Treatment: samples[t+1]}
			if q.Variations[0].Share != nil {
				stratum.SmallerShare = math.Min(shares[0], shares[t+1]) / (shares[0] + shares[t+1])
			}
			strata = append(strata, []stats.Stratum{stratum})
			points = append(points, stats.LookPoint{Tau: look.Tau, Information: stats.LookInformation(strata[k], o.NonNegative)})
		}
		sequence := design.NewSequence(points, nil)
		for k, look := range q.Looks {
			row := looks.Row{Look: looks.Look{Number: k + 1}, VariationID: q.Variations[i].ID, Tau: look.Tau, Visitors: visitorsOf(look.Variations)}
			if shares[0] == 0 || shares[t+1] == 0 {
				row.Reason, row.Difference.Reason, row.Lift.Reason = stats.ReasonNoTraffic, stats.ReasonNoTraffic, stats.ReasonNoTraffic
			} else {
				row.LookResult = sequence.AnalyzeLook(k, strata[k], o.NonNegative)
				row.PValue = sequence.PValue(k, row.LookResult)
			}
			all.Rows[k] = append(all.Rows[k], row)
		}
	}
	if q.Methodology == stats.MethodologyBayesian {
		for k, look := range q.Looks {
			samples := q.statsSamples(look.Variations, order)
			looks.AddChances(all.Rows[k], stats.Compare(samples[0], samples[1:], o))
		}
	}
	return all
}

// lookShares returns the shares at the first look, control first: the given shares, or else the
// observed ones. All shares are equal if a variation has no visitors at the first look.
func (q *Input) lookShares(order []int) []float64 {
	if q.Variations[0].Share != nil {
		return expectedShares(q.Variations, order)
	}
	observed := expectedShares(q.Looks[0].Variations, order)
	if slices.Min(observed) == 0 {
		return slices.Repeat([]float64{1}, len(observed))
	}
	return observed
}

// shownLooks returns the looks for the answer, with the variations in the order of the input.
func (q *Input) shownLooks(found *looks.Question) []AnswerLook {
	var all []AnswerLook
	for _, rows := range found.Rows {
		look := AnswerLook{Number: rows[0].Number, Tau: rows[0].Tau, Visitors: rows[0].Visitors}
		for _, v := range q.Variations {
			if at := slices.IndexFunc(rows, func(r looks.Row) bool { return r.VariationID == v.ID }); at >= 0 {
				look.Variations = append(look.Variations, result.NewLookVariation(&rows[at]))
			}
		}
		all = append(all, look)
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
