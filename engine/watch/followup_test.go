package watch_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

const aDay = 24 * time.Hour

// newFollowed declares a campaign that started 120 days ago and is planned for two weeks, with two readings of later
// orders. lasting is when it was stopped; 0: it still runs.
func newFollowed(t *testing.T, lasting time.Duration) *past {
	t.Helper()
	start := time.Now().UTC().Truncate(aDay).AddDate(0, 0, -120)
	p := newPast(t, func(c *catalogue.Campaign) {
		c.StartDate = &catalogue.Date{Time: start.Add(-time.Hour)}
		if lasting > 0 {
			c.Active = false
			c.EndDate = &catalogue.Date{Time: start.Add(lasting)}
		}
		c.PlannedDays = 14
		c.FollowUp = &catalogue.FollowUp{
			Metric: "valuePerVisitor", Windows: []schema.ConversionWindow{{To: 30 * aDay}, {To: 60 * aDay}},
		}
	})
	p.first = start
	return p
}

// spender is a visitor with orders.
type spender struct {
	variation int64
	first     time.Time
	orders    []order
}

type order struct {
	at    time.Time
	value int64
}

// drawSpenders draws visitors of 21 days. Those of the variation spend more in the first 30 days, and less afterwards.
func drawSpenders(p *past, r *rand.Rand, n int) (all []spender) {
	for range n {
		v := spender{
			variation: r.Int64N(2),
			first:     p.first.Add(time.Duration(r.Int64N(int64(21 * aDay)))).Truncate(time.Millisecond),
		}
		for range r.IntN(4) {
			age := time.Duration(r.Int64N(int64(70 * aDay)))
			value := 10_000 + r.Int64N(900_000)
			if v.variation == 1 && age < 30*aDay {
				value *= 2
			} else if v.variation == 1 {
				value /= 4
			}
			v.orders = append(v.orders, order{v.first.Add(age).Truncate(time.Millisecond), value})
		}
		all = append(all, v)
	}
	return all
}

// arriveOrders stores the events that happen on a day, which are accepted at its end.
func (p *past) arriveOrders(day int, all []spender) {
	p.t.Helper()
	from := p.first.AddDate(0, 0, day)
	isToday := func(at time.Time) bool { return !at.Before(from) && at.Before(from.AddDate(0, 0, 1)) }
	var events []schema.Event
	for i, v := range all {
		view := viewOf(uint64(i), 2, v.variation, v.first) //nolint:gosec // few
		view.EventID = 16 * view.VisitorID
		if isToday(v.first) {
			events = append(events, view)
		}
		for k, o := range v.orders {
			if isToday(o.at) {
				goal := goalAfter(view, 1, o.at.Sub(v.first))
				goal.EventID = view.EventID + uint64(k) + 1 //nolint:gosec // few
				goal.Value = o.value
				events = append(events, goal)
			}
		}
	}
	must.OK(p.t, schema.InsertEvents(p.t.Context(), p.conn, events, from.Add(aDay-time.Millisecond)))
}

// readings returns the recorded readings.
func (p *past) readings() []looks.Record {
	p.t.Helper()
	records := must.Get(looks.ReadRecords(p.t.Context(), p.conn, nil))(p.t)
	return slices.DeleteFunc(records, func(r looks.Record) bool { return r.Kind != looks.OfFollowUp })
}

// valueWithin returns the value of the orders of a variation within an age, and the visitors, of those whose first view
// is in the two full weeks.
func valueWithin(p *past, all []spender, variation int64, window time.Duration) (visitors, value int64) {
	from, to := p.first.AddDate(0, 0, 1), p.first.AddDate(0, 0, 15)
	for _, v := range all {
		if v.variation != variation || v.first.Before(from) || !v.first.Before(to) {
			continue
		}
		visitors++
		for _, o := range v.orders {
			if o.at.Sub(v.first) < window {
				value += o.value
			}
		}
	}
	return visitors, value
}

