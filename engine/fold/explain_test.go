package fold

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// groupsOfReasons returns the groups of a visitor's events that the reasons make.
func groupsOfReasons(explained []Explained) []group {
	type key struct {
		subject   schema.Subject
		variation string
	}
	var groups []group
	found := map[key]int{}
	for _, x := range explained {
		if x.Reason <= Cancelled { // the rows do not name it
			continue
		}
		k := key{x.Subject, x.Variation}
		if _, is := found[k]; !is {
			found[k], groups = len(groups), append(groups,
				group{subject: x.Subject, variation: x.Variation, from: x.At})
		}
		g, e := &groups[found[k]], *x.Event
		e.At = x.At
		g.events, g.from = append(g.events, e), min(g.from, x.At)
		if x.Reason == FirstView {
			g.first = x.Event
		}
	}
	for i := range groups {
		naiveSort(groups[i].events)
	}
	slices.SortStableFunc(groups,
		func(a, b group) int { return len(a.variation) - len(b.variation) }) // events that do not count first
	return groups
}

// Each event has a reason for its own subject, and the events make the rows that their reasons say.
func TestReasonsAddUpToTheRows(t *testing.T) {
	checkWorlds(t, 2000, func(t *rapid.T, w world) {
		events := w.visitor(7)
		var explained []Explained
		rows := ExplainVisitor(events, MaxVisitorEvents, nil, func(x Explained) { explained = append(explained, x) })
		want := rowsOf(events)
		must.That(t, reflect.DeepEqual(rows, want), "events %+v\nrows with reasons %+v\nwithout %+v", events, rows,
			want)
		sums := []FactRow{}
		for _, g := range groupsOfReasons(explained) {
			sums = append(sums, naiveVisitorRow(g))
			for goal := int64(1); goal <= goalsOfWorld; goal++ {
				sums = append(sums, naiveGoalRows(g, goal)...)
			}
		}
		got := bySubject(ofEvents(rows))
		must.That(t, len(sums)+len(got) == 0 || reflect.DeepEqual(bySubject(sums), got),
			"events %+v\nrows of the reasons %+v\nwant %+v", events, sums, got)
		times := map[*Event]int{}
		for _, x := range explained {
			if x.Subject == x.Event.Subject {
				times[x.Event]++
			}
			checkReason(t, x)
		}
		for i := range events {
			check.Equal(t, times[&events[i]], 1, "reasons for %+v", events[i])
		}
	})
}

// ofEvents returns the rows without what they were made of, and without those made of nothing but cancelled events.
func ofEvents(rows []FactRow) []FactRow {
	rows = withoutDigests(rows)
	for i := range rows {
		rows[i].Seen = 0
	}
	return slices.DeleteFunc(rows, func(r FactRow) bool {
		return r.Grain == OfVisitor && len(r.Later) == 0 && r.Counts == [6]uint32{}
	})
}

// checkReason checks a reason against the event on which it is based.
func checkReason(t rapid.TB, x Explained) {
	t.Helper()
	var is bool
	switch x.Reason {
	case Copied:
		is = x.Basis.compareIdentity(x.Event) == 0 && x.Basis != x.Event && !naiveArrivesBefore(*x.Event, *x.Basis)
	case Superseded:
		is = x.Basis.ID == x.Event.ID && x.Basis != x.Event && x.Basis.Revision >= x.Event.Revision
	case Cancelled:
		is = x.Event.Cancelled
	case WithoutView:
		is = x.Basis == nil
	case BeforeFirstView:
		is = x.At < x.Basis.At && x.Basis.Subject == x.Subject
	case FirstView:
		is = x.Event == x.Basis
	case AutomatedVisitor, AcquiredBefore: // not in these worlds
		is = false
	case SinceFirstView:
		is = x.At >= x.Basis.At && x.Basis.Subject == x.Subject && x.Event != x.Basis
	}
	if counts := x.Reason >= FirstView; !is || counts != (x.Variation != "") {
		t.Errorf("wrong reason: %+v of %+v", x, *x.Event)
	}
}
