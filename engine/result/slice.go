package result

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

	"golang.org/x/sync/errgroup"
)

// sliceSums holds the sums over all visitors, or over the visitors with one value of the dimension.
type sliceSums struct {
	counted       map[int64]moments.Moments   // by variation, including unknown ones
	periods       []map[int64]moments.Moments // the same, by period of equal shares
	firstViews    map[int64]firstViews        // by first variation, before exclusion
	split         split                       // the same visitors, also by period of equal shares
	visitors      int64                       // before exclusion
	multiExposed  int64
	exposedBefore int64
	immature      map[int64]int64 // visitors by first variation, before exclusion
	unknown       int64           // counted goal events whose amounts are not known, see spreadUnknown
}

// spreadUnknown withholds the sums of amounts of all variations if some amounts of one are not known.
func (c *sliceSums) spreadUnknown(p *plan.Plan) {
	c.unknown = looks.SpreadUnknown(p, c.counted)
	for _, counted := range c.periods {
		looks.SpreadUnknown(p, counted)
	}
}

// firstViews counts the visitors whose first view was of a given variation.
type firstViews struct {
	visitors     int64
	multiExposed int64
}

// sumRows adds up the rows of a plan. If it excludes multi-exposed visitors, the counted moments omit them.
func sumRows(rows []moments.GroupMoments, p *plan.Plan) sliceSums {
	c := sliceSums{
		counted: map[int64]moments.Moments{}, firstViews: map[int64]firstViews{}, split: split{},
		immature: map[int64]int64{},
	}
	for _, r := range rows {
		if r.ExposedBefore {
			c.exposedBefore += r.Visitors
			continue
		}
		arrived := c.firstViews[r.VariationID]
		arrived.visitors, c.visitors = arrived.visitors+r.Visitors, c.visitors+r.Visitors
		c.split[[2]int64{r.VariationID, int64(r.Period)}] += r.Visitors
		if r.MultiExposed {
			c.multiExposed += r.Visitors
			arrived.multiExposed += r.Visitors
		}
		c.firstViews[r.VariationID] = arrived
		if r.Immature {
			c.immature[r.VariationID] += r.Visitors
		}
		if r.MultiExposed && p.MultipleExposures == catalogue.ExcludeMultiExposed {
			continue
		}
		if r.Immature { // they count for the visitors per day only
			r.Moments = moments.Moments{Recent: r.Recent}
		}
		c.counted[r.VariationID] = c.counted[r.VariationID].Merge(r.Moments)
		for len(c.periods) <= r.Period {
			c.periods = append(c.periods, map[int64]moments.Moments{})
		}
		c.periods[r.Period][r.VariationID] = c.periods[r.Period][r.VariationID].Merge(r.Moments)
	}
	c.spreadUnknown(p)
	return c
}

// sliceResult is the result of a slice without checks and conclusion.
type sliceResult struct {
	Slice
	comparisons []stats.Comparison
	periods     []stats.Period // of equal shares, with their samples
	control     stats.Sample
	total       moments.Moments // over all variations
	immature    int64           // visitors of all variations
}

