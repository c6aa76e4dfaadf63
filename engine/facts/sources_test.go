package facts

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
)

// The parts of the questions of TestSources.
var (
	noon     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	midnight = time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	week     = schema.ConversionWindow{To: 7 * 24 * time.Hour}
)

func askOneGoal(a *asked)  { a.isOfGoals = true }
func askWithDays(a *asked) { a.hasDays = true }
func askMobile(a *asked) {
	a.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
}
func askByDevice(a *asked)  { a.Dimension = "device" }
func askPeriods(a *asked)   { a.SharePeriods = make([]plan.SharePeriod, 2) }
func askUntilNoon(a *asked) { a.Filters.To = noon }
func askFromDay(a *asked)   { a.Filters.From = midnight }
func askWithin(a *asked)    { a.ConversionWindow = week }
func askLater(a *asked) {
	a.ConversionWindow = schema.ConversionWindow{From: time.Hour, To: 2 * time.Hour}
}
func askLargeGoals(a *asked) { a.Filters.GoalValue = big.NewRat(5, 1) }
func askOutliers(a *asked)   { a.Filters.ZScore, a.hasOutliers = 3, true }
func askOpenScore(a *asked)  { a.Filters.ZScore = 3 }
func askCapped(a *asked)     { a.isCapped = true }
func askHourly(a *asked)     { a.Interval = query.Hourly }
func askDaily(a *asked)      { a.Interval = query.Daily }
func askByAge(a *asked)      { a.Timing = plan.ByAge }
func askOnView(a *asked)     { a.Timing = plan.OnFirstView }
func askCrossers(a *asked)   { a.hasCrossers = true }
func askWidget(a *asked)     { a.Subject.Kind = schema.SubjectWidget }

type asks []func(*asked)

// sourcesOf returns the sources of a question with some parts, with what they are read for: totals, or a series.
func (all asks) sourcesOf(of func(*asked) factSources) string {
	a := &asked{Question: &plan.Question{Subject: schema.Subject{Kind: schema.SubjectCampaign}}}
	for _, ask := range all {
		ask(a)
	}
	from := of(a)
	text := fmt.Sprintf("visitors: %s; goals: %s", from.visitors, from.goals)
	if from.ofCap {
		text += "; cap"
	}
	return text
}

// TestSources names the sources of each kind of question.
func TestSources(t *testing.T) {
	for _, c := range []struct {
		asks asks
		want string
	}{
		{asks{askOneGoal}, "visitors: cells; goals: cells"},
		{asks{}, "visitors: cells; goals: cells"}, // all goals
		{asks{askOneGoal, askDaily}, "visitors: cells; goals: cells"},
		{asks{askOneGoal, askMobile}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askByDevice}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askPeriods}, "visitors: rows; goals: rows"},
		{asks{askMobile}, "visitors: rows; goals: rows by visitor"},

		{asks{askOneGoal, askFromDay}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askFromDay, askWithDays}, "visitors: cells by day; goals: cells by day"},
		{asks{askOneGoal, askUntilNoon, askWithDays}, "visitors: rows; goals: rows"},

		{asks{askOneGoal, askLargeGoals}, "visitors: cells; goals: rows by visitor"},
		{asks{askOneGoal, askOutliers}, "visitors: cells; goals: rows by visitor"},
		{asks{askOneGoal, askOpenScore}, "visitors: cells; goals: rows"},

		{asks{askOneGoal, askCapped}, "visitors: cells; goals: cells; cap"},
		{asks{askOneGoal, askCapped, askMobile}, "visitors: rows; goals: rows"},
		{asks{askCapped}, "visitors: cells; goals: rows by visitor"},
		{asks{askOneGoal, askCapped, askFromDay, askWithDays}, "visitors: cells by day; goals: cells by day; cap"},

		{asks{askOneGoal, askWithin}, "visitors: cells minus immature; goals: rows"},
		{asks{askOneGoal, askLater}, "visitors: cells minus immature; goals: rows by visitor"},
		{asks{askOneGoal, askWithin, askOnView}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askWithin, askFromDay}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askWithin, askMobile}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askWithin, askWidget}, "visitors: rows; goals: rows"},
	} {
		check.Equal(t, c.asks.sourcesOf((*asked).ofTotals), c.want, "totals: %d parts", len(c.asks))
	}
	for _, c := range []struct {
		asks asks
		want string
	}{
		{asks{askOneGoal, askDaily}, "visitors: actions; goals: rows"},
		{asks{askDaily}, "visitors: actions; goals: numbered rows"},
		{asks{askOneGoal, askDaily, askLargeGoals, askWithDays}, "visitors: actions; goals: numbered rows"},
		{asks{askOneGoal, askDaily, askWithDays}, "visitors: cells by day; goals: cells by day"},
		{asks{askOneGoal, askHourly, askWithDays}, "visitors: actions; goals: rows"},
		{asks{askOneGoal, askDaily, askWithDays, askUntilNoon}, "visitors: actions; goals: rows"},
		{asks{askOneGoal, askDaily, askWithDays, askMobile}, "visitors: actions; goals: rows"},
		{asks{askOneGoal, askDaily, askWithDays, askCapped}, "visitors: actions; goals: rows"},
		{
			asks{askOneGoal, askDaily, askWithDays, askCrossers},
			"visitors: cells by day, crossers; goals: cells by day, crossers",
		},
		{asks{askOneGoal, askDaily, askWithDays, askWithin}, "visitors: actions; goals: rows"},
		{asks{askOneGoal, askDaily, askWithin, askByAge}, "visitors: cells minus immature; goals: rows"},
		{asks{askOneGoal, askDaily, askWithin, askByAge, askMobile}, "visitors: rows; goals: rows"},
		{asks{askOneGoal, askDaily, askWithin, askByAge, askWidget}, "visitors: actions; goals: rows"},
	} {
		check.Equal(t, c.asks.sourcesOf((*asked).ofSeries), c.want, "series: %d parts", len(c.asks))
	}
}

// TestPlaces numbers each combination of a goal, a variation and a rank, and finds it again.
func TestPlaces(t *testing.T) {
	of := places{
		goals: []int64{3, 5}, variations: []string{"", "0", "1", "1" + fold.MultiExposed},
		tops: [][]string{{"mobile", "desktop"}, {"DE", "FR", "US"}},
	}
	seen := map[string]bool{}
	all := uint32(2 * 5 * 3 * 4)
	for place := range all {
		goal, variation, rank := of.groupAt(place)
		seen[fmt.Sprint(goal, " ", variation, " ", rank)] = true
	}
	// A combination without a known value of each attribute has no rank: 6 of 12, and those without a variation are two.
	check.Equal(t, len(seen), 2*4*7)
	goal, variation, rank := of.groupAt(1*60 + 3*12 + 2*4 + 3)
	check.Equal(t, goal, int64(5))
	check.Equal(t, variation, "1")
	check.Equal(t, rank, uint16(6))

	none := places{variations: []string{"", "0"}}
	goal, variation, rank = none.groupAt(2)
	check.Equal(t, goal, int64(0))
	check.Equal(t, variation, "0")
	check.Equal(t, rank, uint16(0))
}
