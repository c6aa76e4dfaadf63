package daily_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/daily"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func TestMain(m *testing.M) { schematest.Main(m) }

var (
	today   = time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	judged  = daily.Key{Kind: daily.Judged, Subject: schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 2}}
	website = daily.Key{Kind: daily.Measured, Subject: schema.Subject{WebsiteID: 1, Kind: schema.SubjectNone}}
)

// lockable accepts no rows while it is locked.
type lockable struct {
	driver.Conn
	locked bool
}

var errLocked = errors.New("locked")

func (c *lockable) PrepareBatch(
	ctx context.Context, statement string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if c.locked {
		return nil, errLocked
	}
	return c.Conn.PrepareBatch(ctx, statement, options...)
}

// read returns the log of a process that starts.
func read(t *testing.T, conn driver.Conn) *daily.Log {
	t.Helper()
	l := daily.New(conn)
	must.OK(t, l.ReadRows(t.Context()))
	return l
}

func TestIsDone(t *testing.T) {
	l := daily.New(nil)
	l.NoteDone(daily.Row{Key: judged, Day: today, Basis: 7})
	for name, c := range map[string]struct {
		basis uint64
		now   time.Time
		want  bool
	}{
		"the same day":                       {7, today.Add(23 * time.Hour), true},
		"another basis":                      {8, today, false},
		"the next day":                       {7, today.AddDate(0, 0, 1), false},
		"a clock that is behind midnight":    {7, today.Add(-time.Minute), true},
		"a clock that went back by two days": {7, today.AddDate(0, 0, -2), false},
	} {
		check.Equal(t, l.IsDone(judged, c.basis, c.now), c.want, "%s", name)
	}
	check.That(t, !l.IsDone(website, 7, today), "what was never done is done")
}

// TestTheLastRowCounts notes rows in two processes. The later row counts, although its day is earlier, and also after
// the merges of the table.
func TestTheLastRowCounts(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	first, second := read(t, conn), read(t, conn)
	first.NoteDone(daily.Row{Key: judged, Day: today.AddDate(1, 0, 0), Basis: 1})
	must.OK(t, first.WriteNoted(t.Context()))
	must.OK(t, second.ReadRows(t.Context()))
	second.NoteDone(daily.Row{Key: judged, Day: today, Basis: 2})
	must.OK(t, second.WriteNoted(t.Context()))
	must.OK(t, first.ReadRows(t.Context()))
	check.Equal(t, first.LastRow(judged).Basis, 2, "basis in the first process")
	must.OK(t, conn.Exec(t.Context(), "OPTIMIZE TABLE daily FINAL"))
	check.Equal(t, read(t, conn).LastRow(judged), second.LastRow(judged), "row after a start")
}

// TestWhatCannotBeWrittenIsWrittenLater notes a row while nothing can be stored, and another process stores one.
func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	locked := &lockable{conn, true}
	l := daily.New(locked)
	l.NoteDone(daily.Row{Key: judged, Day: today, Basis: 1})
	check.That(t, errors.Is(l.WriteNoted(t.Context()), errLocked), "a row was stored")
	another := read(t, conn)
	for basis := range uint64(3) {
		another.NoteDone(daily.Row{Key: judged, Day: today, Basis: 10 + basis})
	}
	must.OK(t, another.WriteNoted(t.Context()))
	must.OK(t, l.ReadRows(t.Context()))
	check.Equal(t, l.LastRow(judged).Basis, 1, "basis that is not written yet")
	locked.locked = false
	must.OK(t, l.WriteNoted(t.Context()))
	check.Equal(t, read(t, conn).LastRow(judged).Basis, 1, "basis after a start")
}

// TestCopyMeasured copies what was measured. It is measured again on the same day, and nothing else is copied.
func TestCopyMeasured(t *testing.T) {
	from, to := schematest.OpenMigrated(t), schematest.OpenMigrated(t)
	l := read(t, from)
	l.NoteDone(daily.Row{Key: website, Day: today, Body: "[]"})
	l.NoteDone(daily.Row{Key: judged, Day: today})
	must.OK(t, l.WriteNoted(t.Context()))
	must.OK(t, daily.New(to).CopyMeasured(t.Context(), from))
	copied := read(t, to)
	check.Equal(t, copied.LastRow(website).Body, "[]", "what was measured")
	check.That(t, !copied.IsDone(website, 0, today), "it is not measured again")
	check.That(t, copied.LastRow(judged).Day.IsZero(), "a judgement was copied")
	copied.NoteDone(daily.Row{Key: website, Day: today, Body: "[1]"})
	must.OK(t, copied.WriteNoted(t.Context()))
	must.OK(t, daily.New(to).CopyMeasured(t.Context(), from))
	check.Equal(t, read(t, to).LastRow(website).Body, "[1]", "after another copy")
}
