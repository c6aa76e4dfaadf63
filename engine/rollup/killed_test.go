package rollup_test

import (
	"testing"

	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// TestAKilledRefresherLeavesNothingWrong kills a refresher after each of its
// statements, in steps and, in the long tier, in rebuilds. Reports are correct
// after that, and the next refresher continues.
func TestAKilledRefresherLeavesNothingWrong(t *testing.T) {
	rebuilds := tier.Long() // each takes a second to understand
	s := newShop(t, 3)
	paths := map[string]int{}
	s.more(60)
	s.refresh()
	for statements := 1; ; statements++ {
		s.more(3)
		if rebuilds && statements%2 == 0 {
			s.retire()
		}
		left := statements
		dies := rollup.New(schematest.KilledConn{Conn: s.conn, Left: &left}, s.writer, s.engine.Rollups.Indexes()[0])
		err := dies.RefreshAll(t.Context())
		s.compare(tier.Of(1, 1, 3), paths)
		s.refresh()
		s.compare(tier.Of(1, 1, 3), paths)
		if err == nil && (statements%2 == 0 || !rebuilds) {
			break
		}
	}
	if paths[source.NameRollup] == 0 {
		t.Error(paths)
	}
}

// TestAKilledEraserLeavesNothingWrong kills a process that drops events after each
// statement.
func TestAKilledEraserLeavesNothingWrong(t *testing.T) {
	if !tier.Long() {
		t.Skip("SKIP: one of the long tests; each store takes seconds to roll up: make test-long")
	}
	paths := map[string]int{}
	for statements := 1; ; statements++ {
		s := newShop(t, 4)
		s.more(80)
		s.refresh()
		left := statements
		dying := schematest.KilledConn{Conn: s.conn, Left: &left}
		w := ingest.NewWriter(dying)
		w.SetRollups(rollup.NewIndex(dying, 0, nil, nil))
		err := w.DropSubjects(t.Context(), []ingest.SubjectID{{WebsiteID: 1, Subject: schema.SubjectCampaign, ID: 12}})
		s.compare(tier.Of(1, 1, 3), paths)
		s.refresh()
		s.compare(tier.Of(1, 1, 3), paths)
		if err == nil {
			return
		}
	}
}

// retire drops the rollups, so that the next refresh rebuilds them.
func (s *shop) retire() {
	s.t.Helper()
	if _, err := s.engine.Rollups.Retire(s.t.Context(), func(ingest.Subject) bool { return true }); err != nil {
		s.t.Fatal(err)
	}
}
