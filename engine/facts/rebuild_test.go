package facts_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// testStore is an empty store; alone: no other process writes to it.
type testStore struct {
	driver.Conn
	alone bool
}

// openStores opens an embedded store, and one on a server.
func openStores(t *testing.T) map[string]testStore {
	t.Helper()
	server := schematest.SharedServer(t)
	address := server.DatabaseAddress(server.CreateDatabase(t))
	return map[string]testStore{
		"embedded": {Conn: schematest.OpenEmpty(t), alone: true},
		"server":   {Conn: schematest.OpenConnection(t, address)},
	}
}

// TestRebuild folds all events into a new generation several times, which takes the place of each of the two.
func TestRebuild(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 9, store.Conn)
			r := facts.NewRefresher(store.Conn, store.alone)
			for generation := range uint32(4) {
				_, through := w.send(t, 50)
				refresh(t, r, through)
				at := must.Get(r.RebuildFacts(t.Context()))(t)
				check.Equal(t, at.Generation, generation+1, "generation")
				check.Equal(t, at.Through, through, "folded")
				check.That(t, !at.Rebuilding, "the facts are still being rebuilt")
				must.OK(t, r.DropOldFacts(t.Context()))
				w.check(t)
			}
		})
	}
}

// TestFactsStayWhileTheyAreRebuilt stops a build in the middle. Before and after, new events are folded into the facts
// that reports read. The next build continues, and both processes read it when it is complete.
func TestFactsStayWhileTheyAreRebuilt(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 17, store.Conn)
			_, through := w.send(t, 200)
			refresh(t, facts.NewRefresher(store.Conn, store.alone), through)
			held := schematest.HeldConn{Conn: store.Conn, Held: make(chan error)}
			one := facts.NewRefresher(held, store.alone)
			one.VisitorsInOrder = 20
			must.Get(one.OpenFacts(t.Context()))(t)
			other := one
			if !store.alone {
				other = facts.NewRefresher(store.Conn, false)
				must.Get(other.OpenFacts(t.Context()))(t)
			}

			built := make(chan error)
			go func() {
				_, err := one.RebuildFacts(context.WithoutCancel(t.Context()))
				built <- err
			}()
			for range 3 {
				held.Held <- nil
			}
			old := must.Get(other.StoredPosition(t.Context()))(t)
			check.Equal(t, old.Generation, 0, "generation that reports read")
			held.Held <- schematest.ErrFull
			check.That(t, errors.Is(<-built, schematest.ErrFull), "the build has not failed with the error of the disk")
			check.Equal(t, must.Get(other.StoredPosition(t.Context()))(t), old, "position after a failed build")
			w.check(t)

			_, through = w.send(t, 50)
			go func() {
				for {
					select {
					case held.Held <- nil:
					case <-t.Context().Done():
						return
					}
				}
			}()
			refresh(t, one, through)
			w.check(t)
			at := must.Get(one.RebuildFacts(t.Context()))(t)
			check.Equal(t, at.Generation, 1, "generation of the build that was continued")
			check.Equal(t, must.Get(other.StoredPosition(t.Context()))(t), at, "position of another process")
			must.OK(t, one.DropOldFacts(t.Context()))
			w.check(t)
			_, through = w.send(t, 50)
			refresh(t, other, through)
			refresh(t, one, through)
			w.check(t)
		})
	}
}

// refreshed returns a channel that has the error of a refresh.
func refreshed(t *testing.T, r *facts.Refresher) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := r.RefreshFacts(context.WithoutCancel(t.Context()))
		done <- err
	}()
	return done
}

// TestAFoldGoesOnWhereItStopped stops the first fold of a store after each of its inserts. The next process reads only
// the events of the visitors that are left.
func TestAFoldGoesOnWhereItStopped(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 5, store.Conn)
			_, through := w.send(t, 200)
			const at = 10 // visitors at once
			for inserts := 0; ; inserts++ {
				held := schematest.HeldConn{Conn: store.Conn, Held: make(chan error)}
				r := facts.NewRefresher(held, store.alone)
				r.VisitorsInOrder = at
				done := refreshed(t, r)
				held.Held <- nil
				select {
				case err := <-done:
					must.OK(t, err)
					check.That(t, inserts > 3, "a fold in %d inserts does not show where it goes on", inserts)
					check.Equal(t, r.ShownPosition().Through, through, "folded")
					w.check(t)
					return
				case held.Held <- schematest.ErrFull:
					must.That(t, errors.Is(<-done, schematest.ErrFull), "insert %d: not stopped", inserts)
				}
				stored := must.Get(facts.ReadAll(t.Context(), store.Conn))(t)
				visitors := map[schema.Visitor]bool{}
				for i := range stored {
					visitors[schema.Visitor{WebsiteID: stored[i].Subject.WebsiteID, ID: stored[i].Visitor}] = true
				}
				check.That(t, len(visitors) <= at*(inserts+1), "%d visitors after %d inserts", len(visitors), inserts+1)
			}
		})
	}
}

