package looks

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// SeriesCuts returns the times since which a daily series must be read (see newSums): the start of each period of first
// views, and its end if a look or day of a schedule ends later.
func SeriesCuts(schedules ...*Schedule) []time.Time {
	var cuts []time.Time
	add := func(end time.Time, spans []Window) {
		for _, part := range spans {
			cuts = append(cuts, part.From)
			if part.To.Before(end) {
				cuts = append(cuts, part.To)
			}
		}
	}
	for _, s := range schedules {
		for _, end := range s.fullDays() {
			add(end, s.sinceLooks(end))
		}
		for _, l := range s.Looks {
			add(l.End, s.LookWindows(l.End))
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

// DailySums are sums over the visitors of a subject for one goal. They are by period of the first view, up to the end
// of any full day.
type DailySums struct {
	plan   *plan.Plan
	series map[int64][]through // by cut in Unix milliseconds
}

// through are the sums up to the end of a day.
type through struct {
	end time.Time
	sum map[key]moments.Moments
}

// key identifies visitors by the variation and the period of equal shares of their first view, and by the day on which
// they saw another variation.
type key struct {
	variation    int64
	period       int
	multiExposed bool
	crossed      int64 // day, in days since 1970
}

// newSums returns the sums. For each cut, steps has the daily series of the visitors whose first view is at or after
// the cut.
func newSums(p *plan.Plan, cuts []time.Time, steps [][]moments.Step) *DailySums {
	s := &DailySums{plan: p, series: make(map[int64][]through, len(cuts))}
	for i, cut := range cuts {
		var all []through
		sum := map[key]moments.Moments{}
		for k, step := range steps[i] {
			if !step.ExposedBefore {
				at := key{step.VariationID, step.Period, step.MultiExposed, step.Crossed}
				sum[at] = sum[at].Merge(step.Moments)
			}
			if k+1 == len(steps[i]) || steps[i][k+1].Bucket != step.Bucket {
				end := time.UnixMilli((step.Bucket + 1) * day.Milliseconds()).UTC()
				all = append(all, through{end, maps.Clone(sum)})
			}
		}
		s.series[cut.UnixMilli()] = all
	}
	return s
}

// sumsSince returns the sums of the visitors since a cut, up to a time.
func (s *DailySums) sumsSince(cut, end time.Time) map[key]moments.Moments {
	all := s.series[cut.UnixMilli()]
	if n := sort.Search(len(all), func(i int) bool { return all[i].end.After(end) }); n > 0 {
		return all[n-1].sum
	}
	return nil
}

// stratum has the visitors of one period of equal shares.
type stratum struct {
	period     int
	counted    map[int64]moments.Moments // by variation
	firstViews map[int64]int64           // visitors by variation, before exclusion
}

// strataUntil returns the sums up to a time for some periods of first views, by period of equal shares, in order.
func (s *DailySums) strataUntil(spans []Window, end time.Time) []stratum {
	var all []stratum
	for _, part := range spans {
		addSigned(&all, s.sumsSince(part.From, end), 1, s.plan.MultipleExposures, end)
		if part.To.Before(end) {
			addSigned(&all, s.sumsSince(part.To, end), -1, s.plan.MultipleExposures, end)
		}
	}
	return all
}

// addSigned adds sums to the strata of their periods, or subtracts them. If the rule excludes multi-exposed visitors,
// they are those who saw another variation before the end.
func addSigned(all *[]stratum, sum map[key]moments.Moments, sign int64, rule string, end time.Time) {
	for at, m := range sum {
		i, found := slices.BinarySearchFunc(*all, at.period,
			func(s stratum, period int) int { return cmp.Compare(s.period, period) })
		if !found {
			*all = slices.Insert(*all, i, stratum{at.period, map[int64]moments.Moments{}, map[int64]int64{}})
		}
		s := &(*all)[i]
		s.firstViews[at.variation] += sign * m.Visitors
		if at.multiExposed && rule == catalogue.ExcludeMultiExposed && at.crossed < end.Unix()/int64(day/time.Second) {
			continue
		}
		counted, has := s.counted[at.variation]
		switch {
		case sign > 0 && has:
			counted = counted.Merge(m)
		case sign > 0:
			counted = m
		default:
			counted = counted.Subtract(m)
		}
		s.counted[at.variation] = counted
	}
}

// SampleOf returns the sample of a metric for comparisons, with the cap of the report. AverageValue is not capped. See
// SampleOfQuestion.
func SampleOf(m *moments.Moments, metric query.Metric) stats.Sample {
	if of := metric.Expression(); of != nil {
		return sampleOfExpression(m, of)
	}
	capped := m.WithCappedValues()
	mean := stats.Mean{}
	a := amountsOf(&capped, metric)
	switch {
	case m.UnknownGoals:
		return stats.Mean{Visitors: m.Visitors, Unknown: true}
	case metric == query.AverageValue:
		return RatioOf(m).Mean(m.Value.Nonzero)
	case metric == query.GoalsPerVisitor:
		mean = m.Goals.Mean(m.Visitors, 1)
		mean.Nonzero = m.Converted
	case a != nil:
		mean = a.Mean(m.Visitors, schema.MoneyScale)
		mean.Nonzero = a.Nonzero
		mean.Unknown = m.Unknown > 0
	default:
		return stats.Rate{Visitors: m.Visitors, Converted: map[query.Metric]int64{
			query.GoalConversionRate: m.Converted, query.ConversionRate: m.Conversion,
			query.CompletionRate: m.Completed,
		}[metric]}
	}
	return mean
}

// amountsOf returns the amounts of a metric of money; nil: it is another metric.
func amountsOf(m *moments.Moments, metric query.Metric) *moments.Amounts {
	return map[query.Metric]*moments.Amounts{
		query.ValuePerVisitor: &m.Value, query.AverageValue: &m.Value, query.ProfitPerVisitor: &m.Profit,
		query.ExtraValuePerVisitor: &m.ExtraValue,
	}[metric]
}

// SpreadUnknown returns the number of goal events of the variations whose amounts are in another currency. If there are
// any, no variation has a sum of amounts: it sets Unknown of each.
func SpreadUnknown(p *plan.Plan, counted map[int64]moments.Moments) (unknown int64) {
	for _, v := range p.Variations {
		unknown += counted[v.ID].Unknown
	}
	if unknown == 0 {
		return 0
	}
	for _, v := range p.Variations {
		m := counted[v.ID]
		m.Unknown = unknown
		m.UnknownGoals = p.Filters.GoalValue != nil || p.Filters.ZScore != 0
		counted[v.ID] = m
	}
	return unknown
}

// IsMoney reports whether a metric is made of amounts.
func IsMoney(metric query.Metric) bool { return amountsOf(&moments.Moments{}, metric) != nil }

// NeverNegative reports whether no visitor has a negative value of the metric.
func NeverNegative(m *moments.Moments, metric query.Metric) bool {
	a := amountsOf(m, metric)
	return a == nil || a.Negative == 0
}

// RatioOf returns the ratio of AverageValue: value to goals reached.
func RatioOf(m *moments.Moments) stats.Ratio {
	return stats.Ratio{
		Visitors: m.Visitors,
		Value:    m.Value.Sums,
		Goals:    m.Goals,
		Products: m.ValueGoals,
		Scale:    schema.MoneyScale,
		Unknown:  m.Unknown > 0,
	}
}
