package calibration

import (
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestAnalystsAreMisledWithoutAPrice gives all questions the weight 1: then evidence for one of many questions is found
// in most campaigns without an effect.
func TestAnalystsAreMisledWithoutAPrice(t *testing.T) {
	c := &questioned{visitors: 60_000, share: .5, spread: 1.2, collects: true}
	withPrice, without := 0, 0
	for run := range uint64(10) {
		a := c.newAnalyst(rand.New(rand.NewPCG(run, 5)))
		countIf(&withPrice, a.everHolds(true))
		for _, one := range a.answers {
			one.weight = 1
		}
		countIf(&without, a.everHolds(true))
	}
	check.Equal(t, withPrice, 0, "campaigns with a price")
	check.That(t, without > 2, "%d of 10 campaigns without a price", without)
}

// TestAnswersOfAnalysts compares the answers with the visitors that they are about.
func TestAnswersOfAnalysts(t *testing.T) {
	c := &questioned{visitors: 5000, share: .3, spread: 1, lifts: []segmentLift{{0, 0, 2}}, declared: true}
	a := c.newAnalyst(rand.New(rand.NewPCG(1, 2)))
	first := &answer{metric: 2}
	first.lists[1] = 1 << 2
	a.askBreakdown(first, 0)
	check.Equal(t, len(a.answers), 3)
	for value, one := range a.answers {
		want := totalsOfMetric{}
		got := totalsOfMetric{}
		for _, v := range a.visitors {
			if v.values[0] == uint8(value) && v.values[1] == 2 && v.arm == 1 {
				want.visitors++
				want.sum += v.value
			}
		}
		for day := range one.sums {
			got.visitors += one.sums[day][1].visitors
			got.sum += one.sums[day][1].sum
		}
		check.Equal(t, got.visitors, want.visitors, "visitors of device %d", value)
		check.That(t, got.sum-want.sum < 1e-6 && want.sum-got.sum < 1e-6, "sum of device %d: %v, want %v", value,
			got.sum, want.sum)
	}
	check.Equal(t, a.answers[1].questionOf().Visitors.String(), "country = '2' and device = '1'")
	a.askBreakdown(first, 0)
	check.Equal(t, len(a.answers), 3, "a breakdown that was asked before")
	about := a.answerAbout(0)
	a.ask(about)
	check.Equal(t, about.weight, .1, "weight of a declared question")
	check.That(t, about.holdsOn(daysOfQuestions-1, true), "an effect of +200 %% is not found")
	check.Equal(t, about.holdsOn(firstDayOfAnswer-2, true), false, "before seven days")
}