// compareVariations returns the counts and metrics of the variations, and compares them with control.
func (c *sliceSums) compareVariations(plan *plan.Plan) sliceResult {
	// The counts and metrics of each variation, and the counts of all.
	j := sliceResult{Slice: Slice{Variations: []VariationResults{}}}
	options := statsOptions(plan)
	for _, v := range plan.Variations {
		m := c.counted[v.ID]
		j.total = j.total.Merge(m)
		j.immature += c.immature[v.ID]
		of := func(metric query.Metric) Estimate { return NewEstimate(looks.SampleOf(&m, metric), options) }
		limited := func(metric query.Metric, uncapped *moments.Amounts) Estimate {
			e := of(metric)
			if plan.Cap != nil && e.Value != nil {
				e.Uncapped = NewEstimate(uncapped.Mean(m.Visitors, schema.MoneyScale), options).Value
			}
			return e
		}
		shown := VariationResults{
			ID: v.ID, Name: v.Name, Control: v.Control, Share: v.Share, Counts: c.countsOf(&m),
			Metrics: Metrics{
				GoalConversionRate:   of(query.GoalConversionRate),
				ConversionRate:       of(query.ConversionRate),
				CompletionRate:       of(query.CompletionRate),
				GoalsPerVisitor:      of(query.GoalsPerVisitor),
				ValuePerVisitor:      limited(query.ValuePerVisitor, &m.Value),
				ProfitPerVisitor:     limited(query.ProfitPerVisitor, &m.Profit),
				ExtraValuePerVisitor: of(query.ExtraValuePerVisitor),
				AverageValue:         stats.EstimateRatio(looks.RatioOf(&m), options),
			},
		}
		if plan.Expression != nil {
			shown.Metric = newMetricResult(&m, plan, options)
		}
		if plan.Subject.Kind == schema.SubjectWidget {
			shown.Actions = &m.Actions
		}
		j.Variations = append(j.Variations, shown)
	}
	j.Totals = c.countsOf(&j.total)
	if len(plan.Variations) == 0 || !plan.Rules.Compare {
		return j
	}

	// The comparisons with control.
	j.comparisons, j.periods = c.compareSamples(plan, options)
	if j.total.Visitors == 0 && len(c.immature) > 0 {
		for i := range j.comparisons {
			x := &j.comparisons[i]
			x.Difference.Reason, x.Lift.Reason = reasonNotMature, reasonNotMature
			x.Reasons = []stats.Reason{reasonNotMature}
		}
	}
	for i, comparison := range j.comparisons {
		j.Variations[i+1].Comparison = NewComparison(comparison)
	}
	control := c.counted[plan.Variations[0].ID]
	j.control = looks.SampleOfQuestion(&control, &plan.Question)
	return j
}

// compareSamples compares the variations with control, within each period of equal shares. It also returns the periods
// with visitors. There must be a variation.
func (c *sliceSums) compareSamples(p *plan.Plan, o stats.Options) ([]stats.Comparison, []stats.Period) {
	periods := c.periodsOfSamples(p)
	total, samples := samplesOf(p, c.counted)
	capped := total.WithCappedValues()
	o.NonNegative = looks.NeverNegativeIn(&capped, &p.Question)
	if len(periods) > 1 {
		return stats.ComparePeriods(samples, periods, o), periods
	}
	return stats.Compare(samples[0], samples[1:], o), periods
}

// periodsOfSamples returns the periods of equal shares with visitors, and the samples of the variations in each.
func (c *sliceSums) periodsOfSamples(p *plan.Plan) (periods []stats.Period) {
	for i, counted := range c.periods {
		if total, samples := samplesOf(p, counted); total.Visitors > 0 {
			periods = append(periods, stats.Period{Shares: p.SharePeriods[i].Shares, Samples: samples})
		}
	}
	return periods
}

// samplesOf returns the samples of the variations, control first, and the moments of all their visitors.
func samplesOf(p *plan.Plan, counted map[int64]moments.Moments) (total moments.Moments, samples []stats.Sample) {
	for _, v := range p.Variations {
		m := counted[v.ID]
		total = total.Merge(m)
		samples = append(samples, looks.SampleOfQuestion(&m, &p.Question))
	}
	return total, samples
}

func statsOptions(p *plan.Plan) stats.Options {
	return stats.Options{
		SignificanceLevel: p.Rules.SignificanceLevel,
		Methodology:       stats.Methodology(p.Rules.Methodology),
		Shares:            p.ExpectedShares,
		Prior:             p.Rules.Prior,
	}
}

// sampleSize returns the sample size calculation for the metric and the planned looks. A planned number of visitors is
// converted to days at the present pace.
func (j *sliceResult) sampleSize(p *plan.Plan, daily float64) (*stats.SampleSize, stats.Reason) {
	o := statsOptions(p)
	days := float64(p.Rules.PlannedDays)
	if p.Rules.PlannedVisitors > 0 && daily > 0 {
		days = float64(p.Rules.PlannedVisitors) / daily
	}
	return stats.NewSampleSize(stats.SamplePlan{
		Control: j.control, Shares: o.Shares, Looks: max(int(math.Ceil(days/7)), 1),
		Power: float64(p.Rules.Power) / 100, Prior: o.Prior,
	}, stats.NewLookDesign(o.Alpha(), o.Shares))
}

// perDay returns the mean number of visitors per day over the week before the last acceptance time, or since the first
// view if that is shorter.
func perDay(total *moments.Moments, first, through time.Time) float64 {
	_, end := plan.RecentPeriod(through)
	const hoursOfDay = 24
	if days := end.Sub(first).Hours() / hoursOfDay; days > 0 && days < plan.RecentDays {
		return float64(total.Recent) / days
	}
	return float64(total.Recent) / plan.RecentDays
}

