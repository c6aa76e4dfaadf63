package population_test

import (
	"math"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestStandardShape checks the proportions of the standard data set at a small scale.
func TestStandardShape(t *testing.T) {
	s := population.StandardScenario(0.004, 1)
	type visitor struct{ events, seen int }
	visitors := map[uint64]*visitor{}
	var large, later, goals, multiple, long float64
	kinds := map[int64]int{}
	campaigns := map[int64]bool{}
	most := 0
	var value int64
	must.OK(t, population.GenerateEvents(t.Context(), &s, func(events []population.Event) []population.Event { return events }, func(b population.Batch[[]population.Event]) error {
		for _, e := range b.Data {
			campaigns[e.SubjectID] = true
			if e.SubjectID != population.StandardCampaign {
				continue
			}
			v := visitors[e.VisitorID]
			if v == nil {
				v = &visitor{}
				visitors[e.VisitorID] = v
			} else {
				later++
			}
			large++
			v.events++
			most = max(most, v.events)
			if e.Kind == schema.KindGoal {
				goals++
				kinds[e.GoalID]++
				value += e.Value
			} else if v.seen |= 1 << e.VariationID; v.seen == 3 {
				multiple++
				v.seen = 0
			}
			if e.Time.Sub(s.Start.Time).Hours() > 24*61 {
				long++
			}
			if e.Browser == "" && e.Device != "" || e.FirstVisitPage == "" || e.VisitorType == "" || e.Channel == "" {
				t.Fatalf("missing attributes: %+v", e)
			}
		}
		return nil
	}))
	about := func(what string, have, want, within float64) {
		t.Helper()
		check.That(t, math.Abs(have-want) <= within, "%s: %.4f, want about %v", what, have, want)
	}
	about("visitors", float64(len(visitors)), 20_000, 0)
	about("events a visitor", large/float64(len(visitors)), 5.6, 0.15)
	about("goals among the later events", goals/later, 0.22, 0.01)
	about("multiple exposures", multiple/float64(len(visitors)), 0.01, 0.003)
	about("mean value of goal 1", float64(value)/schema.MoneyScale/float64(kinds[1]), 30, 2)
	about("kinds of goals", float64(len(kinds)), 5, 0)
	about("campaigns", float64(len(campaigns)), 201, 0)
	check.That(t, most <= 80 && most >= 30 && long == 0, "largest number of events of a visitor: %d; events after day 61: %v", most, long)
}
