package rollup

import (
	"context"
	"crypto/rand"
	_ "embed" // a statement
	"fmt"
	"os"
	"strings"
	"time"
)

// Activity says what processes do with the rollups of a server.
type Activity struct {
	Refreshed   time.Time // when a process last began to write rows of rollups; 1970: never
	RefreshedBy string    // machine and process id

	Removals uint64    // removals of events that have not ended
	Began    time.Time // when the first of them began
	BegunBy  string    // machine and process id
}

//go:embed sql/activity.sql
var activityQuery string

// Activity reads what processes do with the rollups. It returns nil for a store with one
// writer. Only the first of many refreshes by a process is recorded.
func (x *Index) Activity(ctx context.Context) (*Activity, error) {
	if x.shared == nil {
		return nil, nil
	}
	var a Activity
	err := x.conn.QueryRow(ctx, activityQuery).Scan(&a.Refreshed, &a.RefreshedBy, &a.Removals, &a.Began, &a.BegunBy)
	if err != nil {
		return nil, fmt.Errorf("read who refreshes rollups: %w", err)
	}
	a.RefreshedBy, a.BegunBy = processOf(a.RefreshedBy), processOf(a.BegunBy)
	return &a, nil
}

// newClaimant returns a name for this process that no other process has.
func newClaimant() string {
	machine, _ := os.Hostname()
	return fmt.Sprintf("%s:%d %s", machine, os.Getpid(), rand.Text())
}

// processOf returns machine and process id of a claimant.
func processOf(claimant string) string {
	name, _, _ := strings.Cut(claimant, " ")
	return name
}
