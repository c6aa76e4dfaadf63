package watch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// newWindowed declares a campaign whose primary goal 1 has a conversion window, and whose guardrail is the same goal
// with another window.
func newWindowed(t *testing.T, own, guardrail string) *past {
	t.Helper()
	windowOf := func(text string) *schema.ConversionWindow {
		w := must.Get(schema.ParseConversionWindow(text))(t)
		return &w
	}
	goal := catalogue.Goal{ID: 1, WebsiteID: 1, Name: "Purchase", ConversionWindow: windowOf(own)}
	return newPastOfGoal(t, goal, func(c *catalogue.Campaign) {
		c.Goals = &catalogue.Goals{Guardrails: []catalogue.Guardrail{{
			GoalID: 1, Metric: "goalConversionRate", Margin: 10, Direction: catalogue.Up,
			Window: &schema.ConversionWindow{To: windowOf(guardrail).To},
			Settle: new(schema.Settle(windowOf(guardrail).Settle)),
		}}}
	})
}

// liveVisitor is a visitor of a live campaign.
type liveVisitor struct {
	variation int64
	first     time.Time
	goals     []time.Time
}

// arriveLive stores the events that happen on a day, which are accepted at its end.
func (p *past) arriveLive(day int, all []liveVisitor) {
	p.t.Helper()
	from := p.first.AddDate(0, 0, day)
	isToday := func(at time.Time) bool { return !at.Before(from) && at.Before(from.AddDate(0, 0, 1)) }
	var events []schema.Event
	for i, v := range all {
		e := viewOf(uint64(i), 2, v.variation, v.first) //nolint:gosec // few
		if e.EventID = 16 * e.VisitorID; isToday(v.first) {
			events = append(events, e)
		}
		for k, at := range v.goals {
			if e.EventID, e.Kind, e.GoalID, e.Time = uint64(i)*16+uint64(k)+1, schema.KindGoal, 1, at; isToday(at) { //nolint:gosec // few
				events = append(events, e)
			}
		}
	}
	must.OK(p.t, schema.InsertEvents(p.t.Context(), p.conn, events, from.Add(24*time.Hour-time.Millisecond)))
}

// drawVisitors draws visitors of 20 days, who convert at once or within 12 days.
func drawVisitors(p *past, r *rand.Rand, rates [2]float64) (all []liveVisitor) {
	for range 6000 {
		v := liveVisitor{
			variation: r.Int64N(2),
			first:     p.first.Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour)))).Truncate(time.Millisecond),
		}
		for r.Float64() < rates[v.variation] {
			age := time.Duration(r.Int64N(int64(12 * 24 * time.Hour)))
			if r.IntN(2) == 0 {
				age = time.Duration(r.Int64N(int64(time.Hour)))
			}
			v.goals = append(v.goals, v.first.Add(age).Truncate(time.Millisecond))
		}
		all = append(all, v)
	}
	return all
}

// TestWindowedLooksWaitForTheirVisitors follows a campaign with a conversion window of 3 days, and a guardrail of 6 in
// two ways: as a window, and as one of 2 days whose orders settle for 4 more. A
// look is recorded when the window of its last visitors has ended and a day has passed, also after the campaign has
// ended, and has the conversions within the window of all its visitors. Nothing that happens later moves it.
func TestWindowedLooksWaitForTheirVisitors(t *testing.T) {
	guardrails := []string{"2d+4d", "6d"}
	for _, guardrail := range guardrails[:tier.Of(1, 2)] {
		t.Run(guardrail, func(t *testing.T) { checkWindowedLooks(t, guardrail) })
	}
}

