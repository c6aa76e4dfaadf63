package result

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Curve is the metric of a report by the visitors' age: the time since the first view. All points are about the same
// visitors, those of a cohort, and cumulative: the last point is the report with a conversion window of all days.
type Curve struct {
	Cohort   Cohort       `json:"cohort"`
	Critical *float64     `json:"critical"` // of the simultaneous intervals; null: there are none
	Points   []CurvePoint `json:"points"`
	Novelty  []Novelty    `json:"novelty"` // of each variation but control
}

// Cohort are the visitors of a curve: those whose first view was at least Days days ago.
type Cohort struct {
	Days             int   `json:"days"`
	Visitors         int64 `json:"visitors"`         // before exclusion
	ImmatureVisitors int64 `json:"immatureVisitors"` // the other visitors of the report's period
}

// CurvePoint has the events of the first Day days after the first view.
type CurvePoint struct {
	Day        int              `json:"day"`
	Variations []CurveVariation `json:"variations"`
}

// CurveVariation is a variation at a point. Comparison has the intervals of a single test. All intervals of
// Simultaneous together have the error rate of the report.
type CurveVariation struct {
	ID           int64         `json:"id"`
	Value        *float64      `json:"value"`
	Comparison   *CurveEffects `json:"comparison"`   // null for control
	Simultaneous *CurveEffects `json:"simultaneous"` // null for control
}

// CurveEffects are the effects of a variation at a point.
type CurveEffects struct {
	Difference  stats.Effect `json:"difference"`
	Improvement stats.Effect `json:"improvement"`
}

// Novelty says whether the lift of a variation changes with age. If the variation converts r times what control
// converts at every age, then the age of the first conversion has the same distribution in both, whatever r is. The
// p-value is that of Welch's test on this age, adjusted for the number of variations.
type Novelty struct {
	ID      int64        `json:"id"`
	MeanAge MeanAge      `json:"meanAge"`
	PValue  *float64     `json:"pValue"`
	Finding string       `json:"finding,omitempty"` // Fades or Grows, only of the look that decides; empty: it is not known
	Reason  stats.Reason `json:"reason,omitempty"`  // of a missing p-value
	Text    string       `json:"text"`
}

// MeanAge has the mean age of first conversions, in days.
type MeanAge struct {
	Control   *float64 `json:"control"`
	Variation *float64 `json:"variation"`
}

// The findings: the conversions of the variation come earlier than those of control, or later.
const (
	Fades = "fades"
	Grows = "grows"
)

const millisecondsPerDay = int64(24 * time.Hour / time.Millisecond)

// NewCurve returns the curve of a plan. steps has what each day of age adds to the sums of the cohort, and whole the
// rows of the report.
func NewCurve(p *plan.Plan, days int, steps []moments.Step, whole []moments.Row) *Curve {
	// Add up the days.
	through := sumSteps(p, steps, 0, days)
	last, all := &through[days-1], sumRows(whole, p)
	c := &Curve{
		Cohort: Cohort{Days: days, Visitors: last.visitors - sumOf(maps.Values(last.immature))},
		Points: make([]CurvePoint, days), Novelty: []Novelty{},
	}
	c.Cohort.ImmatureVisitors = all.visitors - c.Cohort.Visitors

	// Compare the variations at each point, with both critical values.
	options := statsOptions(p)
	if level := stats.NewLookDesign(options.Alpha(), options.Shares).Level; level > 0 && len(p.Variations) > 1 {
		information := make([]float64, days) // of each point up to a factor, see stats.SimultaneousCritical
		for day := range through {
			total := moments.Moments{}
			for _, v := range p.Variations {
				total = total.Merge(through[day].counted[v.ID])
			}
			switch s := looks.SampleOf(&total, p.Metric).(type) {
			case stats.Rate:
				information[day] = float64(s.Converted) / float64(s.Visitors-s.Converted)
			case stats.Mean:
				information[day] = s.Variance
			}
		}
		c.Critical = new(stats.SimultaneousCritical(information, level))
	}
	onAllCores(days, func(day int) {
		point := CurvePoint{Day: day + 1}
		single := through[day].compareVariations(p)
		var together []stats.Comparison
		if c.Critical != nil {
			options := options
			options.Critical = *c.Critical
			together, _ = through[day].compareSamples(p, options)
		}
		for i, v := range single.Variations {
			shown := CurveVariation{ID: v.ID, Value: v.Metrics.EstimateOf(p.Metric).Value}
			if i > 0 && v.Comparison != nil {
				shown.Comparison = &CurveEffects{v.Comparison.Difference, v.Comparison.Improvement}
			}
			if i > 0 && together != nil {
				shown.Simultaneous = &CurveEffects{together[i-1].Difference, together[i-1].Lift}
			}
			point.Variations = append(point.Variations, shown)
		}
		c.Points[day] = point
	})

	// Compare the ages of first conversions.
	samples := make([]stats.Sample, len(p.Variations))
	ages := make([]*float64, len(p.Variations))
	few := false
	for i, v := range p.Variations {
		m := last.counted[v.ID]
		sample := m.FirstAge.Mean(m.Converted, millisecondsPerDay)
		sample.Nonzero = m.Converted
		if samples[i] = sample; m.Converted > 0 {
			ages[i] = &sample.Mean
		}
		few = few || m.Converted < 20
	}
	if len(samples) < 2 || !p.Rules.Compare {
		return c
	}
	o := stats.Options{SignificanceLevel: 95, Shares: options.Shares}
	for i, x := range stats.Compare(samples[0], samples[1:], o) {
		n := Novelty{ID: p.Variations[i+1].ID, MeanAge: MeanAge{ages[0], ages[i+1]}}
		if n.PValue, n.Reason = x.Frequentist.AdjustedPValue, x.Frequentist.Reason; few {
			n.PValue, n.Reason = nil, stats.ReasonTooFewConversions
		}
		n.Text = n.inWords(p.Variations[0].Name, p.Variations[i+1].Name)
		c.Novelty = append(c.Novelty, n)
	}
	return c
}

