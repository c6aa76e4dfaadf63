package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/visitor_stored.sql
var visitorStored string

//go:embed sql/visitor_repeats.sql
var visitorRepeats string

//go:embed sql/visitor_rejects.sql
var visitorRejects string

// MaxOfVisitor is the maximum number of events, of repeats and of rejected lines of a
// visitor that Visitor returns. Only a bot has more.
const MaxOfVisitor = 10_000

// OfVisitor has what arrived of a visitor.
type OfVisitor struct {
	Events  []Accepted // by subject and time; only some fields are set
	Repeats []Repeat   // duplicates of the last week; not all of a large delivery
	Rejects []Reject   // rejected lines of the last week with the visitor's id; not all of a large delivery
	Limited bool       // there are more than MaxOfVisitor events, repeats or rejected lines
}

// Visitor reads what arrived of a visitor at a website, or at all websites if website
// is 0. The visitor is the id as it was sent.
func Visitor(ctx context.Context, conn driver.Conn, visitor string, website int64) (*OfVisitor, error) {
	v := &OfVisitor{}
	params := []any{clickhouse.Named("visitor_id", schema.Hash(visitor)), clickhouse.Named("website_id", website), clickhouse.Named("limit", MaxOfVisitor), clickhouse.Named("spellings", spellings([]string{visitor}))}
	read := func(query string, scan func(driver.Rows) error) error {
		rows, err := conn.Query(ctx, query, params...)
		if err != nil {
			return fmt.Errorf("read the events of a visitor: %w", err)
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for ; rows.Next(); n++ {
			if err := scan(rows); err != nil {
				return fmt.Errorf("read the events of a visitor: %w", err)
			}
		}
		v.Limited = v.Limited || n == MaxOfVisitor
		return rows.Err()
	}
	if err := read(visitorStored, func(rows driver.Rows) error {
		var e Accepted
		err := rows.Scan(append(append([]any{&e.At}, columnsOf(&e.Event)...), &e.Derived)...)
		v.Events = append(v.Events, e)
		return err
	}); err != nil {
		return nil, err
	}
	if err := read(visitorRepeats, func(rows driver.Rows) error {
		var p Repeat
		err := rows.Scan(append(append([]any{&p.ArrivedAt}, columnsOf(&p.Event)...), &p.Conflict, (*string)(&p.Way), &p.File, &p.Line)...)
		v.Repeats = append(v.Repeats, p)
		return err
	}); err != nil {
		return nil, err
	}
	err := read(visitorRejects, func(rows driver.Rows) error {
		var r Reject
		if err := rows.Scan(&r.Time, &r.WebsiteID, (*string)(&r.Way), &r.File, &r.Line, &r.Reason, &r.Text); err != nil {
			return err
		}
		if slices.ContainsFunc(spellings([]string{visitor}), func(id string) bool { return containsWord(r.Text, id) }) {
			v.Rejects = append(v.Rejects, r)
		}
		return nil
	})
	return v, err
}

// columnsOf returns the targets of the columns that events and repeats have in common.
func columnsOf(e *schema.Event) []any {
	return []any{&e.WebsiteID, (*string)(&e.Subject), &e.SubjectID, &e.ExperimentID, &e.VariationID, &e.VisitorID, &e.EventID, (*string)(&e.Kind), &e.GoalID, &e.Value, &e.Time}
}

// containsWord reports whether a text contains a word that is not a part of a longer
// one.
func containsWord(text, word string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }
	for rest, at := text, 0; ; {
		at = strings.Index(rest, word)
		if at < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		after, _ := utf8.DecodeRuneInString(rest[at+len(word):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		rest = rest[at+1:]
	}
}
