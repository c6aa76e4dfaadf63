package rollup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"sync"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// newProcess returns a process on a server that other processes write to.
func newProcess(t *testing.T, seed uint64, conn driver.Conn) *shop {
	t.Helper()
	s := newShopOn(t, seed, conn)
	if err := s.writer.Share(t.Context()); err != nil {
		t.Fatal(err)
	}
	if possible, err := s.engine.Rollups.Share(t.Context()); err != nil || !possible {
		t.Fatal(possible, err)
	}
	s.writer.AfterWrite(func(subjects []ingest.Subject) {
		var changed []plan.Subject
		for _, of := range subjects {
			changed = append(changed, plan.Subject(of))
		}
		s.engine.Written(changed)
	})
	s.refresher = rollup.New(s.conn, s.writer, s.engine.Rollups.Indexes()[0])
	return s
}

// through matches the time of the last event. The counters may have that of a removed copy.
var through = regexp.MustCompile(`"dataThrough":"[^"]*",`)

// compareAll compares reports from rollups, which have all events, with those counted from the
// events.
func (s *shop) compareAll(reports int, paths map[string]int) {
	s.t.Helper()
	for range reports {
		r := s.request()
		s.engine.BringUpToDate(s.t.Context(), s.plan(r).Subject)
		got, path := s.body(r)
		if paths[path]++; path != source.NameRollup && path != source.NameVisitors {
			continue // its decision may be a minute old
		}
		report, err := s.engine.Reference(s.t.Context(), s.plan(r))
		if err != nil {
			s.t.Fatal(err)
		}
		report.GeneratedAt = time.Time{}
		want, err := json.Marshal(report)
		if err != nil {
			s.t.Fatal(err)
		}
		if got, want = through.ReplaceAll(got, nil), through.ReplaceAll(want, nil); !bytes.Equal(got, want) {
			s.t.Fatalf("%+v from %s\n%.3000s\nwant\n%.3000s", r, path, got, want)
		}
	}
}

