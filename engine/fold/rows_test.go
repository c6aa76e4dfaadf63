package fold

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// naiveRows returns the rows of a visitor, without digests.
func naiveRows(events []Event) []FactRow {
	var rows []FactRow
	for _, g := range naiveGroups(events) {
		rows = append(rows, naiveVisitorRow(g))
		for goal := int64(1); goal <= goalsOfWorld; goal++ {
			rows = append(rows, naiveGoalRows(g, goal)...)
		}
	}
	return rows
}

// naiveExtent returns the extent with another view.
func naiveExtent(x Extent, e Event) Extent {
	least := func(to *int64, ms int64) {
		if *to == 0 || ms < *to {
			*to = ms
		}
	}
	least(&x.FirstView, e.At)
	if late := e.Accepted - e.At; -86_400_000 <= late && late <= 86_400_000 {
		least(&x.FirstOnTime, e.At)
		least(&x.AcceptedOnTime, e.Accepted)
	} else {
		least(&x.AcceptedLate, e.Accepted)
	}
	return x
}

func naiveVisitorRow(g group) FactRow {
	r := FactRow{
		Subject: g.subject, Grain: OfVisitor, Variation: g.variation, Visitor: 7, First: g.from,
		Seen: uint32(len(g.rows)),
	}
	if g.first != nil {
		r.Attributes = g.first.Attributes
		r.Custom = g.first.Custom
	}
	for _, e := range g.events {
		switch e.Kind {
		default: // goals have rows of their own
		case moments.View:
			r.Counts[0]++
			r.Views = naiveExtent(r.Views, e)
			if g.first != nil && e.Variation != g.first.Variation && (r.MultiExposed == 0 || e.At < r.MultiExposed) {
				r.MultiExposed = e.At
			}
		case moments.Click:
			r.Counts[1]++
		case moments.Submit:
			r.Counts[2]++
		case moments.Completion:
			r.Counts[3]++
		case moments.Conversion:
			r.Counts[4]++
		case moments.Contact:
			r.Counts[5]++
		}
		if e.At-g.from > int64(r.Since) {
			r.Since = uint64(e.At - g.from)
		}
		if g.first == nil || !reflect.DeepEqual(e, *g.first) {
			r.Later = append(r.Later, uint64(e.At-g.from))
			r.LaterKinds = append(r.LaterKinds, uint8(e.Kind))
		}
	}
	return r
}

