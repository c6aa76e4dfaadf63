package result

import (
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// Parts are the parts of a metric with each value of a text, such as the revenue of each product. All have the same
// denominator: the visitors of the report.
type Parts struct {
	By       string `json:"by"`       // the text
	Additive bool   `json:"additive"` // whether the parts add up to the metric
	Items    []Part `json:"items"`    // of the values with most visitors first; (other) are all others together
}

// Part is the part of a metric with one value of a text.
type Part struct {
	Value      string          `json:"value"`
	Label      string          `json:"label,omitempty"` // the latest name of a product
	Variations []PartVariation `json:"variations"`
}

// PartVariation is a part of a metric of one variation.
type PartVariation struct {
	ID         int64         `json:"id"`
	Metric     *MetricResult `json:"metric"`
	Comparison *Comparison   `json:"comparison"` // null for control, and if nothing is compared
}

// AddParts adds the parts of the metric with each value of the text by which the request splits it. Without a
// price, nothing has evidence.
func (r *Report) AddParts(p *plan.Plan, found *moments.Rows, split *moments.Split, price *Price) {
	r.Parts = &Parts{
		By: p.Split.Name, Additive: p.Written.IsAdditiveOver(*p.Split), Items: make([]Part, len(split.Values)),
	}
	onAllCores(len(split.Values), func(i int) {
		of := &split.Values[i]
		sums := sumRows(withPairs(found.Whole, of.Rows), p)
		r.Parts.Items[i] = Part{Value: ShownValue(of.Value), Label: of.Label, Variations: sums.compareParts(p)}
		if price != nil {
			r.Parts.Items[i].addEvidence(p, of.Value, &r.Checks, &sums, price)
		}
	})
	if split.Others != nil {
		sums := sumRows(withPairs(found.Whole, split.Others), p)
		r.Parts.Items = append(r.Parts.Items, Part{Value: otherValues, Variations: sums.compareParts(p)})
	}
}

// withPairs returns the rows of visitors with other sums of the metric.
func withPairs(visitors, pairs []moments.GroupMoments) []moments.GroupMoments {
	of := map[moments.GroupKey]moments.Moments{}
	for i := range pairs {
		of[pairs[i].GroupKey] = pairs[i].Moments
	}
	rows := make([]moments.GroupMoments, len(visitors))
	for i, row := range visitors {
		part := of[row.GroupKey]
		row.Pair = part.Pair
		row.Unknown = part.Unknown
		if row.Pair.X.Sum == nil {
			row.Pair = moments.NoPair()
		}
		rows[i] = row
	}
	return rows
}

// compareParts returns the part of each variation, and compares it with that of control.
func (c *sliceSums) compareParts(p *plan.Plan) (parts []PartVariation) {
	options := statsOptions(p)
	for _, v := range p.Variations {
		m := c.counted[v.ID]
		parts = append(parts, PartVariation{ID: v.ID, Metric: newMetricResult(&m, p, options)})
	}
	if len(p.Variations) == 0 || !p.Rules.Compare {
		return parts
	}
	comparisons, _ := c.compareSamples(p, options)
	for i, comparison := range comparisons {
		parts[i+1].Comparison = NewComparison(comparison)
	}
	return parts
}

// addEvidence adds the evidence to the comparisons of a part with a value of the split.
func (part *Part) addEvidence(p *plan.Plan, value string, checks *Checks, sums *sliceSums, price *Price) {
	of := *price.question
	of.Split = &metric.SplitRow{Field: *p.Split, Value: value}
	comparisons := make([]*Comparison, len(part.Variations))
	for i := range part.Variations {
		comparisons[i] = part.Variations[i].Comparison
	}
	price.addEvidence(p, &of, checks, sums, comparisons)
}
