package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lifthouse/api/results"

	"github.com/gin-gonic/gin"
)

// healthy is the successful response of both probes. Clients must not cache it.
var healthy = reply{kind: results.JSON, keep: notKept, body: []byte(`{"status":"ok"}` + "\n")}

// checkLiveness is the liveness probe.
func checkLiveness(*gin.Context) (any, error) { return healthy, nil }

// checkReadiness is the readiness probe. It fails while the server drains, the store is
// unavailable, or the tables are out of date.
func (s *server) checkReadiness(c *gin.Context) (any, error) {
	if s.draining.Load() {
		return nil, &problemError{&problem{Status: http.StatusServiceUnavailable, Code: "draining", Detail: "the server is stopping"}}
	}
	if err := s.ready.checkStore(c.Request.Context(), s.Engine.CheckReady); err != nil {
		return nil, &problemError{&problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "the store is not ready; run lifthouse check for details", cause: err}}
	}
	return healthy, nil
}

const (
	readyTimeout = 2 * time.Second
	readyMaxAge  = time.Second
)

// readiness briefly caches the state of the store, so unauthenticated probes cannot
// overload it.
type readiness struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

func (r *readiness) checkStore(ctx context.Context, store func(context.Context) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < readyMaxAge {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	r.err = store(ctx)
	r.asked = time.Now()
	return r.err
}
