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
// visitors, those of a cohort, and cumulative: the last point is the report with a conversion window of all days. A
// curve of more than mostPoints days has a point at the end of every few days, and of the last day.
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
func NewCurve(p *plan.Plan, days int, steps []moments.Step, whole []moments.GroupMoments) *Curve {
	ends := curveEnds(days)
	byDay := sumSteps(p, steps, 0, days)
	through := make([]sliceSums, len(ends))
	for i, end := range ends {
		through[i] = byDay[end-1]
	}
	last := &through[len(ends)-1]
	all := sumRows(whole, p)
	visitors := last.visitors - sumOf(maps.Values(last.immature))
	c := &Curve{
		Cohort: Cohort{Days: days, Visitors: visitors, ImmatureVisitors: all.visitors - visitors},
		Points: make([]CurvePoint, len(ends)), Novelty: []Novelty{}, Critical: simultaneousCritical(p, through),
	}
	onAllCores(len(ends), func(i int) { c.Points[i] = newCurvePoint(p, ends[i], &through[i], c.Critical) })
	if len(p.Variations) > 1 && p.Rules.Compare {
		c.Novelty = compareAges(p, last)
	}
	return c
}

// mostPoints is the maximum number of points of a curve: an interval that holds at all of them is little wider than at
// a few, and a chart does not show more of them.
const mostPoints = 60

// curveEnds returns the days of age at whose ends a curve has points.
func curveEnds(days int) (ends []int) {
	width := (days + mostPoints - 1) / mostPoints
	for end := width; end < days; end += width {
		ends = append(ends, end)
	}
	return append(ends, days)
}

// simultaneousCritical returns the critical value of intervals that hold at all points of a curve together; nil:
// nothing is compared. through has the sums until the end of each.
func simultaneousCritical(p *plan.Plan, through []sliceSums) *float64 {
	options := statsOptions(p)
	level := stats.NewLookDesign(options.Alpha(), options.Shares).Level
	if level <= 0 || len(p.Variations) < 2 {
		return nil
	}
	information := make([]float64, len(through)) // of each point up to a factor, see stats.SimultaneousCritical
	for i := range through {
		total := moments.Moments{}
		for _, v := range p.Variations {
			total = total.Merge(through[i].counted[v.ID])
		}
		switch s := looks.SampleOf(&total, p.Metric).(type) {
		case stats.Rate:
			information[i] = float64(s.Converted) / float64(s.Visitors-s.Converted)
		case stats.Mean:
			information[i] = s.Variance
		}
	}
	critical := stats.SimultaneousCritical(information, level)
	return &critical
}

// newCurvePoint compares the variations at the end of a day of age, with their own critical value and with one that
// holds at all ends together; nil: nothing is compared.
func newCurvePoint(p *plan.Plan, day int, through *sliceSums, critical *float64) CurvePoint {
	single := through.compareVariations(p)
	var together []stats.Comparison
	if critical != nil {
		options := statsOptions(p)
		options.Critical = *critical
		together, _ = through.compareSamples(p, options)
	}
	point := CurvePoint{Day: day}
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
	return point
}

// compareAges compares the ages of first conversions of a cohort between the variations. There must be two variations.
func compareAges(p *plan.Plan, cohort *sliceSums) []Novelty {
	const least = 20 // conversions of a variation
	samples := make([]stats.Sample, len(p.Variations))
	ages := make([]*float64, len(p.Variations))
	isFew := false
	for i, v := range p.Variations {
		m := cohort.counted[v.ID]
		sample := m.FirstAge.Mean(m.Converted, millisecondsPerDay)
		sample.Nonzero = m.Converted
		samples[i] = sample
		if m.Converted > 0 {
			ages[i] = &sample.Mean
		}
		isFew = isFew || m.Converted < least
	}
	found := []Novelty{}
	o := stats.Options{SignificanceLevel: 95, Shares: statsOptions(p).Shares}
	for i, x := range stats.Compare(samples[0], samples[1:], o) {
		n := Novelty{
			ID: p.Variations[i+1].ID, MeanAge: MeanAge{ages[0], ages[i+1]},
			PValue: x.Frequentist.AdjustedPValue, Reason: x.Frequentist.Reason,
		}
		if isFew {
			n.PValue = nil
			n.Reason = stats.ReasonTooFewConversions
		}
		n.Text = n.inWords(p.Variations[0].Name, p.Variations[i+1].Name)
		found = append(found, n)
	}
	return found
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
				treatment := indexOfResults(r.Variations, n.ID)
				shown.Text = shown.inWords(r.Variations[0].Name, r.Variations[treatment].Name)
			}
		}
		if d := r.Decision; d != nil && d.VariationID != nil && *d.VariationID == n.ID {
			days := *n.MeanAge.Control - *n.MeanAge.Variation
			when := "earlier"
			if finding == Grows {
				days = -days
				when = "later"
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
	bounds := ValueBins()
	index := map[int64]int{}
	goals := make([][]int64, len(bounds))
	for i, bound := range bounds {
		index[bound] = i
		goals[i] = make([]int64, len(p.Variations))
	}
	for _, s := range steps {
		isExcluded := s.MultiExposed && p.MultipleExposures == catalogue.ExcludeMultiExposed
		if v := p.IndexOfVariation(s.VariationID); v >= 0 && !isExcluded {
			goals[index[s.Bucket]][v] += s.GoalsReached()
		}
	}
	hasGoals := func(i int) bool { return sumOf(slices.Values(goals[i])) > 0 }
	first := len(bounds)
	last := 0 // bins from 0.01 with events
	for i := len(bounds) - 1; i >= positiveBins; i-- {
		if hasGoals(i) {
			first = i
			last = max(i, last)
		}
	}
	found := &Distribution{Bins: []DistributionBin{}}
	bound := func(i int) *Money { return &Money{Units: big.NewInt(bounds[i])} }
	for i := range bounds {
		isBetween := first <= i && i <= last
		isBefore := i < positiveBins && hasGoals(i)
		if !isBetween && !isBefore {
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
