package source_test

import (
	"context"
	"testing"

	"lifthouse/engine/source"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TestQueriesHaveTheTrace checks that a query has the id of the trace of its context, with which its log can be joined.
func TestQueriesHaveTheTrace(t *testing.T) {
	s := &source.Store{Conn: schematest.OpenEmpty(t)}
	for want, ctx := range map[string]context.Context{
		"": t.Context(), "4bf92f35": source.WithTrace(t.Context(), "4bf92f35"),
	} {
		var comment string
		must.OK(t, s.EachRow(ctx, "SELECT getSetting('log_comment')", nil,
			func(row driver.Rows) error { return row.Scan(&comment) }))
		check.Equal(t, comment, want)
	}
}
