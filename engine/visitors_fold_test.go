package engine

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/engine/visitors"
	"lifthouse/schema"
)

// visitorRows has the rows of visitors of each subject.
type visitorRows map[plan.Subject]*rowsOfSubject

type rowsOfSubject struct {
	visitors.Generation
	source.Stored
}

// insertVisitorRows inserts the rows of the subjects of the events. The events of
// every visitor come in two refreshes.
func insertVisitorRows(t *testing.T, conn driver.Conn, events []schema.Event) visitorRows {
	t.Helper()
	of := map[plan.Subject]map[uint64][]visitors.Event{}
	rows := visitorRows{}
	for i := range events {
		e := &events[i]
		subject := plan.Subject{WebsiteID: e.WebsiteID, Kind: e.Subject, ID: e.SubjectID, ExperimentID: e.ExperimentID}
		if of[subject] == nil {
			of[subject], rows[subject] = map[uint64][]visitors.Event{}, &rowsOfSubject{}
		}
		of[subject][e.VisitorID] = append(of[subject][e.VisitorID], visitorEvent(e))
		rows[subject].Stored = rows[subject].With(1, start, e.Time)
	}
	for subject, byVisitor := range of {
		number := uint64(subject.ID)<<8 + uint64(len(subject.Kind))<<4 + uint64(subject.ExperimentID) // unique
		id, err := generation.New(t.Context(), conn, number, false)
		if err != nil {
			fatal(t, err)
		}
		g := &rows[subject].Generation
		*g = visitors.New(id, nil)
		first, second := visitors.NewChanges(g), visitors.NewChanges(g)
		for visitor, all := range byVisitor {
			half := all[:len(all)/2]
			first.Update(visitor, nil, half)
			second.Update(visitor, half, all)
		}
		if err := first.InsertFirst(t.Context(), conn); err != nil {
			fatal(t, err)
		}
		if err := second.Insert(t.Context(), conn, number, g.AddRefresh(number, second)); err != nil {
			fatal(t, err)
		}
	}
	return rows
}

func visitorEvent(e *schema.Event) visitors.Event {
	kinds := map[schema.Kind]visit.Kind{
		schema.KindView: visit.View, schema.KindClick: visit.Click, schema.KindSubmit: visit.Submit, schema.KindCompletion: visit.Completion,
		schema.KindConversion: visit.Conversion, schema.KindContact: visit.Contact, schema.KindGoal: visit.Goal,
	}
	counted := visitors.Event{Goal: e.GoalID, Event: visit.Event{
		At: e.Time.UnixMilli(), ID: e.EventID, Variation: e.VariationID, Kind: kinds[e.Kind], Amounts: [3]int64{e.Value, e.Profit, e.ExtraValue},
	}}
	values := map[string]string{
		"device": e.Device, "country": e.Country, "channel": e.Channel, "referrer": e.Referrer, "browser": e.Browser, "city": e.City,
		"utm_source": e.UTMSource, "visitor_type": e.VisitorType,
	}
	for _, column := range visitors.Attributes {
		counted.Attributes = append(counted.Attributes, values[column])
	}
	return counted
}

// compare compares the answer from the rows with the fold, and its breakdown with
// that of another source. It reports whether the rows can answer.
func (rows visitorRows) compare(t *testing.T, x *source.Execution, events []schema.Event, other *result.Report) bool {
	t.Helper()
	of := rows[x.Subject]
	if of == nil || visitors.Declines(x.Plan, of.Newest) != "" {
		return false
	}
	unlimited := *x
	unlimited.Limited = nil
	found, declined, err := visitors.Source{Execution: &unlimited, Shards: []visitors.Shard{{Store: x.Store, Generation: &of.Generation}}, Through: x.Stored.Ingested, Newest: of.Newest}.Read(t.Context())
	if err != nil {
		fatal(t, err)
	}
	if declined != "" {
		t.Errorf("the rows decline: %s\n%s", declined, x.Plan)
	}
	if x.Cap != nil && found.Cap.Limit != x.Limited.Limit {
		t.Errorf("limit %d of the rows, want %d\n%s", found.Cap.Limit, x.Limited.Limit, x.Plan)
	}
	if got, want := written(t, result.New(x.Plan, found, nil).Breakdown), written(t, other.Breakdown); got != want {
		t.Errorf("breakdown\n got %.1500s\nwant %.1500s\n%s", got, want, x.Plan)
	}
	whole, undivided := *x, *x.Plan
	undivided.Dimension, whole.Plan = "", &undivided
	compareRows(t, &whole, found.Whole, events)
	return true
}
