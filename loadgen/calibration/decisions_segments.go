package calibration

import (
	"fmt"
	"math/rand/v2"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/stats"
)

// segments has the number of values of each attribute of simulated visitors. Value i of n has a share in proportion to
// n - i, and attributes are independent.
var segments = [...]int{3, 5, 6, 20, 8}

// The attributes that lose visitors.
const (
	ofBrowser = 1
	ofChannel = 2
)

// segmentTables have the value of an attribute for each of 1024 equally likely numbers.
var segmentTables = func() (tables [len(segments)][1024]uint8) {
	for attribute, n := range segments {
		value := 0
		until := float64(n)
		for i := range tables[attribute] {
			for float64(i) >= 1024*until/float64(n*(n+1)/2) {
				value++
				until += float64(n - value)
			}
			tables[attribute][i] = uint8(value) //nolint:gosec // at most 20
		}
	}
	return tables
}()

// loss is the share of the visitors of a variation with a value of an attribute whose views are lost from a day on.
type loss struct {
	variation, attribute int // attribute -1: all visitors
	value                uint8
	share                float64
	from                 int // day
}

// affects reports whether the views of a visitor of a day may be lost.
func (l *loss) affects(v *segmentVisitor, day int) bool {
	isOfValue := l.attribute < 0 || v.values[l.attribute] == l.value
	return isOfValue && v.arm == l.variation && day >= l.from
}

// segmentVisitor is a simulated visitor: the variation, and the value of each attribute.
type segmentVisitor struct {
	arm    int
	values [len(segments)]uint8
}

func drawSegmentVisitor(random *rand.Rand) segmentVisitor {
	bits := random.Uint64()
	v := segmentVisitor{arm: int(bits & 1)}
	for attribute := range segments {
		bits >>= 10
		v.values[attribute] = segmentTables[attribute][bits%1024]
	}
	return v
}

// isLost draws whether the views of a visitor of a day are lost.
func (v *segmentVisitor) isLost(random *rand.Rand, losses []loss, day int) bool {
	for i := range losses {
		if losses[i].affects(v, day) && random.Float64() < losses[i].share {
			return true
		}
	}
	return false
}

// segmentCounts are visitors by attribute, value and variation.
type segmentCounts [len(segments)][20][2]int64

func (c *segmentCounts) addVisitor(v *segmentVisitor) {
	for attribute, value := range v.values {
		c[attribute][value][v.arm]++
	}
}

// stepsOf returns the visitors of an attribute as first views.
func (c *segmentCounts) stepsOf(attribute int, bucket int64) []moments.Step {
	var steps []moments.Step
	for value := range segments[attribute] {
		for arm := range 2 {
			row := moments.GroupMoments{
				GroupKey: moments.GroupKey{VariationID: int64(arm), Dimension: fmt.Sprint(value)},
				Moments:  moments.Moments{Visitors: c[attribute][value][arm]},
			}
			steps = append(steps, moments.Step{Bucket: bucket, GroupMoments: row})
		}
	}
	return steps
}

// drawFirstViews returns the first views of a campaign by attribute and day, as facts.ReadFirstViews does.
func drawFirstViews(random *rand.Rand, days, daily int, losses []loss) [][]moments.Step {
	by := make([][]moments.Step, len(segments))
	for d := 1; d <= days; d++ {
		var counts segmentCounts
		for range daily {
			v := drawSegmentVisitor(random)
			if !v.isLost(random, losses, d) {
				counts.addVisitor(&v)
			}
		}
		bucket := startOfDay(d).Unix() / int64(day/time.Second)
		for attribute := range by {
			by[attribute] = append(by[attribute], counts.stepsOf(attribute, bucket)...)
		}
	}
	return by
}

// segmentScenario counts campaigns that have a sample ratio mismatch at the end of any day: of all visitors or of a
// segment, or, with the measure of all visitors, by the test of these alone, with the whole error budget.
func segmentScenario(detail string, days, daily int, alone bool, least, most float64, losses ...loss) scenario {
	measure := "mismatch of all visitors or of a segment"
	if alone {
		measure = "mismatch of all visitors, tested alone"
	}
	name := fmt.Sprintf("%s, %d visitors in %d days", detail, days*daily, days)
	p := usual.withShares(50, 50).reportPlan().DeclaredPlan()
	first := noon.Add(time.Minute)
	end := startOfDay(days + 1)
	s := looks.NewSchedule(p, looks.FirstView{Time: first, OnTime: first, Accepted: first}, end, end.Add(-time.Second), nil)
	return scenario{
		part: partRatio, name: name, methodology: "frequentist", measure: measure, least: least, most: most,
		occurs: func(random *rand.Rand) bool {
			by := drawFirstViews(random, days, daily, losses)
			if !alone {
				return s.FindSplitAlarm(p, by) != nil
			}
			var whole [2]int64
			for i, step := range by[0] {
				whole[step.VariationID] += step.Visitors
				isLast := i+1 == len(by[0]) || by[0][i+1].Bucket != step.Bucket
				period := p.ObservedSplit(0, func(variation int64) int64 { return whole[variation] })
				if isLast && stats.SampleRatioMismatch([]stats.SharePeriod{period}).Mismatch {
					return true
				}
			}
			return false
		},
	}
}

func segmentScenarios() []scenario {
	const alarm, daily = 0.001, 720
	browser := loss{variation: 1, attribute: ofBrowser, value: 1, share: .3, from: 15}
	opposite := []loss{
		{variation: 1, attribute: ofBrowser, value: 1, share: .2, from: 1},
		{variation: 0, attribute: ofChannel, value: 1, share: .2, from: 1},
	}
	everywhere := loss{variation: 1, attribute: -1, share: .06}
	var all []scenario
	for _, of := range []struct {
		detail      string
		days, daily int
		alone, both float64 // limits of the power
		losses      []loss
	}{
		{"a browser of 27 % loses 30 % of the treatment after day 14", 28, daily, 0, .5, []loss{browser}},
		{"a browser loses 20 % in the treatment, a channel in control", 28, 3 * daily, 0, .9, opposite},
		{"6 % of the treatment are lost", 28, daily, .5, .4, []loss{everywhere}},
	} {
		for i, least := range []float64{of.alone, of.both} {
			s := segmentScenario(of.detail, of.days, of.daily, i == 0, least, 1, of.losses...)
			s.factor = .25
			all = append(all, s)
		}
	}
	return append(all,
		withMoreExperiments(segmentScenario("fair", 28, daily, true, 0, alarm)),
		withMoreExperiments(segmentScenario("fair", 28, daily, false, 0, alarm)),
		withMoreExperiments(segmentScenario("fair", 112, 200, true, 0, alarm)),
		withMoreExperiments(segmentScenario("fair", 112, 200, false, 0, alarm)))
}