func naiveGoalRows(g group, goal int64) []FactRow {
	var rows []FactRow
	var before [3]int64
	multiExposed := naiveVisitorRow(g).MultiExposed
	for _, e := range g.events {
		if e.Kind != moments.Goal || e.Goal != goal {
			continue
		}
		r := FactRow{
			Subject: g.subject, Grain: OfGoal, Goal: goal, Variation: g.variation, Visitor: e.Visitor,
			First: g.from, Since: uint64(e.At - g.from), Number: uint32(len(rows) + 1), MultiExposed: multiExposed,
			Before: before, Properties: e.Properties, Foreign: e.Foreign,
		}
		known := false
		r.Amounts, r.Items, known = naiveWorth(e)
		if !known { // it counts, and its amounts do not
			r.Marks = 1
		}
		if e.Acquired > 0 {
			r.Marks += 4
		}
		if e.IsRevised {
			r.Marks += 8
		}
		if g.first != nil {
			r.Attributes, r.Custom = g.first.Attributes, g.first.Custom
		}
		for i := range before {
			before[i] += r.Amounts[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// rowsOf returns the rows of a visitor. The events do not change.
func rowsOf(events []Event) []FactRow {
	return AppendVisitorRows(slices.Clone(events), MaxVisitorEvents, nil)
}

// bySubject sorts rows by subject. The order of the rows of a subject stays.
func bySubject(rows []FactRow) []FactRow {
	slices.SortStableFunc(rows, func(a, b FactRow) int {
		return strings.Compare(a.Subject.String(), b.Subject.String())
	})
	return rows
}

func withoutDigests(rows []FactRow) []FactRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Digest = 0
	}
	return rows
}

func TestRowsEqualThePlainLoops(t *testing.T) {
	var multi, uncounted, bare, single int
	checkWorlds(t, 3000, func(t *rapid.T, w world) {
		events := w.visitor(7)
		after := slices.Clone(events)
		got, want := bySubject(withoutDigests(AppendVisitorRows(after, MaxVisitorEvents,
			nil))), bySubject(naiveRows(events))
		must.That(t, reflect.DeepEqual(after, events), "after AppendVisitorRows %+v\nbefore %+v", after,
			events) // they can be folded again
		must.That(t, reflect.DeepEqual(got, want), "events %+v\nrows %+v\nwant %+v", events, got, want)
		for _, g := range naiveGroups(events) {
			switch {
			case strings.HasSuffix(g.variation, "+"):
				multi++
			case g.variation != "":
				single++
			case g.subject == noSubject:
				bare++
			default:
				uncounted++
			}
		}
	})
	check.That(t, min(multi, uncounted, bare, single) >= 500,
		"the worlds are one-sided: %d rows of multi-exposed visitors, %d of others, %d of events that do not count, %d of goals without exposures", multi, single, uncounted, bare)
}

// TestLaterCopiesChangeNoRow also changes the order of the events.
func TestLaterCopiesChangeNoRow(t *testing.T) {
	checkWorlds(t, 500, func(t *rapid.T, w world) {
		events := w.visitor(7)
		want := rowsOf(events)
		more := slices.Clone(events)
		for _, e := range naiveDistinct(events) {
			later := w.content(e, 5, 3)
			if later.Revision = e.Revision; later.Kind != moments.Goal && e.Revision > 0 {
				continue
			}
			later.Accepted += 1 + w.Int64N(3)
			more = append(more, e, later)
		}
		for range 3 {
			shuffled := w.shuffled(more)
			got := rowsOf(shuffled)
			check.That(t, reflect.DeepEqual(got, want), "events %+v\nrows %+v\nwith copies %+v\nrows %+v", events, want,
				shuffled, got)
		}
	})
}

// TestRowsDoNotDependOnArrival draws revisions of events, each with one content, and lets them arrive in random orders,
// several times, and in batches of random sizes.
func TestRowsDoNotDependOnArrival(t *testing.T) {
	checkWorlds(t, tier.Of(100, 2000), func(t *rapid.T, w world) {
		sent := naiveDistinct(w.visitor(7))
		var want []FactRow
		for range 4 {
			arrived, at := w.shuffled(slices.Concat(sent, w.shuffled(sent)[:w.IntN(len(sent)+1)])), w.start
			for i := range arrived {
				at += w.Int64N(2) // those of a batch are accepted at the same time
				arrived[i].Accepted = at
			}
			rows := rowsOf(arrived)
			for i := range rows {
				rows[i].Views = Extent{} // they say when views were accepted, and are not stored
			}
			if want == nil {
				want = rows
			}
			naive := bySubject(withoutDigests(naiveRows(arrived)))
			for i := range naive {
				naive[i].Views = Extent{}
			}
			must.That(t, reflect.DeepEqual(rows, want), "events %+v\nrows %+v\nwant %+v", arrived, rows, naive)
			must.That(t, reflect.DeepEqual(bySubject(withoutDigests(rows)), naive), "events %+v\nrows %+v\nwant %+v",
				arrived, rows, naive)
		}
	})
}

func TestRowsAreAppended(t *testing.T) {
	events := newWorld(rand.New(rand.NewPCG(1, 1))).visitor(7)
	earlier := []FactRow{{Visitor: 1}, {Visitor: 2}}
	got, want := AppendVisitorRows(slices.Clone(events), MaxVisitorEvents,
		slices.Clone(earlier)), slices.Concat(earlier, rowsOf(events))
	check.That(t, reflect.DeepEqual(got, want), "rows %+v, want %+v", got, want)
	rows := AppendVisitorRows(nil, MaxVisitorEvents, nil)
	check.That(t, rows == nil, "rows of no event: %+v", rows)
}

// Times begin with 1970, where a visitor is multi-exposed at the time 0.
func TestMultiExposedAtTheTimeZero(t *testing.T) {
	view := func(id uint64, at, variation int64) Event {
		return Event{Subject: subjects[0], Visitor: 7, ID: id, At: at, Variation: variation, Kind: moments.View}
	}
	r := AppendVisitorRows([]Event{view(1, 0, 0), view(2, 0, 1), view(3, 5, 1)}, MaxVisitorEvents, nil)[0]
	check.Equal(t, r.Variation, "0+", "variation %s, multi-exposed at %d, want 0+ at 0", r.Variation, r.MultiExposed)
	check.Equal(t, r.MultiExposed, 0, "variation %s, multi-exposed at %d, want 0+ at 0", r.Variation, r.MultiExposed)
}

// digestOf returns the digest of a visitor's only event.
func digestOf(e Event) uint64 { return AppendVisitorRows([]Event{e}, MaxVisitorEvents, nil)[0].Digest }

func TestDigestsCombineTheOwnEvents(t *testing.T) {
	checkWorlds(t, 300, func(t *rapid.T, w world) {
		events := w.visitor(7)
		want := map[schema.Subject]map[string]uint64{}
		for _, g := range naiveGroups(events) {
			var digest uint64
			for _, e := range g.rows {
				digest ^= e.contentHash()
			}
			for _, e := range g.events {
				digest ^= e.hashWorth()
			}
			if want[g.subject] == nil {
				want[g.subject] = map[string]uint64{}
			}
			want[g.subject][g.variation] = digest
		}
		for _, r := range rowsOf(events) {
			if digest := want[r.Subject][r.Variation]; r.Grain == OfVisitor && r.Digest != digest ||
				r.Grain == OfGoal && r.Digest != 0 {
				t.Errorf("digest %x, want %x: %+v", r.Digest, digest, r)
			}
		}
	})
}

func TestDigestsShowEveryContent(t *testing.T) {
	base := Event{
		Subject: subjects[0], Visitor: 7, ID: 1, At: 1, Variation: 1, Kind: moments.View, Goal: 1,
		Amounts: [3]int64{1, 2, 3}, Attributes: "a\x00b",
	}
	seen := map[uint64]string{digestOf(base): "nothing"}
	for what, change := range map[string]func(e *Event){
		"id": func(e *Event) { e.ID++ }, "time": func(e *Event) { e.At++ },
		"variation": func(e *Event) { e.Variation++ },
		"kind":      func(e *Event) { e.Kind++ }, "goal": func(e *Event) { e.Goal++ },
		"value":  func(e *Event) { e.Amounts[0]++ },
		"profit": func(e *Event) { e.Amounts[1]++ }, "extra value": func(e *Event) { e.Amounts[2]++ },
		"attributes": func(e *Event) { e.Attributes = "ab\x00" },
		"revision":   func(e *Event) { e.Revision++ }, "cancelled": func(e *Event) { e.Cancelled = true },
		"details":                 func(e *Event) { e.Details = `{"currency":"EUR"}` },
		"currency of the website": func(e *Event) { e.Foreign = "EUR" },
		"amounts exchanged":       func(e *Event) { e.Amounts = [3]int64{2, 1, 3} },
	} {
		e := base
		change(&e)
		other, is := seen[digestOf(e)]
		check.That(t, !is, "the digest is the same with changed %s and with changed %s", what, other)
		seen[digestOf(e)] = what
	}
	accepted := base
	accepted.Accepted++
	check.Equal(t, digestOf(accepted), digestOf(base), "digests of two acceptance times")
}

// What an amount in another currency is worth depends on rates, and is in the digest.
func TestDigestsShowRates(t *testing.T) {
	seen := map[uint64]string{}
	for _, rate := range []string{"", "160", "161.2", "161.25"} {
		e := Event{Subject: noSubject, Visitor: 7, ID: 1, At: 2 * day, Kind: moments.Goal, Goal: 1, Foreign: "JPY"}
		e.Amounts = [3]int64{14_500 * schema.MoneyScale}
		if rate != "" {
			e.Book = newBook(prices{"JPY": {1: rate}})
		}
		other, is := seen[digestOf(e)]
		check.That(t, !is, "the digest is the same with the rates %q and %q", rate, other)
		seen[digestOf(e)] = rate
	}
}

// Exchanged attributes of two views are another content, with another first view's attributes.
func TestDigestsShowExchangedAttributes(t *testing.T) {
	view := func(id uint64, attributes string) Event {
		return Event{
			Subject: subjects[0], Visitor: 7, ID: id, At: int64(id), Kind: moments.View,
			Attributes: attributes,
		}
	}
	one, other := AppendVisitorRows([]Event{view(1, "a"), view(2, "b")}, MaxVisitorEvents, nil)[0], AppendVisitorRows([]Event{view(1, "b"), view(2, "a")}, MaxVisitorEvents, nil)[0]
	check.That(t, one.Digest != other.Digest, "rows with attributes %q and %q have the same digest", one.Attributes,
		other.Attributes)
}