// The names of slices without a value. A real value with such a name, possibly after backslashes, gets another
// backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// ShownValue returns the name of the slice for a dimension value.
func ShownValue(value string) string {
	switch strings.TrimLeft(value, `\`) {
	case "":
		if value == "" {
			return noValue
		}
	case otherValues, noValue:
		return `\` + value
	}
	return value
}

// CumulateSteps returns the running sums of the steps as points.
func CumulateSteps(p *plan.Plan, steps []moments.Step) []Point {
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	through := sumSteps(p, steps, first, int(last-first+1))
	points := make([]Point, len(through))
	onAllCores(len(points), func(i int) {
		points[i] = Point{EndOf(p, first+int64(i)), through[i].compareVariations(p).Variations}
	})
	return points
}

// sumSteps returns the running sums of the steps at the ends of n buckets from the first one on.
func sumSteps(p *plan.Plan, steps []moments.Step, first int64, n int) []sliceSums {
	through := make([]sliceSums, n)
	sums := map[moments.GroupKey]moments.GroupMoments{}
	i := 0
	for k := range through {
		for ; i < len(steps) && steps[i].Bucket == first+int64(k); i++ {
			key := steps[i].GroupKey
			sums[key] = moments.GroupMoments{GroupKey: key, Moments: sums[key].Merge(steps[i].Moments)}
		}
		through[k] = sumRows(slices.Collect(maps.Values(sums)), p)
	}
	return through
}

// onAllCores calls do for each number below n, concurrently.
func onAllCores(n int, do func(i int)) {
	var running errgroup.Group
	running.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		running.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = running.Wait() // there are no errors
}

// NewPoint returns the point at the end of a bucket, from the rows of its report.
func NewPoint(p *plan.Plan, bucket int64, rows []moments.GroupMoments) Point {
	sums := sumRows(rows, p)
	return Point{Time: EndOf(p, bucket), Variations: sums.compareVariations(p).Variations}
}

// EndOf returns the end of a bucket or of the window, whichever is earlier.
func EndOf(p *plan.Plan, bucket int64) time.Time {
	width, shift := p.Interval.BucketGrid()
	end := time.UnixMilli((bucket+1)*width.Milliseconds() - shift.Milliseconds()).UTC()
	if to := p.WindowEnd(); to.Before(end) {
		return to
	}
	return end
}

// Complement compares the lift of a variation in a segment with its lift among all other visitors.
type Complement struct {
	Visitors              int64        `json:"visitors"` // others, of the variation
	ControlVisitors       int64        `json:"controlVisitors"`
	Improvement           stats.Effect `json:"improvement"`           // among the others
	ImprovementDifference stats.Effect `json:"improvementDifference"` // in the segment minus among the others
}

// Heterogeneity answers whether the lift differs between the values of the dimension.
type Heterogeneity struct {
	stats.Heterogeneity
	Text string `json:"text"`
}

// addBreakdown adds the slices, each with its complement, and whether they differ: one for each of the most frequent
// values of the dimension, and one for all other values. The slice "(other)" does not count for the difference, because
// its values change.
func (r *Report) addBreakdown(p *plan.Plan, found *moments.Rows, whole *sliceSums) {
	// The sums of each slice.
	byValue, visitors := map[string][]moments.GroupMoments{}, map[string]int64{}
	var others []moments.GroupMoments
	for _, r := range found.Slices {
		if r.Others {
			others = append(others, r)
			continue
		}
		byValue[r.Dimension] = append(byValue[r.Dimension], r)
		if !r.ExposedBefore {
			visitors[r.Dimension] += r.MatureVisitors()
		}
	}
	values := moments.MostVisited(visitors)
	var names []string
	var all []sliceSums
	for _, value := range values[:min(len(values), p.Top)] {
		names, all = append(names, value), append(all, sumRows(byValue[value], p))
		delete(byValue, value)
	}
	if len(values) > p.Top || len(others) > 0 {
		for _, rows := range byValue {
			others = append(others, rows...)
		}
		all = append(all, sumRows(others, p))
	}

	// The results of each slice.
	r.Dimension = &p.Dimension
	r.Breakdown = make([]BreakdownSlice, len(all))
	isOfPairs := len(p.Dimension.Attributes()) > 1
	periods := make([][]stats.Period, len(all))
	onAllCores(len(all), func(i int) {
		j := all[i].compareVariations(p)
		j.Checks = all[i].runChecks(p, found)
		j.setConclusion(p, nil, true)
		j.compareWithOthers(p, &all[i], whole)
		r.Breakdown[i] = BreakdownSlice{Value: otherValues, Slice: j.Slice}
		if i < len(names) {
			r.Breakdown[i].setValue(names[i], isOfPairs)
		}
		periods[i] = j.periods
	})
	if isOfPairs || !p.Rules.Compare || len(p.Variations) < 2 {
		return
	}

	// Whether the lift differs between the slices. Lifts that differ by less than half the minimum effect hardly
	// matter. At the default of 20 %, this spread finds most in the simulations of TestLongHeterogeneity.
	effects := make([][]stats.PooledEffect, len(p.Variations)-1)
	for i := range names {
		for t := range effects {
			strata := make([]stats.Stratum, len(periods[i]))
			for k, period := range periods[i] {
				strata[k] = stats.Stratum{Control: period.Samples[0], Treatment: period.Samples[t+1]}
			}
			effects[t] = append(effects[t], stats.NewPooledEffect(strata))
		}
	}
	spread := p.Rules.MDE / 100 / 2
	r.Heterogeneity = NewHeterogeneity(p, stats.MeasureHeterogeneity(effects, spread))
}

// NewHeterogeneity returns the answer with its text, in the words of the methodology.
func NewHeterogeneity(p *plan.Plan, found stats.Heterogeneity) *Heterogeneity {
	h := &Heterogeneity{Heterogeneity: found}
	if isBayesian(p) {
		h.PValue = nil
	}
	switch factor := found.BayesFactor; {
	case factor == nil:
		h.Text = "Whether the lift differs between the segments is not known: " + wording.ExplainReason(h.Reason) + "."
	case isBayesian(p) && *factor < unclearFactor && *factor > 1/unclearFactor:
		h.Text = fmt.Sprintf("The data do not say whether the lift differs between the segments (Bayes factor %s).",
			wording.FormatNumber(*factor, 1))
	case isBayesian(p) && *factor >= 1:
		h.Text = fmt.Sprintf("The data are %s times likelier if the lift differs between the segments than if it is "+
			"the same.", formatFactor(*factor))
	case isBayesian(p):
		h.Text = fmt.Sprintf("The data are %s times likelier if the lift is the same in all segments than if it "+
			"differs.", formatFactor(1 / *factor))
	default:
		text := "The lift does not differ significantly between the segments (%s, however often you look)."
		if *h.PValue < statsOptions(p).Alpha() {
			text = "The lift differs between the segments (%s, however often you look)."
		}
		h.Text = fmt.Sprintf(text, wording.PValueInWords(*h.PValue))
	}
	return h
}

// unclearFactor is the Bayes factor below which the data say nothing. Factors up to 3 are barely worth mentioning (Kass
// and Raftery 1995).
const unclearFactor = 3.0

// formatFactor formats a Bayes factor of at least 1 with two digits.
func formatFactor(factor float64) string {
	if factor < 10 {
		return wording.FormatNumber(factor, 1)
	}
	const most = 1000
	if factor > most {
		return "more than " + wording.FormatCount(most)
	}
	return wording.FormatCount(int64(math.Round(factor)))
}

// compareWithOthers adds the lifts among the visitors that a segment lacks.
func (j *sliceResult) compareWithOthers(p *plan.Plan, segment, whole *sliceSums) {
	if len(j.comparisons) == 0 {
		return
	}
	subtract := func(whole, part map[int64]moments.Moments) map[int64]moments.Moments {
		rest := map[int64]moments.Moments{}
		for id, m := range whole {
			rest[id] = m.Subtract(part[id])
		}
		return rest
	}
	others := sliceSums{counted: subtract(whole.counted, segment.counted)}
	for i, counted := range whole.periods {
		if i < len(segment.periods) {
			counted = subtract(counted, segment.periods[i])
		}
		others.periods = append(others.periods, counted)
	}
	others.spreadUnknown(p)
	comparisons, _ := others.compareSamples(p, statsOptions(p))
	for i, c := range comparisons {
		own, variation := j.Variations[i+1].Comparison, p.Variations[i+1].ID
		own.Complement = &Complement{
			Visitors: others.counted[variation].Visitors, ControlVisitors: others.counted[p.Variations[0].ID].Visitors,
			Improvement: c.Lift, ImprovementDifference: stats.DifferenceOfLifts(own.Improvement, c.Lift),
		}
	}
}
