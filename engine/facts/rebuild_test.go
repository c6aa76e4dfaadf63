package facts_test

import (
	"context"
	"errors"
	"testing"

	"lifthouse/engine/facts"
	"lifthouse/engine/source"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestNoReportCountsRebuiltFacts pauses a rebuild after the facts are deleted. The process that rebuilds them, and another
// server of the store, refuse to say what the position of the facts is, so no report counts 0 visitors. The counters of
// lists stay as they were. When the rebuild is interrupted, a server completes it.
func TestNoReportCountsRebuiltFacts(t *testing.T) {
	for name, alone := range map[string]bool{"embedded": true, "server": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 17)
			w.send(t, 200)
			held := schematest.HeldConn{Conn: w.conn, Held: make(chan error)}
			one := facts.NewRefresher(held, alone)
			go func() { held.Held <- nil }()
			must.Get(one.RefreshFacts(t.Context()))(t)
			other := facts.NewRefresher(w.conn, false)
			must.Get(other.OpenFacts(t.Context()))(t)
			before := one.AllCounters()

			rebuilt := make(chan error)
			go func() {
				_, err := one.RebuildFacts(context.WithoutCancel(t.Context()))
				rebuilt <- err
			}()
			held.Held <- nil // the position that says so
			isRefused := func(r *facts.Refresher) bool {
				_, err := r.StoredPosition(t.Context())
				refused, is := errors.AsType[*source.StoreError](err)
				return is && refused.Fault == source.Rebuilt
			}
			for !isRefused(other) { // until the position is stored
			}
			check.That(t, isRefused(one), "the process that rebuilds the facts has a position")
			check.Equal(t, len(one.AllCounters()), len(before), "subjects with counters")
			held.Held <- schematest.ErrFull // the first batch
			check.That(t, <-rebuilt != nil, "the rebuild has not failed")
			check.That(t, isRefused(one), "the process that was interrupted has a position")

			must.Get(other.RefreshFacts(t.Context()))(t)
			check.That(t, !isRefused(other), "the server that completed the rebuild has no position")
			w.check(t)
		})
	}
}
