package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// noise writes a goal whose value has the error of a binary float.
func (s *shop) noise() {
	s.t.Helper()
	price := float64(s.IntN(10_000)) / 100
	line := fmt.Sprintf(`{"eventId":"noise %d","time":%q,"websiteId":1,"visitor":%q,"event":"goal","goalId":1,"value":%v}`,
		s.Uint64(), s.event().Time.Format(time.RFC3339), visitorName(s.IntN(110)), 3*price*1.1)
	if err := (ingest.Body{WebsiteID: 1}).Each([]byte(line), func(l ingest.Line) error {
		s.write(l.Events...)
		return l.Fault
	}); err != nil {
		s.t.Fatal(line, err)
	}
}

// retain deletes the events of the widget and its experiment.
func (s *shop) retain() {
	s.t.Helper()
	if err := s.writer.DropSubjects(s.t.Context(), []ingest.SubjectID{{WebsiteID: 1, Subject: schema.SubjectWidget, ID: 3}}); err != nil {
		s.t.Fatal(err)
	}
	s.sent = slices.DeleteFunc(s.sent, func(e schema.Event) bool { return e.Subject == schema.SubjectWidget })
}

// forget deletes the events of a visitor.
func (s *shop) forget() {
	s.t.Helper()
	visitor := visitorName(s.IntN(110))
	if _, err := s.writer.Forget(s.t.Context(), []string{visitor}, nil); err != nil {
		s.t.Fatal(err)
	}
	s.sent = slices.DeleteFunc(s.sent, func(e schema.Event) bool { return e.VisitorID == schema.Hash(visitor) })
}

// loseParts removes a part of the events, accepts the loss, and writes all
// events again.
func (s *shop) loseParts() {
	s.t.Helper()
	var part, partition string
	for detached := false; !detached; {
		if err := s.conn.QueryRow(s.t.Context(), "SELECT name, partition_id FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active ORDER BY cityHash64(name) LIMIT 1").Scan(&part, &partition); err != nil {
			s.t.Fatal(err)
		}
		err := s.conn.Exec(s.t.Context(), "ALTER TABLE events DETACH PART '"+part+"'")
		var exception *clickhouse.Exception
		const noSuchPart = 232 // it was merged meanwhile
		if detached = err == nil; err != nil && (!errors.As(err, &exception) || exception.Code != noSuchPart) {
			s.t.Fatal(err)
		}
	}
	lost := &schema.DamagedError{Parts: []schema.DamagedPart{{Table: "events", Name: part, Partition: partition, Missing: s.IntN(2) == 0}}}
	if err := s.writer.Exclusively(s.t.Context(), func() error { return schema.DropDamaged(s.t.Context(), s.conn, nil, lost) }); err != nil {
		s.t.Fatal(err)
	}
	s.wantCounters()
	s.write(slices.Clone(s.sent)...)
}

// compareCounters compares counters, derived rows and copies with the events.
func (s *shop) compareCounters() {
	s.t.Helper()
	if faults, err := schema.CheckRows(s.t.Context(), s.conn); err != nil || len(faults) > 0 {
		s.t.Errorf("check: %q, %v", faults, err)
	}
}

// wantCounters compares the counters with the events.
func (s *shop) wantCounters() {
	s.t.Helper()
	if changed, err := schema.RepairStats(s.t.Context(), s.conn); err != nil || changed {
		s.t.Errorf("counters were wrong: %v, %v", changed, err)
	}
}

// TestLossOfPartsRetiresTheRollups checks that lost events are not in reports, and
// are counted once when they are sent again.
func TestLossOfPartsRetiresTheRollups(t *testing.T) {
	s := newShop(t, 11)
	paths := map[string]int{}
	s.more(100)
	s.refresh()
	s.loseParts()
	s.refresh()
	s.compareCounters()
	s.compare(3, paths)
	if paths[source.NameRollup] == 0 {
		t.Error(paths)
	}
}

// halting blocks before a statement until proceed is closed.
type halting struct {
	driver.Conn
	before           string
	once             sync.Once
	arrived, proceed chan struct{}
}

func (c *halting) Exec(ctx context.Context, query string, args ...any) error {
	if strings.Contains(query, c.before) {
		c.once.Do(func() { close(c.arrived) })
		<-c.proceed
	}
	return c.Conn.Exec(ctx, query, args...)
}

