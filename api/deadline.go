package api

import (
	"context"
	"errors"

	"lifthouse/api/results"
	"lifthouse/engine/source"

	"github.com/gin-gonic/gin"
)

// limitTime sets the deadline of a request from Options.Timeout. At the deadline,
// everything that waits or runs for the request ends with the StoreError TooSlow.
func (s *server) limitTime(c *gin.Context) {
	ctx, cancel := results.WithDeadline(c.Request.Context(), s.options.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// within returns the error of work, or the error of the context if the context ends
// first. In that case work continues, because a change to the store may have to be
// completed.
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

// describeTimeout replaces the message of a change that timed out, because the
// engine's message is about reports.
func describeTimeout(err error, detail string) error {
	var store *source.StoreError
	if !errors.As(err, &store) || store.Fault != source.TooSlow {
		return err
	}
	p := storeProblem(store)
	p.Detail = detail
	return &problemError{p}
}
