package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Order is a goal event that a line of a file yields, or a line that cannot be read.
type Order struct {
	Line         int64
	EventID      string // as sent
	schema.Event        // without exposures; of a line that cannot be read, only the amounts that can be read
	NoVisitor    bool   // the line names no visitor
	Fault        string // why the line cannot be read; empty: it can
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
				take(&Order{Line: line.number, Fault: fault.Error()})
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
	order := &Order{Line: line, EventID: strings.Clone(event.values[fieldEventID])}
	if order.NoVisitor = event.values[fieldVisitor] == ""; order.NoVisitor {
		event.values[fieldVisitor] = "none"
	}
	b := builder{given: event}
	order.Event = b.buildEvent("")
	if len(b.List) > 0 {
		order.Fault = b.List.Join("; ")
	}
	return order
}

const rejectedTexts = `SELECT text FROM rejects WHERE website_id IN (0, {website_id:Int64})`

// FindRefused returns which of some event ids occur in the lines that were rejected in the last week. Of large requests
// and files, not all rejected lines are known.
func FindRefused(ctx context.Context, conn driver.Conn, website int64, ids map[string]bool) (map[string]bool, error) {
	found := map[string]bool{}
	isEnd := func(r rune) bool { return strings.ContainsRune(`"'=,;:{}[]`, r) || r <= ' ' }
	err := schema.EachRow(ctx, conn, rejectedTexts, func(row driver.Rows) error {
		var text string
		err := row.Scan(&text)
		for _, word := range strings.FieldsFunc(text, isEnd) {
			if ids[word] {
				found[word] = true
			}
		}
		return err
	}, clickhouse.Named("website_id", website))
	if err != nil {
		return nil, fmt.Errorf("read rejected lines: %w", err)
	}
	return found, nil
}