// TestFactsOfAnEarlierReleaseAreRebuilt has facts of an earlier version of the fold. The next refresh rebuilds them.
// Those of a later version are left alone.
func TestFactsOfAnEarlierReleaseAreRebuilt(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 29, store.Conn)
			_, through := w.send(t, 50)
			refresh(t, facts.NewRefresher(store.Conn, store.alone), through)
			must.OK(t, facts.StoreFormat(t.Context(), store.Conn, fold.Version-1))
			r := facts.NewRefresher(store.Conn, store.alone)
			refresh(t, r, through)
			check.Equal(t, r.ShownPosition().Generation, 1, "generation")
			must.OK(t, r.DropOldFacts(t.Context()))
			w.check(t)

			must.OK(t, facts.StoreFormat(t.Context(), store.Conn, fold.Version+1))
			_, err := facts.NewRefresher(store.Conn, store.alone).RefreshFacts(t.Context())
			check.That(t, err != nil, "an earlier release changed the facts of a later one")
			check.Contains(t, err.Error(), "update this program", "error")
		})
	}
}

// TestErasureWhileFactsAreRebuilt erases a visitor after the first insert of a build. No generation has the visitor any
// more.
func TestErasureWhileFactsAreRebuilt(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 41, store.Conn)
			visitors, through := w.send(t, 200)
			held := schematest.HeldConn{Conn: store.Conn, Held: make(chan error)}
			one := facts.NewRefresher(held, store.alone)
			one.VisitorsInOrder = 20
			refresh(t, facts.NewRefresher(store.Conn, store.alone), through)
			must.Get(one.OpenFacts(t.Context()))(t)
			built := make(chan error)
			go func() {
				_, err := one.RebuildFacts(context.WithoutCancel(t.Context()))
				built <- err
			}()
			held.Held <- nil
			held.Held <- nil
			erased := make(chan error)
			go func() {
				w.erase(t, one, visitors[3])
				close(erased)
			}()
			passInserts(t, held, built)
			passInserts(t, held, erased)
			must.OK(t, one.DropOldFacts(t.Context()))
			w.check(t)
		})
	}
}

// passInserts lets inserts of facts pass until a channel has an error or is closed.
func passInserts(t *testing.T, held schematest.HeldConn, until <-chan error) {
	t.Helper()
	for {
		select {
		case held.Held <- nil:
		case err := <-until:
			must.OK(t, err)
			return
		}
	}
}

// TestReportsOutliveTheFactsThatTheyRead rebuilds the facts while a server follows the events: the generation that a
// report has begun to read stays. A command without a server drops it at once.
func TestReportsOutliveTheFactsThatTheyRead(t *testing.T) {
	for name, store := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, 43, store.Conn)
			_, through := w.send(t, 50)
			r := facts.NewRefresher(store.Conn, store.alone)
			refresh(t, r, through)
			partitions := func() int {
				return countOf(t, store.Conn, "SELECT uniqExact(partition) FROM system.parts WHERE active "+
					"AND database = currentDatabase() AND table = 'facts'")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var following sync.WaitGroup
			following.Go(func() { r.FollowEvents(ctx) })
			for !r.IsFollowing() {
				runtime.Gosched()
			}
			must.Get(r.RebuildFacts(t.Context()))(t)
			check.Equal(t, partitions(), 2, "generations while a server follows")
			w.check(t)
			stop()
			following.Wait()
			must.Get(r.RebuildFacts(t.Context()))(t)
			must.OK(t, r.DropOldFacts(t.Context()))
			check.Equal(t, partitions(), 1, "generations that a command leaves")
			w.check(t)
		})
	}
}
