package looks

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// SplitAlarm says when the split of the visitors, or of those of a segment, was first found not to match the shares.
type SplitAlarm struct {
	End    time.Time // of the full day
	PValue float64
}

// splitValue has the visitors with one value of an attribute, by variation and period of equal shares.
type splitValue struct {
	visitors  map[[2]int64]int64
	logFactor float64
	changed   bool
}

func (v *splitValue) add(step *moments.Step) {
	if v.visitors == nil {
		v.visitors = map[[2]int64]int64{}
	}
	v.visitors[[2]int64{step.VariationID, int64(step.Period)}] += step.Visitors
	v.changed = true
}

// measure returns the logarithm of the Bayes factor against the shares.
func (v *splitValue) measure(p *plan.Plan) float64 {
	if v.changed {
		var periods []stats.SharePeriod
		for i := range p.SharePeriods {
			periods = append(periods, p.ObservedSplit(i, func(variation int64) int64 {
				return v.visitors[[2]int64{variation, int64(i)}]
			}))
		}
		v.logFactor = stats.SampleRatioMismatch(periods).LogFactor
		v.changed = false
	}
	return v.logFactor
}

// splitAttribute has the values of an attribute in the order in which they appeared.
type splitAttribute struct {
	values []*splitValue
	known  map[string]*splitValue
}

// addDay adds the first views of a day. Of the values that appear on a day, the one with most visitors is the first.
func (a *splitAttribute) addDay(steps []*moments.Step) {
	visitors := map[string]int64{} // of new values
	for _, step := range steps {
		if a.known[step.Dimension] == nil {
			visitors[step.Dimension] += step.Visitors
		}
	}
	appearing := slices.SortedFunc(maps.Keys(visitors), func(x, y string) int {
		return cmp.Or(cmp.Compare(visitors[y], visitors[x]), cmp.Compare(x, y))
	})
	for _, value := range appearing[:min(len(appearing), stats.SegmentsOfAttribute-len(a.values))] {
		a.known[value] = &splitValue{}
		a.values = append(a.values, a.known[value])
	}
	for _, step := range steps {
		if v := a.known[step.Dimension]; v != nil {
			v.add(step)
		}
	}
}

// FindSplitAlarm tests the split of the visitors at the end of each full day, see stats.LogEvidenceOfSegments: that of
// all visitors whose first view is on a full day, of those with each value of each attribute, and of each day. by has
// the visitors by day of the first view for each attribute, see facts.ReadFirstViews. It returns the first alarm; nil:
// there is none.
func (s *Schedule) FindSplitAlarm(p *plan.Plan, by [][]moments.Step) *SplitAlarm {
	if len(by) == 0 {
		return nil
	}
	type partOf struct {
		attribute int
		day       int64
	}
	steps := map[partOf][]*moments.Step{}
	for i := range by {
		for k := range by[i] {
			if step := &by[i][k]; !step.ExposedBefore {
				steps[partOf{i, step.Bucket}] = append(steps[partOf{i, step.Bucket}], step)
			}
		}
	}
	var whole splitValue
	attributes := make([]splitAttribute, len(by))
	for i := range attributes {
		attributes[i].known = map[string]*splitValue{}
	}
	var days []float64
	for _, end := range s.fullDays() {
		bucket := end.Unix()/int64(day/time.Second) - 1
		var today splitValue
		for _, step := range steps[partOf{0, bucket}] {
			whole.add(step)
			today.add(step)
		}
		if !today.changed {
			continue
		}
		days = append(days, today.measure(p))
		factors := [][]float64{days}
		for i := range attributes {
			named := slices.DeleteFunc(steps[partOf{i, bucket}], func(step *moments.Step) bool { return step.Others })
			attributes[i].addDay(named)
			var of []float64
			for _, v := range attributes[i].values {
				of = append(of, v.measure(p))
			}
			factors = append(factors, of)
		}
		evidence := stats.LogEvidenceOfSegments(whole.measure(p), factors)
		if value := math.Min(1, math.Exp(-evidence)); value < stats.MismatchAlpha {
			return &SplitAlarm{end, value}
		}
	}
	return nil
}

// HasSplitAlarm reports whether an alarm about the split is recorded.
func HasSplitAlarm(recorded []Record) bool {
	return slices.ContainsFunc(recorded, func(r Record) bool { return r.Kind == OfSplit })
}

// RecordOf returns the record of an alarm about the declared question that was found at a time.
func (a *SplitAlarm) RecordOf(p *plan.Plan, now time.Time) Record {
	row := LookRow{Look: Look{End: a.End}, Kind: OfSplit, MismatchP: &a.PValue, RecordedAt: now}
	return Record{DeclarationOf(p), p.Measure(), p.Metric, row}
}

// leastMismatchPs returns for each full day the smallest p-value of the sample ratio at the end of any day so far. So a
// later day does not clear an alarm. Half of the error budget is that of all visitors.
func leastMismatchPs(days [][]stats.SharePeriod) []*float64 {
	all := make([]*float64, len(days))
	for i, periods := range days {
		all[i] = stats.SampleRatioMismatch(periods).WithSegments().PValue
		if i > 0 {
			all[i] = smaller(all[i-1], all[i])
		}
	}
	return all
}

// smaller returns the smaller p-value; nil is unknown.
func smaller(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// alarmUntil returns the p-value of the recorded alarm if it was found by the end of a day, else nil.
func alarmUntil(recorded []Record, end time.Time) *float64 {
	for _, r := range recorded {
		if r.Kind == OfSplit && !r.End.After(end) {
			return r.MismatchP
		}
	}
	return nil
}
