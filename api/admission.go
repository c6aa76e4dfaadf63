package api

import (
	"context"
	"sync/atomic"
	"time"

	"lifthouse/engine/source"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// admission limits the number of requests that use the store at the same time.
// A limited number of requests waits for a slot for a short time; all others
// are rejected. Clients repeat requests that wait for long, which would double
// the load.
type admission struct {
	slots   chan struct{} // nil: no limit
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
	shed    prometheus.Counter
}

// newAdmission returns an admission with the given number of slots; 0: no
// limit.
func newAdmission(slots int, o *Options, shed prometheus.Counter) *admission {
	g := &admission{queue: int64(o.StoreQueue), wait: o.StoreWait, shed: shed}
	if slots > 0 {
		g.slots = make(chan struct{}, slots)
	}
	return g
}

// enter waits for a slot, which leave releases. The error is a StoreError or
// that of the context.
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
		return nil, &source.StoreError{Fault: source.Busy}
	}
	patience := time.NewTimer(g.wait)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		g.shed.Inc()
		return nil, &source.StoreError{Fault: source.Busy}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// changeSlots is the number of concurrent starts and stops. Each takes
// milliseconds.
const changeSlots = 2

// stored wraps operations that change the store. They have a separate admission
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
