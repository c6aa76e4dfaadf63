package rollup_test

import (
	"errors"
	"fmt"
	"testing"

	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// renumber are the statements of RestoredError.
var renumber = []string{
	"ALTER TABLE events MODIFY SETTING enable_block_number_column = 0",
	"OPTIMIZE TABLE events FINAL",
	"ALTER TABLE events MODIFY SETTING enable_block_number_column = 1",
}

// TestRestoredEvents restores a backup of merged events by ClickHouse, and attaches a copy of
// them to the table. The oracle is the reference: reports counted from the events.
func TestRestoredEvents(t *testing.T) {
	tier.OnlyLong(t)
	for _, restore := range []struct {
		name string
		do   func(t *testing.T, s *shop)
	}{
		{"a backup", func(t *testing.T, s *shop) {
			t.Helper()
			database := currentDatabase(t, s.conn)
			backup := fmt.Sprintf("File('%s')", database)
			s.exec("BACKUP TABLE " + database + ".events TO " + backup)
			s.exec("DROP TABLE events SYNC")
			s.exec("RESTORE TABLE " + database + ".events FROM " + backup)
		}},
		{"a partition in the same table", func(t *testing.T, s *shop) {
			t.Helper()
			s.exec("CREATE TABLE copied AS events")
			s.exec("ALTER TABLE copied ATTACH PARTITION ID '202605' FROM events")
			s.exec("ALTER TABLE events DROP PARTITION ID '202605'")
			s.exec("ALTER TABLE events ATTACH PARTITION ID '202605' FROM copied")
		}},
	} {
		t.Run(restore.name, func(t *testing.T) {
			conn := schematest.Server(t).Open(t)
			s := newProcess(t, 41, conn)
			for range 3 {
				s.more(30)
			}
			s.exec("OPTIMIZE TABLE events FINAL")
			s.refresh()
			mustServe(t, s)

			restore.do(t, s)
			s.more(20) // its block has a number that restored rows have
			s.mustRefuse()
			other := newProcess(t, 42, conn)
			other.mustRefuse()

			for _, statement := range renumber {
				s.exec(statement)
			}
			for _, each := range []*shop{s, other} {
				each.engine.Rollups.Indexes()[0].CheckNumbers()
				each.more(20)
				each.refresh() // rebuilds the rollups, without --rebuild too
				mustServe(t, each)
			}
		})
	}
}

// mustRefuse checks that rollups are neither refreshed nor read, and that reports are correct.
func (s *shop) mustRefuse() {
	s.t.Helper()
	var restored *rollup.RestoredError
	if err := s.refresher.RefreshAll(s.t.Context()); !errors.As(err, &restored) || restored.Unnumbered {
		s.t.Fatalf("a refresh after a restore: %v", err)
	}
	if s.engine.Rollups.Restored() == nil {
		s.t.Error("the events are not known as restored")
	}
	paths := map[string]int{}
	s.compareAll(tier.Of(1, 1, 2), paths)
	if paths[source.NameRollup]+paths[source.NameVisitors] > 0 {
		s.t.Errorf("restored events: reports from %v", paths)
	}
}

// mustServe checks that rollups serve reports, which equal those counted from the events.
func mustServe(t *testing.T, s *shop) {
	t.Helper()
	paths := map[string]int{}
	s.compareAll(tier.Of(1, 1, 3), paths)
	if paths[source.NameRollup]+paths[source.NameVisitors] == 0 {
		t.Errorf("no report is from a rollup: %v", paths)
	}
}

// TestEventsWithoutNumbers checks that rollups are not used while merges lose block numbers.
func TestEventsWithoutNumbers(t *testing.T) {
	s := newProcess(t, 43, schematest.Server(t).Open(t))
	s.more(100)
	s.refresh()
	s.exec(renumber[0])
	s.more(20)
	var restored *rollup.RestoredError
	if err := s.refresher.RefreshAll(t.Context()); !errors.As(err, &restored) || !restored.Unnumbered {
		t.Fatal(err)
	}
	s.exec(renumber[1])
	s.exec(renumber[2])
	s.refresh()
	mustServe(t, s)
}

func currentDatabase(t *testing.T, conn driver.Conn) (name string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