// inWords returns a sentence. Without a finding, nothing is known, which does not mean that the effect is constant.
func (n *Novelty) inWords(control, variation string) string {
	says := "It is not known yet whether the effect of " + variation + " changes with exposure: "
	if n.PValue == nil {
		return says + "there are too few conversions."
	}
	if n.Finding != "" {
		says = "The effect of " + variation + " " + n.Finding + " with exposure: "
	}
	return says + fmt.Sprintf("first conversions come after %s in %s and %s in %s (%s).",
		inDays(*n.MeanAge.Variation), variation, inDays(*n.MeanAge.Control), control, wording.PValueInWords(*n.PValue))
}

// AddNovelty adds what a look that decides found about novelty to the curve, and to the text of a decision about a
// variation. Of two looks, the first finding counts. It changes no decision.
func (r *Report) AddNovelty(atLook []Novelty) {
	// Half of the accepted error rate, because at most two looks may find novelty: the one that concludes, and the
	// first one at the end of the plan.
	const alpha = 0.025
	for i := range atLook {
		n := &atLook[i]
		if n.PValue == nil || *n.PValue >= alpha || slices.Contains(r.novel, n.ID) {
			continue
		}
		finding := Grows
		if *n.MeanAge.Variation < *n.MeanAge.Control {
			finding = Fades
		}
		r.novel = append(r.novel, n.ID)
		if r.Curve != nil {
			if at := slices.IndexFunc(r.Curve.Novelty, func(o Novelty) bool { return o.ID == n.ID }); at >= 0 {
				shown := &r.Curve.Novelty[at]
				shown.Finding = finding
				treatment := slices.IndexFunc(r.Variations, func(v VariationResults) bool { return v.ID == n.ID })
				shown.Text = shown.inWords(r.Variations[0].Name, r.Variations[treatment].Name)
			}
		}
		if d := r.Decision; d != nil && d.VariationID != nil && *d.VariationID == n.ID {
			days, when := *n.MeanAge.Control-*n.MeanAge.Variation, "earlier"
			if finding == Grows {
				days, when = -days, "later"
			}
			d.Text += fmt.Sprintf(" Its effect %s with exposure: conversions come %s %s.", finding, inDays(days), when)
		}
	}
}

func inDays(days float64) string { return wording.FormatNumber(days, 1) + " days" }

// Distribution has the counted goal events of each variation by their value. A cap does not apply: it limits totals of
// visitors.
type Distribution struct {
	// Ascending: from the first to the last one from 0.01 with events, and before them others with events.
	Bins []DistributionBin `json:"bins"`
}

// DistributionBin has the goal events with values in [From, To).
type DistributionBin struct {
	From  *Money  `json:"from"`  // null: no bound
	To    *Money  `json:"to"`    // null: no bound
	Goals []int64 `json:"goals"` // in the order of the variations
}

// ValueBins returns the lower bounds of the bins, in 1/schema.MoneyScale: of values below 0, of 0, of values below
// 0.01, and then ten for each power of ten. These are the preferred numbers of the series R10 (ISO 3), which are round
// and about equally wide on a logarithmic scale.
func ValueBins() []int64 {
	const most = schema.MaxMoney * schema.MoneyScale
	bins := []int64{-most, 0, 1}
	for power := int64(schema.MoneyScale / 100); power <= most; power *= 10 {
		for _, hundredths := range []int64{100, 125, 160, 200, 250, 315, 400, 500, 630, 800} {
			bins = append(bins, power*hundredths/100)
		}
	}
	return bins
}

// positiveBins is the number of bins before that of 0.01.
const positiveBins = 3

// NewDistribution returns the distribution of a report. steps has the goal events by the lower bound of their bin.
func NewDistribution(p *plan.Plan, steps []moments.Step) *Distribution {
	bounds, index := ValueBins(), map[int64]int{}
	for i, bound := range bounds {
		index[bound] = i
	}
	goals, all := make([][]int64, len(bounds)), make([]int64, len(bounds))
	for i := range goals {
		goals[i] = make([]int64, len(p.Variations))
	}
	for _, s := range steps {
		if s.MultiExposed && p.MultipleExposures == catalogue.ExcludeMultiExposed {
			continue
		}
		for v := range p.Variations {
			if p.Variations[v].ID == s.VariationID {
				goals[index[s.Bucket]][v] += s.GoalsReached()
				all[index[s.Bucket]] += s.GoalsReached()
			}
		}
	}
	first, last := len(bounds), 0
	for i := len(bounds) - 1; i >= positiveBins; i-- {
		if all[i] > 0 {
			first, last = i, max(i, last)
		}
	}
	found := &Distribution{Bins: []DistributionBin{}}
	bound := func(i int) *Money { return &Money{Units: big.NewInt(bounds[i])} }
	for i := range bounds {
		if (i >= positiveBins || all[i] == 0) && (i < first || i > last) {
			continue
		}
		bin := DistributionBin{Goals: goals[i]}
		if i > 0 {
			bin.From = bound(i)
		}
		if i+1 < len(bounds) {
			bin.To = bound(i + 1)
		}
		found.Bins = append(found.Bins, bin)
	}
	return found
}
