package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema"
)

// Ready returns nil when the store answers and has the tables of this release.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.store.Ping(ctx); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	pending, err := schema.Pending(ctx, e.store.Conn)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("the store lacks the migrations %s", strings.Join(pending, ", "))
	}
	return nil
}

// Observe has each query's time and error told. It is called before the
// first of them.
func (e *Engine) Observe(report func(elapsed time.Duration, err error)) { e.store.observe = report }