// TestNothingIsRefreshedDuringARemoval checks that no refresh runs during a
// deletion. A rebuild that starts between the start of a deletion and its end
// would publish deleted visitors, like one that runs when the deletion starts.
func TestNothingIsRefreshedDuringARemoval(t *testing.T) {
	for name, remove := range map[string]struct {
		before string
		carry  func(*shop, *ingest.Writer) error
	}{
		"forget": {"ALTER TABLE events DELETE", func(s *shop, w *ingest.Writer) error {
			_, err := w.Forget(s.t.Context(), []string{visitorName(1), visitorName(2), visitorName(3)}, nil)
			return err
		}},
		"retain": {"ALTER TABLE events DELETE", func(s *shop, w *ingest.Writer) error {
			return w.DropSubjects(s.t.Context(), []ingest.SubjectID{{WebsiteID: 1, Subject: schema.SubjectWidget, ID: 3}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 12)
			halt := &halting{Conn: s.conn, before: remove.before, arrived: make(chan struct{}), proceed: make(chan struct{})}
			s.useConn(halt)
			s.more(60)
			s.refresh()
			ended := make(chan error, 1)
			go func() { ended <- remove.carry(s, s.writer) }()
			<-halt.arrived
			rebuilt := s.refresher.Rebuild(t.Context(), func(plan.Subject, time.Duration, error) {})
			refreshed := s.refresher.RefreshAll(t.Context())
			close(halt.proceed)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if !errors.Is(rebuilt, ingest.ErrRemoving) || !errors.Is(refreshed, ingest.ErrRemoving) {
				t.Errorf("refreshes during the removal: %v, %v", rebuilt, refreshed)
			}
			s.compareCounters()
			s.refresh()
			paths := map[string]int{}
			s.compare(2, paths)
			s.verifyAll()
		})
	}
}

// useConn replaces the connection of the writer, the engine and the refresher.
func (s *shop) useConn(conn driver.Conn) {
	s.engine = engine.New(conn, s.catalogue, source.Limits{InProcessEvents: 5})
	s.writer = ingest.NewWriter(conn)
	s.writer.SetExclusive()
	s.writer.SetRollups(s.engine.Rollups)
	s.writer.AfterInsert(s.engine.Rollups.Inserted)
	s.refresher = rollup.New(conn, s.writer, s.engine.Rollups.Indexes()[0])
}

// verifyAll compares reports of every subject from its rollup with reports from the events.
func (s *shop) verifyAll() {
	s.t.Helper()
	subjects, err := s.engine.Rollups.Subjects(s.t.Context())
	if err != nil || len(subjects) == 0 {
		s.t.Errorf("rollups: %v, %v", subjects, err)
	}
	for _, of := range subjects {
		if n, skipped, err := s.engine.Verify(s.t.Context(), of); n == 0 || len(skipped) > 0 || err != nil {
			s.t.Errorf("%s: %d compared, not %q, %v", of, n, skipped, err)
		}
	}
}

// TestARemovalEndsARefreshThatRuns checks that a deletion cancels a running
// rebuild, which must not be published.
func TestARemovalEndsARefreshThatRuns(t *testing.T) {
	s := newShop(t, 13)
	halt := &halting{Conn: s.conn, before: "INSERT INTO rollups", arrived: make(chan struct{}), proceed: make(chan struct{})}
	s.useConn(halt)
	s.refresher.FoldEvents(0) // the statement is run, not a batch
	s.more(60)
	ended := make(chan error, 1)
	go func() { ended <- s.refresher.RefreshAll(t.Context()) }()
	<-halt.arrived
	forgotten := make(chan error, 1)
	go func() {
		_, err := s.writer.Forget(t.Context(), []string{visitorName(1)}, nil)
		forgotten <- err
	}()
	for !errors.Is(s.writer.Refresh(t.Context(), func(context.Context) error { return nil }), ingest.ErrRemoving) {
	}
	close(halt.proceed)
	if err := <-ended; !errors.Is(err, ingest.ErrRemoving) {
		t.Errorf("the refresh that ran: %v", err)
	}
	if err := <-forgotten; err != nil {
		t.Fatal(err)
	}
	if states, err := rollup.ReadStates(t.Context(), s.conn); err != nil || len(states) > 0 {
		t.Errorf("published: %v, %v", states, err)
	}
	s.refresh()
	s.compareCounters()
	s.verifyAll()
}
