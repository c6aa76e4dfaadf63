package arrivals

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// Interval is the time between two looks for new arrivals.
	Interval = 500 * time.Millisecond
	// maxNew is the maximum number of events, and of rejected lines, that are shown in an interval. A person cannot
	// read more.
	maxNew = 200
)

// Follower finds new arrivals.
type Follower struct {
	conn  driver.Conn
	query Query
	keyOf func(schema.NamedID) string
	seen  map[string]bool // the last arrivals, as JSON; nil: they were not read yet
}

// NewFollower returns a follower. keyOf returns the key of an id in events, or an empty string.
func NewFollower(conn driver.Conn, q Query, keyOf func(schema.NamedID) string) *Follower {
	return &Follower{conn: conn, query: q, keyOf: keyOf}
}

// NextArrivals returns the arrivals since the last call, the earliest first. The first call returns as many of the
// last ones as the query asks for. If more than 200 events or rejected lines arrived since the last call, it returns
// the last 200 of them.
func (f *Follower) NextArrivals(ctx context.Context) ([]Arrival, error) {
	recent := f.query
	recent.Last = maxNew
	all, err := LastArrivals(ctx, f.conn, recent, f.keyOf)
	if err != nil {
		return nil, err
	}
	var fresh []Arrival
	seen := make(map[string]bool, len(all))
	for _, a := range all {
		text, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		seen[string(text)] = true
		if !f.seen[string(text)] {
			fresh = append(fresh, a)
		}
	}
	isFirst := f.seen == nil
	f.seen = seen
	if isFirst {
		return LastArrivals(ctx, f.conn, f.query, f.keyOf)
	}
	return fresh, nil
}

// WriteNewArrivals writes arrivals as they are found, until the context ends.
func (f *Follower) WriteNewArrivals(ctx context.Context, w io.Writer, asJSON bool) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		all, err := f.NextArrivals(ctx)
		if err == nil {
			err = WriteAll(w, all, asJSON)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
