package watch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// arriveReturning stores a day of both variations, and of all orders so far the cancellations of that day: of the 60
// orders of a day and a variation, 18 are cancelled after as many days as the variation has.
func (p *past) arriveReturning(all *[]schema.Event, day int, after [2]int) {
	p.t.Helper()
	today := p.eventsOf(day, []int{500, 500}, 60, 60)
	*all = append(*all, today...)
	accepted := p.first.AddDate(0, 0, day).Add(23 * time.Hour)
	must.OK(p.t, schema.InsertEvents(p.t.Context(), p.conn, today, accepted))
	p.arriveCancellations(*all, day, after)
}

// arriveCancellations stores the cancellations of a day, which are accepted at its end. So those of today, whatever its
// time is, are not known yet.
func (p *past) arriveCancellations(all []schema.Event, day int, after [2]int) {
	p.t.Helper()
	type of struct {
		day       time.Time
		variation int64
	}
	var arriving []schema.Event
	number, today := map[of]int{}, p.first.AddDate(0, 0, day)
	for _, e := range all {
		if e.Kind != schema.KindGoal {
			continue
		}
		ordered := of{e.Time.Truncate(24 * time.Hour), e.VariationID}
		number[ordered]++
		comes := ordered.day.AddDate(0, 0, after[e.VariationID])
		if number[ordered] <= 18 && comes.Equal(today) {
			e.Revision, e.Cancelled = uint64(day+1), true //nolint:gosec // small
			arriving = append(arriving, e)
		}
	}
	if len(arriving) > 0 {
		must.OK(p.t, schema.InsertEvents(p.t.Context(), p.conn, arriving, today.AddDate(0, 0, 1)))
	}
}

// reportOf returns the report of the decision on a day.
func (p *past) reportOf(by *server, day int) *result.Report {
	p.t.Helper()
	owned := p.catalogue.Snapshot().AccountResources(1)
	declared := must.Get(plan.New(query.Request{AccountID: 1, SubjectID: 2}, owned))(p.t)
	j := must.Get(by.OpenJudgement(p.t.Context(), declared, p.first.AddDate(0, 0, day)))(p.t)
	must.OK(p.t, by.AnalyzeLooks(p.t.Context(), j))
	return must.Get(by.ReportDecision(p.t.Context(), j))(p.t)
}

// TestLooksWaitForReturnsThatDiffer follows a campaign whose orders are cancelled after 7 days in control and after 14
// in the treatment, at the same final rate. The difference is found before the treatment wins, is recorded once, and
// all looks wait until their orders have settled: 30 days, as no later cancellations can be known so soon. Then nothing
// differs.
func TestLooksWaitForReturnsThatDiffer(t *testing.T) {
	p := newPast(t, nil)
	var all []schema.Event
	var written []string
	passes := []int{8, 9, 10, 16, 20, 21, 30, 38, 39, 45, 46, 48} // days: each with a record, and one before it
	recordedOn := map[int]int{}                                   // look to the day
	by := p.server
	for day := range 48 {
		if day < 22 {
			p.arriveReturning(&all, day, [2]int{7, 14})
		} else {
			p.arriveCancellations(all, day, [2]int{7, 14})
		}
		if day == 20 {
			by = p.restart()
		}
		if !slices.Contains(passes, day+1) {
			continue
		}
		written = append(written, p.pass(by, day+1, 1)...)
		for _, r := range must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t) {
			if _, known := recordedOn[r.Number]; !known {
				recordedOn[r.Number] = day + 1
			}
		}
		if day != 20 {
			continue
		}
		report := p.reportOf(by, day+1)
		check.Equal(t, string(report.Decision.Status), "keepRunning", "on day 21")
		text := report.Decision.Text
		const says = "orders of Green are cancelled later, or less often, than those of Control. The result waits until "
		check.That(t, strings.Contains(text, says), "%s", text)
		check.Equal(t, string(report.Conclusion.Reasons[0]), "RETURNS_DIFFER", "on day 21")
		check.Equal(t, len(report.Checks.Returns), 1, "checks.returns")
	}

	// The alarm, and the looks after it.
	records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
	of := slices.DeleteFunc(slices.Clone(records), func(r looks.Record) bool { return r.Kind != looks.OfReturns })
	must.That(t, len(of) == 1, "%d rows of returns", len(of))
	r := of[0].Returns
	check.Equal(t, r.Look, 1, "%+v", r)
	check.That(t, r.IsLater, "%+v", r)
	check.Equal(t, r.VariationID, 1, "%+v", r)
	check.That(t, r.PValue < 0.001, "%+v", r)
	check.Equal(t, r.Settle, 30*24*time.Hour, "settle")
	check.Equal(t, recordedOn[0], 9, "the alarm on day")
	check.Equal(t, recordedOn[1], 8+30+1, "look 1 on day")
	check.Equal(t, recordedOn[2], 15+30+1, "look 2 on day")
	for _, r := range records {
		if r.Kind != looks.OfLook {
			continue
		}
		a, b := r.Strata[0].Control, r.Strata[0].Variation
		check.Equal(t, a.Converted, b.Converted, "look %d: converted", r.Number)
		check.Equal(t, a.Converted, int64(7*r.Number*42), "look %d: converted of control", r.Number)
	}
	check.That(t, slices.Contains(written, "check.failed returns"), "%q", written)

	// How long orders change, as known on day 30: the cancellations of the treatment's orders of days 0 to 15.
	changes := must.Get(by.ReadOrderChanges(t.Context(), 1))(t)[1]
	check.Equal(t, changes.Orders, 22*2*60, "orders")
	check.Equal(t, changes.Revisions, (22+16)*18, "revisions")
	check.Equal(t, changes.InWords("Purchase"), "Orders of Purchase change: 684 revisions of 2640 orders in 180 days. 95 % had "+
		"come after 15d, and 99 % after 15d: settle: 15d or settle: 15d of the goal makes looks wait for them.", "in words")
	check.That(t, !slices.Contains(written, "decision.changed ship"), "%q", written)
}

// TestEqualReturnsDoNotWait follows the same campaign with cancellations after 7 days in both variations.
func TestEqualReturnsDoNotWait(t *testing.T) {
	p := newPast(t, nil)
	var all []schema.Event
	for day := range 16 {
		p.arriveReturning(&all, day, [2]int{7, 7})
		p.pass(p.server, day+1, 1)
	}
	records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
	must.That(t, len(records) == 2, "%d rows", len(records))
	for i, r := range records {
		check.Equal(t, r.Kind, looks.OfLook, "%s %d", r.Kind, r.Number)
		check.Equal(t, r.Number, i+1, "%s %d", r.Kind, r.Number)
	}
}