// TestSeveralProcessesRefreshTheRollupsOfAServer writes and refreshes from several processes,
// one after another and at the same time.
func TestSeveralProcessesRefreshTheRollupsOfAServer(t *testing.T) {
	server := schematest.Server(t)
	conn := server.Open(t)
	processes := []*shop{newProcess(t, 1, conn), newProcess(t, 2, conn)}
	if tier.Long() {
		processes = append(processes, newProcess(t, 3, conn))
	}
	paths := map[string]int{}
	for round := range tier.Of(2, 2, 4) {
		var writing sync.WaitGroup
		for i, s := range processes {
			if round%2 == 0 || i == round%len(processes) {
				writing.Go(func() { s.more(40) })
			}
		}
		writing.Wait()
		var refreshing sync.WaitGroup
		for i, s := range processes {
			if round%3 > 0 || i == 0 {
				refreshing.Go(func() {
					if err := s.refresher.RefreshAll(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		refreshing.Wait()
		for _, s := range processes {
			s.compareAll(tier.Of(1, 1, 4), paths)
		}
		if round%3 == 1 {
			of := processes[round%len(processes)]
			if _, err := of.writer.Forget(t.Context(), []string{visitorName(round), visitorName(round + 50)}, nil); err != nil {
				t.Fatal(err)
			}
			for _, s := range processes {
				s.compareAll(tier.Of(1, 1, 2), paths)
			}
		}
	}
	if paths[source.NameRollup]+paths[source.NameVisitors] == 0 {
		t.Error(paths)
	}
	t.Log(paths)
}

// TestAPausedRefreshChangesNothing pauses a process before every fourth statement of a refresh, while
// another process writes, refreshes, and sometimes erases visitors. Then it continues.
func TestAPausedRefreshChangesNothing(t *testing.T) {
	tier.OnlyLong(t)
	conn := schematest.Server(t).Open(t)
	steady := newProcess(t, 11, conn)
	steady.more(150)
	steady.refresh()
	paths := map[string]int{}
	for statements := 1; ; statements += 4 {
		steady.more(10)
		left, paused, resume := statements, make(chan struct{}), make(chan struct{})
		sleeper := newProcess(t, 12, conn)
		sleeper.engine.Rollups.Indexes()[0].Reach(schematest.PausedConn{Conn: conn, Left: &left, Paused: paused, Resume: resume})
		sleeper.refresher = rollup.New(schematest.PausedConn{Conn: conn, Left: &left, Paused: paused, Resume: resume}, sleeper.writer, sleeper.engine.Rollups.Indexes()[0])
		done := make(chan error, 1)
		go func() { done <- sleeper.refresher.RefreshAll(t.Context()) }()
		ended := false
		select {
		case <-paused:
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		}
		steady.more(10)
		switch statements % 3 {
		case 1:
			steady.refresh()
		case 2:
			if _, err := steady.writer.Forget(t.Context(), []string{visitorName(statements % 110)}, nil); err != nil {
				t.Fatal(err)
			}
			steady.refresh()
		}
		steady.compareAll(1, paths)
		close(resume)
		if !ended {
			if err := <-done; err != nil {
				t.Error(statements, err)
			}
		}
		steady.compareAll(2, paths)
		if ended {
			t.Log(statements, paths)
			return
		}
	}
}

// TestAKilledRefreshOnAServer kills a process after each statement of a refresh, of which one
// rebuilds the rollups. Another process continues.
func TestAKilledRefreshOnAServer(t *testing.T) {
	tier.OnlyLong(t)
	conn := schematest.Server(t).Open(t)
	steady := newProcess(t, 21, conn)
	steady.more(150)
	steady.refresh()
	paths := map[string]int{}
	for statements := 1; ; statements++ {
		left := statements
		dying := schematest.KilledConn{Conn: conn, Left: &left}
		killed := newProcess(t, 22, conn)
		killed.engine.Rollups.Indexes()[0].Reach(dying)
		killed.refresher = rollup.New(dying, killed.writer, killed.engine.Rollups.Indexes()[0])
		steady.more(10)
		err := killed.refresher.RefreshAll(t.Context())
		steady.compareAll(3, paths)
		if err == nil {
			t.Log(statements, paths)
			return
		}
	}
}

// TestRollupsFollowTheServer checks that rollups are compared with the events after a start of
// the server, and built again in a restored table.
func TestRollupsFollowTheServer(t *testing.T) {
	later := int64(0)
	s := newProcess(t, 31, startedLater{schematest.Server(t).Open(t), &later})
	s.more(200)
	s.refresh()
	for _, change := range []struct {
		name    string
		do      func()
		rebuilt bool
	}{
		{"nothing", func() {}, false},
		{"a start", func() { later = 1000 }, false},
		{"a start that lost an event", func() {
			later = 2000
			s.exec("ALTER TABLE events DELETE WHERE event_id IN (SELECT event_id FROM events WHERE subject = 'campaign' LIMIT 1) SETTINGS mutations_sync = 1")
		}, true},
		{"another table", func() {
			s.exec("CREATE TABLE restored AS events")
			s.exec("INSERT INTO restored SELECT * FROM events")
			s.exec("EXCHANGE TABLES events AND restored")
		}, true},
	} {
		t.Run(change.name, func(t *testing.T) {
			before := s.generation()
			change.do()
			s.refresh()
			if after := s.generation(); (after != before) != change.rebuilt {
				t.Errorf("generation %d, was %d", after, before)
			}
			s.compareAll(5, map[string]int{})
		})
	}
}

// startedLater is a connection to a server that was started some seconds later.
type startedLater struct {
	driver.Conn
	later *int64
}

// QueryRow implements driver.Conn.
func (c startedLater) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	return laterRow{c.Conn.QueryRow(ctx, query, args...), *c.later}
}

type laterRow struct {
	driver.Row
	later int64
}

// Scan implements driver.Row.
func (r laterRow) Scan(to ...any) error {
	err := r.Row.Scan(to...)
	if len(to) == 8 { // look.sql
		if started, is := to[4].(*int64); is {
			*started += r.later
		}
	}
	return err
}

func (s *shop) exec(statement string) {
	s.t.Helper()
	if err := s.conn.Exec(s.t.Context(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// generation returns the number of the generation of the campaign's rollup.
func (s *shop) generation() uint64 {
	s.t.Helper()
	states, err := rollup.ReadStates(s.t.Context(), s.conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return states[plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}].Generation.Number
}
