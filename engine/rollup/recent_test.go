package rollup_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// stepsCounted counts the steps that know their visitors, and the others.
type stepsCounted struct {
	driver.Conn
	known, unknown int
}

func (c *stepsCounted) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	switch {
	case !strings.HasPrefix(query, "-- One row per event of the visitors with new events"):
	case strings.Contains(query, "{visitor_ids:Array(UInt64)}"):
		c.known++
	default:
		c.unknown++
	}
	return c.Conn.Query(ctx, query, args...)
}

// TestStepsKnowTheirVisitors writes a few events before each step: the steps know the
// visitors, unless there are many, or a new process makes the step.
func TestStepsKnowTheirVisitors(t *testing.T) {
	s := newShop(t, 21)
	conn := &stepsCounted{Conn: s.conn}
	s.useConn(conn)
	s.more(80)
	s.refresh()
	paths := map[string]int{}
	for range 5 {
		conn.known, conn.unknown = 0, 0
		s.more(6)
		s.refresh()
		if conn.known == 0 || conn.unknown > 0 {
			t.Errorf("%d steps know their visitors, %d do not", conn.known, conn.unknown)
		}
		s.compare(2, paths)
	}
	for range 3 {
		s.more(1_000) // of the campaign and of the widget
	}
	s.more(6)
	s.useConn(conn)
	s.more(6)
	conn.known, conn.unknown = 0, 0
	s.refresh()
	if conn.unknown == 0 {
		t.Error("steps of a new process know the visitors of an earlier one")
	}
	s.compare(3, paths)
	s.verifyAll()
}
