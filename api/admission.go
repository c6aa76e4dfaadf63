package api

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"lifthouse/engine"
)

// gate lets so many requests at the store at the same time, has a few more
// wait for a moment, and turns away the rest: what waits for long is asked
// again by its client, and then there is twice as much to do.
type admission struct {
	slots   chan struct{} // nil: no bound
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
	shed    prometheus.Counter
}

// newGate returns a gate of so many slots; 0: no bound.
func newAdmission(slots int, o *Options, shed prometheus.Counter) *admission {
	g := &admission{queue: int64(o.StoreQueue), wait: o.StoreWait, shed: shed}
	if slots > 0 {
		g.slots = make(chan struct{}, slots)
	}
	return g
}

// enter waits for a turn; leave ends it. The error is a StoreError, or the end
// of the context.
func (g *admission) enter(ctx context.Context) (leave func(), err error) {
	if g.slots == nil {
		return func() {}, nil
	}
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		g.shed.Inc()
		return nil, &engine.StoreError{Fault: engine.Busy}
	}
	patience := time.NewTimer(g.wait)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		g.shed.Inc()
		return nil, &engine.StoreError{Fault: engine.Busy}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// changeSlots is how many starts and stops are carried out at once: each takes
// milliseconds.
const changeSlots = 2

// stored is for operations that change the store. They have a gate of their own
// and never wait behind reports.
func (s *server) stored(handle func(*gin.Context) (any, error)) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		leave, err := s.changes.enter(c.Request.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
		return handle(c)
	}
}
