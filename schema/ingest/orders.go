package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"lifthouse/schema"
)

// Order is a goal event that a line of a file yields, or a line that cannot be read.
type Order struct {
	FileLine             int64
	ID                   string // as sent
	Event, Visitor       uint64 // hashes
	Revision             uint64
	At                   int64 // milliseconds since 1970
	WebsiteID, GoalID    int64
	Value, Profit        int64 // in 1/schema.MoneyScale; of a line that cannot be read, what can be read
	Cancelled, NoVisitor bool  // NoVisitor: the line names none
	Fault                string
}

// ReadOrders calls take for each goal event of a file, in the order of the file. It stores nothing.
func ReadOrders(ctx context.Context, path string, o Options, take func(*Order)) error {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader, err := o.openReader(ctx, path, file, &contextReader{ctx: ctx, r: file})
	for err == nil {
		var parse parse
		if parse, err = reader.readPart(); parse == nil {
			break
		}
		parse(func(line origin, events []fields, fault error) {
			if fault != nil {
				take(&Order{FileLine: line.number, Fault: fault.Error()})
				return
			}
			for i := range events {
				if kind := events[i].values[fieldEvent]; kind == string(schema.KindGoal) || kind == "" {
					take(newOrder(line.number, &events[i]))
				}
			}
		})
	}
	if l, is := reader.(*jsonLines); is && errors.Is(err, io.EOF) {
		if missing := l.missingColumns(); missing != nil {
			err = missing
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// newOrder returns a goal event as an order.
func newOrder(line int64, event *fields) *Order {
	noVisitor := event.values[fieldVisitor] == ""
	if noVisitor {
		event.values[fieldVisitor] = "none"
	}
	b := builder{given: event}
	e := b.buildEvent("")
	return &Order{
		FileLine: line, ID: strings.Clone(event.values[fieldEventID]), Event: e.EventID, Visitor: e.VisitorID,
		Revision: e.Revision, At: e.Time.UnixMilli(), WebsiteID: e.WebsiteID, GoalID: e.GoalID, Value: e.Value,
		Profit: e.Profit, Cancelled: e.Cancelled, NoVisitor: noVisitor, Fault: b.List.Join("; "),
	}
}
