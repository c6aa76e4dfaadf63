package fold

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
)

// TestLostEvents loses random events of a visitor. The stored events and the lost ones, which LostEvents takes from the
// rows, count as before, also together with later events. Once they are stored again, none is lost.
func TestLostEvents(t *testing.T) {
	checkWorlds(t, 300, func(t *rapid.T, w world) {
		events, later := w.distinctVisitor(0), w.distinctVisitor(1000)
		kept := slices.DeleteFunc(slices.Clone(events), func(Event) bool { return w.IntN(3) == 0 })
		rows := AppendVisitorRows(events, MaxVisitorEvents, nil)
		isShort := func(of schema.Subject) bool {
			return seenOf(AppendVisitorRows(kept, MaxVisitorEvents, nil), of) < seenOf(rows, of)
		}
		lost := LostEvents(rows, kept, isShort)
		must.Equal(t, len(lost), len(events)-len(kept), "events are lost")
		checkSameSums(t, AppendVisitorRows(append(lost, kept...), MaxVisitorEvents, nil), rows)
		again := AppendVisitorRows(append(lost, kept...), MaxVisitorEvents, nil)
		found := AppendVisitorRows(append(LostEvents(again, kept, isShort), kept...), MaxVisitorEvents, nil)
		must.That(t, reflect.DeepEqual(found, again), "the rows do not stay the same: %+v, then %+v", again, found)
		checkSameSums(t, AppendVisitorRows(slices.Concat(lost, kept, later), MaxVisitorEvents, nil),
			AppendVisitorRows(slices.Concat(events, later), MaxVisitorEvents, nil))
		// corrected rates are no loss
		lost = LostEvents(rows, w.corrected(kept), isShort)
		must.Equal(t, len(lost), len(events)-len(kept), "events are lost by corrected rates")
		left := LostEvents(again, w.shuffled(slices.Concat(kept, events)), isShort)
		must.That(t, len(left) == 0, "lost although they are stored again: %+v", left)
	})
}

// distinctVisitor returns events of a visitor without copies, revisions and cancelled events. Goals without exposures
// have ids of their own.
func (w world) distinctVisitor(ids uint64) []Event {
	events := slices.DeleteFunc(naiveDistinct(w.visitor(7)),
		func(e Event) bool { return e.Revision > 0 || e.Cancelled })
	for i := range events {
		if events[i].ID += ids; events[i].isBare() {
			events[i].ID += 500
		}
	}
	return events
}

func seenOf(rows []FactRow, of schema.Subject) (n uint32) {
	for i := range rows {
		if rows[i].Subject == of {
			n += rows[i].Seen
		}
	}
	return n
}

// goalDetails returns the numbers of the goal rows by what they say besides their amounts.
func goalDetails(rows []FactRow) map[string]int {
	found := map[string]int{}
	for _, r := range rows {
		if r.Grain == OfGoal {
			found[fmt.Sprint(r.Subject, r.Variation, r.Custom, r.Goal, r.Since, r.Amounts, r.Properties, r.Items)]++
		}
	}
	return found
}

// checkSameSums compares rows except for what depends on the ids of events.
func checkSameSums(t *rapid.T, found, want []FactRow) {
	t.Helper()
	cells := func(rows []FactRow) Cells {
		c := Cells{}
		for from, to := 0, 0; from < len(rows); from = to {
			for to = from + 1; to < len(rows) && rows[to].Subject == rows[from].Subject; to++ {
			}
			c.AddRows(rows[from:to], 1, true)
		}
		for _, cell := range c {
			cell.FirstOnTime, cell.AcceptedOnTime, cell.AcceptedLate = 0, 0, 0 // of lost views, they are not known
		}
		return c
	}
	visitors := func(rows []FactRow) (visitors []FactRow) {
		for _, r := range rows {
			if r.Grain == OfVisitor {
				r.Digest, r.Views = 0, Extent{}
				visitors = append(visitors, r)
			}
		}
		return visitors
	}
	must.That(t, reflect.DeepEqual(cells(found), cells(want)), "%+v\nwant %+v", found, want)
	must.That(t, reflect.DeepEqual(visitors(found), visitors(want)), "%+v\nwant %+v", found, want)
	must.That(t, reflect.DeepEqual(goalDetails(found), goalDetails(want)), "%+v\nwant %+v", found, want)
}
