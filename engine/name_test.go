package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/conclusions"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// look looks at all subjects at the end of a day, and returns how many conclusions it
// recorded.
func (x *trial) look(n *namer, day int) (recorded int) {
	x.t.Helper()
	n.look(x.t.Context(), x.first.AddDate(0, 0, day+1), func(context.Context) { recorded++ })
	x.engine.conclusions, x.rolled.conclusions = conclusions.NewTable(x.conn), conclusions.NewTable(x.conn) // read the table again
	return recorded
}

// TestConclusionIsRecordedOnce records a winner, and then changes the day that decided.
func TestConclusionIsRecordedOnce(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 3 {
		x.day(day, 50, 64)
		n := newNamer(x.engine) // events are accepted on one day, which is looked at once
		if recorded := x.look(n, day) + x.look(n, day); recorded != 0 {
			t.Fatalf("%d conclusions after day %d", recorded, day)
		}
	}
	x.day(3, 50, 60)
	n := newNamer(x.engine)
	for look, want := range []int{0, 1, 0, 0} {
		if recorded := x.look(n, 3); recorded != want {
			t.Errorf("look %d recorded %d conclusions, want %d", look, recorded, want)
		}
	}
	if recorded := x.look(newNamer(x.rolled), 3) + x.look(newNamer(x.rolled), 3); recorded != 0 {
		t.Errorf("another server recorded %d conclusions", recorded)
	}
	r := x.report(nil)
	if r.Conclusion.Status != stats.StatusWinner || r.Conclusion.Revised || r.Conclusion.Recorded != nil {
		t.Errorf("the conclusion that was recorded: %+v", r.Conclusion)
	}
	var rows uint64
	var comparison string
	if err := x.conn.QueryRow(t.Context(), "SELECT count(), any(comparison) FROM conclusions WHERE status = 'winner' AND variation_id = 1 AND visitors = 4000 AND goal_id = 1 AND segment = 1").Scan(&rows, &comparison); err != nil || rows != 1 {
		t.Fatalf("%d rows: %v", rows, err)
	}
	if want := inJSON(t, result.NewComparison(x.lookOf(3))); comparison != want {
		t.Errorf("recorded comparison\n%s\nwant\n%s", comparison, want)
	}

	x.day(3, 150, 40) // late visitors of that day
	r = x.report(nil)
	if c := r.Conclusion; c.Status == stats.StatusWinner || !c.Revised || c.Recorded == nil || c.Recorded.Status != stats.StatusWinner || c.Recorded.Visitors != 4000 ||
		!strings.HasSuffix(c.Text, " Later or removed events changed this: on 2026-03-05, the conclusion was that Green is better.") {
		t.Errorf("after late visitors: %s", inJSON(t, c))
	}
}

// lookOf returns the comparison at the end of a day, as the days of the report have it.
func (x *trial) lookOf(day int) stats.Comparison {
	x.t.Helper()
	p := comparisons(x.catalogue.Snapshot().Account(1))[0]
	e, s, err := x.engine.prepare(x.t.Context(), p)
	if err != nil {
		x.t.Fatal(err)
	}
	days, err := x.engine.days(x.t.Context(), e, s)
	if err != nil {
		x.t.Fatal(err)
	}
	d := days.Decide(x.first.AddDate(0, 0, day+1))
	return d.AtPlannedLook[0]
}

// TestOldConclusionsAreNotRecorded imports a campaign that was decided long ago.
func TestOldConclusionsAreNotRecorded(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 5 {
		x.day(day, 40, 80)
	}
	n := newNamer(x.engine)
	if recorded := x.look(n, 20) + x.look(n, 20); recorded != 0 {
		t.Errorf("%d conclusions were recorded", recorded)
	}
	if r := x.report(nil); r.Conclusion.Status != stats.StatusWinner || r.Conclusion.DecidedAt.After(x.first.Add(5*24*time.Hour)) {
		t.Errorf("conclusion %+v", r.Conclusion)
	}
}
