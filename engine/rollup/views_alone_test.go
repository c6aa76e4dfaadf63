package rollup_test

import (
	"testing"

	"lifthouse/schema"
)

// TestViewsAloneInsertNoConversions refreshes after views, which change no conversions, and after
// goals. Reports are compared with those from the events, also by a new process.
func TestViewsAloneInsertNoConversions(t *testing.T) {
	s := newShop(t, 22)
	s.buyers(80)
	s.refresh()
	blocks := func(table string) (n uint64) {
		s.must(s.conn.QueryRow(t.Context(), "SELECT countIf(segment = 255) FROM "+table).Scan(&n))
		return n
	}
	for round, kind := range []schema.Kind{schema.KindView, schema.KindGoal, schema.KindView, schema.KindView, schema.KindGoal} {
		if round == 3 {
			s.useConn(s.conn) // a new process, with an epoch of its own
		}
		exposures, conversions := blocks("exposures"), blocks("conversions")
		if kind == schema.KindGoal {
			s.buyers(1)
		} else {
			s.write(s.firstView())
		}
		s.refresh()
		want := conversions
		if kind == schema.KindGoal {
			want++
		}
		if got := blocks("exposures"); got != exposures+1 {
			t.Errorf("after a %s: %d blocks of exposures, want %d", kind, got, exposures+1)
		}
		if got := blocks("conversions"); got != want {
			t.Errorf("after a %s: %d blocks of conversions, want %d", kind, got, want)
		}
		s.verifyAll()
	}
}
