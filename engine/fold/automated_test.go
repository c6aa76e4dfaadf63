package fold

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// naiveAutomated returns the rows of an automated visitor, without digests.
func naiveAutomated(distinct []Event, most int) (rows []FactRow) {
	slices.SortFunc(distinct, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Accepted, b.Accepted), a.compareIdentity(&b))
	})
	for _, subject := range append([]schema.Subject{noSubject}, subjects...) {
		r := FactRow{Subject: subject, Grain: OfVisitor, Visitor: 7, Variation: "!", Number: uint32(most)}
		var first *Event
		for _, e := range distinct[:most+1] {
			if e.Subject != subject {
				continue
			}
			if r.Seen++; r.Seen == 1 || e.At < r.First {
				r.First = e.At
			}
			if e.Kind == moments.View && (first == nil || naiveViewBefore(e, *first)) {
				first = &e
				r.Variation = VariationOf(e.Variation, false) + "!"
			}
		}
		if r.Seen > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// A visitor with more distinct events than the limit has only rows that do not count. Later events do not change them.
func TestAutomatedVisitorsCountNowhere(t *testing.T) {
	var automated, others int
	checkWorlds(t, 2000, func(t *rapid.T, w world) {
		events, most := w.visitor(7), 1+w.IntN(20)
		distinct := naiveDistinct(events)
		rows := AppendVisitorRows(slices.Clone(events), most, nil)
		if len(distinct) <= most {
			others++
			want := rowsOf(events)
			must.That(t, reflect.DeepEqual(rows, want), "%d of %d events: %+v\nwant %+v", len(distinct), most, rows,
				want)
			return
		}
		automated++
		want := naiveAutomated(distinct, most)
		must.That(t, reflect.DeepEqual(bySubject(withoutDigests(rows)), bySubject(want)),
			"events %+v\nrows %+v\nwant %+v", events, rows, want)
		later := w.visitor(7)
		for i := range later {
			later[i].ID += 1000
			later[i].Accepted = w.start + 100
		}
		again := AppendVisitorRows(w.shuffled(slices.Concat(events, later)), most, nil)
		must.That(t, reflect.DeepEqual(bySubject(again), bySubject(rows)), "events %+v\nlater %+v\nrows %+v\nwant %+v",
			events, later, again, rows)
		for i := range rows {
			must.That(t, !IsCounted(rows[i].Variation), "%+v", rows[i])
			must.That(t, rows[i].Digest != 0, "%+v", rows[i])
		}
		ExplainVisitor(events, most, nil, func(x Explained) {
			must.That(t, (x.Reason == Copied || x.Reason == AutomatedVisitor), "%+v of an automated visitor", x)
			must.Equal(t, x.Variation, "", "%+v of an automated visitor", x)
		})
	})
	check.That(t, min(automated, others) >= 300, "%d automated visitors, %d others", automated, others)
}
