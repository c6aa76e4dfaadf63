package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// healthy is the answer of both probes when all is well. It is of that moment:
// no client may keep it, nor ask whether it still holds.
var healthy = reply{kind: typeJSON, keep: notKept, body: []byte(`{"status":"ok"}` + "\n")}

// healthz says that the process answers.
func healthz(*gin.Context) (any, error) { return healthy, nil }

// readyz says whether requests should be sent here: not while the server
// drains, nor while the store is away or has other tables than this release's.
func (s *server) readyz(c *gin.Context) (any, error) {
	if s.draining.Load() {
		return nil, &problemError{&problem{Status: http.StatusServiceUnavailable, Code: "draining", Detail: "the server is about to stop"}}
	}
	if err := s.ready.ask(c.Request.Context(), s.engine.Ready); err != nil {
		return nil, &problemError{&problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "the store is not ready; lifthouse check says why", cause: err}}
	}
	return healthy, nil
}

const (
	readyTimeout = 2 * time.Second
	readyMaxAge  = time.Second
)

// readiness remembers for a moment what the store said: anybody may ask, and
// must not keep the store busy by it.
type readiness struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

func (r *readiness) ask(ctx context.Context, store func(context.Context) error) error {
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
