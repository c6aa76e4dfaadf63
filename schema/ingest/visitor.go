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
)

//go:embed sql/visitor_stored.sql
var visitorStored string

//go:embed sql/visitor_rejects.sql
var visitorRejects string

// MaxOfVisitor is the maximum number of a visitor's events, and of rejected lines,
// that ReadVisitor returns. Only bots have more.
const MaxOfVisitor = 10_000

// OfVisitor holds everything that arrived about a visitor.
type OfVisitor struct {
	Events  []Accepted // in the order of their arrival, with copies; only some fields are set
	Rejects []Reject   // rejected lines of the last week with the visitor's id; not all of a large body
	Limited bool       // there are more than MaxOfVisitor events or rejected lines
}

// ReadVisitor reads what arrived about a visitor on the websites, or on all websites if
// none is given. visitor is the id as it was sent.
func (r *Journal) ReadVisitor(ctx context.Context, visitor string, websites []int64) (*OfVisitor, error) {
	ids := visitorSpellings([]string{visitor})
	params := []any{clickhouse.Named("visitor_id", schema.HashID(visitor)), clickhouse.Named("website_ids", websites), clickhouse.Named("limit", MaxOfVisitor), clickhouse.Named("spellings", ids)}
	v := &OfVisitor{}
	var err error
	v.Events, err = schema.QueryRows(ctx, r.conn, acceptedColumns+visitorStored, scanAccepted, params...)
	if err == nil {
		v.Rejects, err = schema.QueryRows(ctx, r.conn, rejectedColumns+visitorRejects, scanReject, params...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the events of a visitor: %w", err)
	}
	v.Limited = max(len(v.Events), len(v.Rejects)) == MaxOfVisitor
	v.Rejects = slices.DeleteFunc(v.Rejects, func(r Reject) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return containsWord(r.Text, id) })
	})
	return v, nil
}

// containsWord reports whether a text contains a word that is not part of a longer
// word.
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
