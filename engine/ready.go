package engine

import (
	"context"
	"fmt"
	"strings"

	"lifthouse/schema"
)

// CheckReady returns nil if the store answers and its tables are up to date.
func (e *Engine) CheckReady(ctx context.Context) error {
	if err := e.store.Ping(ctx); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	pending, err := schema.PendingMigrations(ctx, e.store.Conn)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("pending migrations: %s", strings.Join(pending, ", "))
	}
	return nil
}