func checkWindowedLooks(t *testing.T, guardrail string) {
	t.Helper()
	p := newWindowed(t, "3d", guardrail)
	all := drawVisitors(p, rand.New(rand.NewPCG(59, 1)), [2]float64{0.2, 0.2})
	const lastDay = 32                                             // of the events
	passes := []int{9, 11, 12, 14, 15, 18, 19, 21, 22, 25, 29, 32} // days: each with a look, and one before it
	recordedOn := map[string]int{}
	by := p.server
	for day := range lastDay {
		p.arriveLive(day, all)
		if day == 24 {
			by = p.restart()
		}
		if !slices.Contains(passes, day+1) {
			continue
		}
		p.pass(by, day+1, 1)
		records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
		for _, r := range records {
			key := fmt.Sprintf("%s %d within %s", r.Kind, r.Number, r.Window)
			if _, known := recordedOn[key]; !known {
				recordedOn[key] = day + 1
			}
		}
	}

	// The days on which the looks were recorded: the end, the window, and a day of maturity.
	for key, want := range map[string]int{
		"look 1 within 3d": 8 + 3 + 1, "look 2 within 3d": 15 + 3 + 1, "look 1 within " + guardrail: 8 + 6 + 1,
		"look 2 within " + guardrail: 15 + 6 + 1,
	} {
		check.Equal(t, recordedOn[key], want, "%s recorded on day", key)
	}

	// The sums, counted one by one.
	records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
	for _, r := range records {
		if r.Kind != looks.OfLook {
			continue
		}
		var want [2][2]int64 // visitors and converted ones by variation
		for _, v := range all {
			if v.first.Before(p.first.AddDate(0, 0, 1)) || !v.first.Before(r.End) {
				continue
			}
			want[v.variation][0]++
			if slices.ContainsFunc(v.goals, func(at time.Time) bool { return at.Sub(v.first) < r.Window.To }) {
				want[v.variation][1]++
			}
		}
		a, b := r.Strata[0].Control, r.Strata[0].Variation
		check.Equal(t, [2][2]int64{{a.Visitors, a.Converted}, {b.Visitors, b.Converted}}, want, "look %d within %s",
			r.Number, r.Window)
	}

	// A year later, today's events give the same looks.
	owned := p.catalogue.Snapshot().AccountResources(1)
	declared := must.Get(plan.New(query.Request{AccountID: 1, SubjectID: 2}, owned))(t)
	j, err := by.OpenJudgement(t.Context(), declared, p.first.AddDate(1, 0, 0))
	if err == nil {
		err = by.AnalyzeLooks(t.Context(), j)
	}
	must.OK(t, err)
	for _, q := range []looks.Question{j.Looks.Primary, j.Looks.Guardrails[0].Question} {
		check.That(t, len(q.Rows) >= 2, "%d looks", len(q.Rows))
		for _, rows := range q.Rows[:2] {
			check.That(t, !rows[0].RecordedAt.IsZero(), "look %d: recorded at %s, recomputed %+v", rows[0].Number,
				rows[0].RecordedAt, rows[0].Recomputed)
			check.That(t, rows[0].Recomputed == nil, "look %d: recorded at %s, recomputed %+v", rows[0].Number,
				rows[0].RecordedAt, rows[0].Recomputed)
		}
	}
}

// TestHarmDoesNotWaitForAWindow records harm of two campaigns whose visitors convert at once: with a conversion window
// of 30 days on the same day as without one.
func TestHarmDoesNotWaitForAWindow(t *testing.T) {
	harmOf := func(own, guardrail string) (found []string) {
		p := newWindowed(t, own, guardrail)
		for day := range 6 {
			p.arrive(day, []int{500, 500}, 150, 60)
			p.pass(p.server, day+1, 1)
		}
		records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
		for _, r := range records {
			found = append(found, fmt.Sprint(r.Kind, r.End, r.VariationID, *r.Upper))
		}
		return found
	}
	without, with := harmOf("1h", "2h"), harmOf("30d", "29d")
	must.Equal(t, len(without), 2, "harm with a window of 30 days: %v, within an hour: %v", with, without)
	check.That(t, slices.Equal(with, without), "harm with a window of 30 days: %v, within an hour: %v", with, without)
}