// TestLaterOrdersAreReadOnce follows a campaign of two weeks that nobody stops. Each window is read once, when it has
// ended for the last visitor of the last look of the plan and a day has passed. The reading has the orders within the
// window of the visitors of this look, at half the error rate, and a later correction does not change it.
func TestLaterOrdersAreReadOnce(t *testing.T) {
	p := newFollowed(t, 0)
	all := drawSpenders(p, rand.New(rand.NewPCG(81, 6)), 3000)
	by := p.server
	var events []string
	for day := range 92 {
		p.arriveOrders(day, all)
		switch day + 1 {
		case 9, 16, 45, 46, 75:
			events = append(events, p.pass(by, day+1, 1)...)
			want := map[int]int{45: 0, 46: 1, 75: 1}[day+1]
			check.Equal(t, len(p.readings()), want, "readings on day %d", day+1)
		case 47:
			by = p.restart()
		case 76:
			events = append(events, p.pass(by, day+1, 1)...)
			events = append(events, p.pass(p.another(), day+1, 2)...)
		}
	}
	found := p.readings()
	must.Equal(t, len(found), 2, "readings")
	for _, r := range found {
		window := time.Duration(r.Number) * aDay
		must.Equal(t, r.Window.To, window, "the window")
		check.That(t, r.End.Equal(p.first.AddDate(0, 0, 15)), "the end of the look is %v", r.End)
		must.Equal(t, len(r.Strata), 1, "strata")
		for variation, m := range map[int64]*[2]int64{
			0: {r.Strata[0].Control.Visitors, r.Strata[0].Control.Value.Sum.Int64()},
			1: {r.Strata[0].Variation.Visitors, r.Strata[0].Variation.Value.Sum.Int64()},
		} {
			visitors, value := valueWithin(p, all, variation, window)
			check.Equal(t, m[0], visitors, "visitors of variation %d within %v", variation, window)
			check.Equal(t, m[1], value, "value of variation %d within %v", variation, window)
		}
		once := stats.NewLookDesign(0.05/2, []float64{50, 50}).NewSequence([]stats.LookPoint{r.Point}, nil)
		critical := once.AnalyzeLook(0, nil, false).Critical
		must.That(t, critical != nil, "no critical value")
		check.Equal(t, *r.Critical, *critical, "the critical value")
		check.That(t, r.Significant, "%d days: z is %v", r.Number, r.Z)
		check.Equal(t, r.SignificantDirection(), 1, "direction within %d days", r.Number)
	}
	check.Equal(t, count(events, "followUp.recorded 30d"), 1, "messages: %q", events)
	check.Equal(t, count(events, "followUp.recorded 60d"), 1, "messages: %q", events)

	late := goalAfter(viewOf(0, 2, all[0].variation, all[0].first), 1, time.Hour)
	late.EventID, late.Value = 1<<40, 1_000_000_000
	must.OK(t, schema.InsertEvents(t.Context(), p.conn, []schema.Event{late}, p.first.AddDate(0, 0, 95)))
	p.pass(by, 96, 1)
	check.Equal(t, len(p.readings()), 2, "readings after a late order")
	for i, r := range p.readings() {
		check.Equal(t, *r.Z, *found[i].Z, "z after a late order")
	}
}

// count returns how many of some texts are equal to one.
func count(texts []string, one string) (n int) {
	for _, text := range texts {
		if text == one {
			n++
		}
	}
	return n
}

// A campaign that is stopped early is followed from its last whole week. Its report has the reading when it is recorded,
// and before that the day on which it is due.
func TestAStoppedCampaignIsFollowed(t *testing.T) {
	p := newFollowed(t, 10*aDay)
	all := drawSpenders(p, rand.New(rand.NewPCG(81, 7)), 800)
	for day := range 39 {
		p.arriveOrders(day, all)
	}
	report := func(until time.Time) string {
		r := must.Get(p.server.ComputeReport(t.Context(), p.declared(until)))(t)
		must.Equal(t, len(r.FollowUp), 2, "readings")
		return r.FollowUp[0].Text
	}
	p.pass(p.server, 38, 23)
	due := "Value per visitor within 30 days is due on " + p.first.AddDate(0, 0, 8+30+1).Format(time.DateOnly) + "."
	check.Equal(t, report(time.Time{}), due, "the report before")
	p.pass(p.server, 39, 1)
	check.Equal(t, len(p.readings()), 1, "readings")
	check.Contains(t, report(time.Time{}), "Value per visitor within 30 days: Green against Control is more: +", "the report")
	check.Equal(t, report(p.first.AddDate(0, 0, 20)), due, "the report until a day before")
}

// A campaign that is stopped within its first week has no look, so nobody is followed.
func TestACampaignWithoutALookIsNotFollowed(t *testing.T) {
	p := newFollowed(t, 5*aDay)
	all := drawSpenders(p, rand.New(rand.NewPCG(81, 8)), 200)
	for day := range 40 {
		p.arriveOrders(day, all)
	}
	p.pass(p.server, 100, 1)
	check.Equal(t, len(p.readings()), 0, "readings")
	r := must.Get(p.server.ComputeReport(t.Context(), p.declared(time.Time{})))(t)
	must.Equal(t, len(r.FollowUp), 2, "readings of the report")
	check.Equal(t, string(r.FollowUp[0].Reason), "TOO_EARLY", "the reason")
	check.Contains(t, r.FollowUp[0].Text, "the campaign ended before its first look", "the text")
}

// declared returns the plan of the report about the declared question until a time; zero: of all days.
func (p *past) declared(until time.Time) *plan.Plan {
	p.t.Helper()
	owned := p.catalogue.Snapshot().AccountResources(1)
	subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 2}
	request := plan.ResultsRequest(1, subject)
	request.Filters.To = until
	return must.Get(plan.New(request, owned))(p.t)
}
