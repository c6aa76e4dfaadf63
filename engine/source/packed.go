package source

import (
	"context"
	"slices"

	"lifthouse/engine/packed"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// packedEvents returns all events of the subject, which the store keeps in memory, with
// the attributes that the report needs. It returns nil if the store keeps no events, or if
// it cannot keep these.
func (x *Execution) packedEvents(ctx context.Context) (*packed.Events, error) {
	cache := x.Store.Packed
	if cache == nil || x.Stored.Events > x.Store.Limits.MaxInProcess() {
		return nil, nil
	}
	events := cache.Get(x.Subject, x.Stored.Events, x.Stored.Ingested.UnixMilli())
	if events == nil {
		drops := cache.Drops()
		var err error
		if events, err = x.readPacked(ctx); err != nil || events == nil {
			return nil, err
		}
		cache.Keep(x.Subject, events, drops)
	}
	return x.withAttributes(ctx, events)
}

// IsPacked reports whether the events of the subject are in memory.
func (x *Execution) IsPacked() bool {
	return x.Store.Packed.Get(x.Subject, x.Stored.Events, x.Stored.Ingested.UnixMilli()) != nil
}

// readPacked reads all events of the subject. It returns nil if they cannot be packed.
func (x *Execution) readPacked(ctx context.Context) (*packed.Events, error) {
	query := &Query{Params: SubjectParams(x.Subject), Events: x.Stored.Events}
	if err := query.Render("packed.sql", nil); err != nil {
		return nil, err
	}
	rows := make([]packed.Row, 0, x.Stored.Events)
	var e packed.Row
	var accepted, through int64
	to := []any{&e.Visitor, &e.At, &e.Variation, (*uint8)(&e.Kind), &e.ID, &e.Goal, &e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &accepted}
	err := x.Store.Each(ctx, query, func(found driver.Rows) error {
		err := found.Scan(to...)
		rows, through = append(rows, e), max(through, accepted)
		return err
	})
	if err != nil {
		return nil, err
	}
	events, fit := packed.Pack(rows, through)
	if !fit {
		return nil, nil
	}
	return events, nil
}

// withAttributes returns the events with the attributes that the report needs. It returns
// nil if the store has other first views by now.
func (x *Execution) withAttributes(ctx context.Context, events *packed.Events) (*packed.Events, error) {
	var missing []string
	for _, name := range x.attributes() {
		if events.Column(name) == nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return events, nil
	}
	views, err := x.readFirstViews(ctx, missing)
	if err != nil {
		return nil, err
	}
	with, same := events.WithColumns(missing, views)
	if !same {
		return nil, nil
	}
	x.Store.Packed.Replace(x.Subject, events, with)
	return with, nil
}

// attributes returns the attributes of first views that the report needs.
func (x *Execution) attributes() []string {
	var names []string
	if x.Dimension != "" {
		names = append(names, string(x.Dimension))
	}
	for _, filter := range x.Filters.Lists {
		names = append(names, filter.Attribute)
	}
	for _, filter := range x.Filters.Texts {
		names = append(names, filter.Attribute)
	}
	return names
}

func (x *Execution) readFirstViews(ctx context.Context, attributes []string) ([]packed.FirstView, error) {
	query := &Query{Params: SubjectParams(x.Subject), Events: x.Stored.Events}
	var columns []Expr
	for _, name := range attributes {
		columns = append(columns, Columns[name])
	}
	if err := query.Render("first_views.sql", struct{ Columns []Expr }{columns}); err != nil {
		return nil, err
	}
	var views []packed.FirstView
	return views, x.Store.Each(ctx, query, func(found driver.Rows) error {
		v := packed.FirstView{Values: make([]string, len(attributes))}
		to := []any{&v.Visitor, &v.At, &v.Variation, &v.ID}
		for i := range v.Values {
			to = append(to, &v.Values[i])
		}
		err := found.Scan(to...)
		views = append(views, v)
		return err
	})
}
