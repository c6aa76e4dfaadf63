package api

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"lifthouse/engine"
)

// limitTime gives a request until the end of Options.Timeout. Whatever waits
// then, or works for it in the store, ends with a StoreError of TooSlow.
func (s *server) limitTime(c *gin.Context) {
	ctx, cancel := s.withDeadline(c.Request.Context())
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

func (s *server) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.options.Timeout, &engine.StoreError{Fault: engine.TooSlow})
}

// within returns what work returns, or the context's error once it ends: work
// that changes the store may have to be finished, and then goes on alone.
func within(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// untimely explains a change that did not end in time, for which the advice on
// reports is none.
func untimely(err error, detail string) error {
	var store *engine.StoreError
	if !errors.As(err, &store) || store.Fault != engine.TooSlow {
		return err
	}
	p := storeProblem(store)
	p.Detail = detail
	return &problemError{p}
}
