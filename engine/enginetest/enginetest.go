// Package enginetest opens engines for tests.
package enginetest

import (
	"testing"

	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Open returns the engine of a store to which no other process writes, and its writer. Reports have all events that the
// writer has stored.
func Open(tb testing.TB, conn driver.Conn, c *catalogue.Catalogue) (*engine.Engine, *ingest.Writer) {
	tb.Helper()
	e, w, _ := OpenWithFacts(tb, conn, c)
	return e, w
}

// OpenWithFacts is like Open, and also returns the facts.
func OpenWithFacts(
	tb testing.TB, conn driver.Conn, c *catalogue.Catalogue,
) (*engine.Engine, *ingest.Writer, facts.Shards) {
	tb.Helper()
	return open(tb, conn, c, true)
}

// OpenOneOfSeveral is like OpenWithFacts, for a store to which other processes write, too.
func OpenOneOfSeveral(
	tb testing.TB, conn driver.Conn, c *catalogue.Catalogue,
) (*engine.Engine, *ingest.Writer, facts.Shards) {
	tb.Helper()
	return open(tb, conn, c, false)
}

// open opens the only process of a store, or one of several.
func open(
	tb testing.TB, conn driver.Conn, c *catalogue.Catalogue, alone bool,
) (*engine.Engine, *ingest.Writer, facts.Shards) {
	tb.Helper()
	shards := facts.Shards{facts.NewRefresher(conn, alone)}
	e := engine.New(conn, c, source.DefaultLimits, shards)
	w := ingest.NewWriter(conn, shards)
	w.SetNameOptions(ingest.NameOptions{
		SaltOf: func(website int64) ([]byte, error) {
			return c.KeepSalt(tb.Context(), website)
		},
		IsDeclared:  func(name schema.NamedID) bool { return c.Snapshot().Declares(name) },
		CountEvents: shards.EventsByName,
	})
	w.AfterInsert(shards[0].NoteEvents)
	if err := shards.OpenFacts(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return e, w, shards
}
