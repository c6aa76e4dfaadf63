package arrivals

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/ingest"
)

const (
	// Interval is the recommended time between calls of NewArrivals.
	Interval = 500 * time.Millisecond
	// maxNew is the maximum number of events, and of rejected lines, that
	// NewArrivals returns. A person cannot read more.
	maxNew = 200
	// insertTime is the maximum time from the acceptance of an event until it is
	// stored.
	insertTime = 10 * time.Second
)

// Query selects arrivals.
type Query struct {
	Website      int64 // 0: all websites
	Last         int   // maximum number of events, and of rejected lines, that LastArrivals returns
	OnlyRejected bool
}

// Follower reads arrivals from a store.
type Follower struct {
	conn            driver.Conn
	query           Query
	events, rejects stream
}

// NewFollower returns a follower that starts now.
func NewFollower(conn driver.Conn, q Query) *Follower {
	now := time.Now()
	return &Follower{conn: conn, query: q, events: stream{since: now}, rejects: stream{since: now}}
}

// LastArrivals returns the last arrivals before the follower was created.
func (f *Follower) LastArrivals(ctx context.Context) ([]Arrival, error) {
	most := f.query.Last
	if most == 0 {
		return nil, nil
	}
	var all []Arrival
	if !f.query.OnlyRejected {
		events, err := ingest.LastEvents(ctx, f.conn, f.query.Website, most)
		if err != nil {
			return nil, err
		}
		all = f.events.unseenArrivals(toArrivals(events, ofEvent), most)
	}
	rejects, err := ingest.LastRejects(ctx, f.conn, f.query.Website, most)
	if err != nil {
		return nil, err
	}
	return append(all, f.rejects.unseenArrivals(toArrivals(rejects, ofReject), most)...), nil
}

// NewArrivals returns the arrivals since the last call.
func (f *Follower) NewArrivals(ctx context.Context) ([]Arrival, error) {
	var all []Arrival
	if !f.query.OnlyRejected {
		events, err := ingest.EventsSince(ctx, f.conn, f.query.Website, f.events.since, maxNew)
		if err != nil {
			return nil, err
		}
		all = f.events.unseenArrivals(toArrivals(events, ofEvent), maxNew)
	}
	rejects, err := ingest.RejectsSince(ctx, f.conn, f.query.Website, f.rejects.since, maxNew)
	if err != nil {
		return nil, err
	}
	return append(all, f.rejects.unseenArrivals(toArrivals(rejects, ofReject), maxNew)...), nil
}

// stream keeps track of the events, or of the rejected lines, that were shown. It
// reads recently accepted arrivals again, because they may have been stored late,
// and skips those that were shown.
type stream struct {
	since time.Time            // arrivals accepted from then on may be new
	shown map[string]time.Time // acceptance times by key
}

// unseenArrivals returns the arrivals that were not shown yet, in the order of arrival.
// Its input is in reverse order. If the input has the maximum length, older arrivals
// are skipped.
func (s *stream) unseenArrivals(read []Arrival, most int) []Arrival {
	if s.shown == nil {
		s.shown = map[string]time.Time{}
	}
	var fresh []Arrival
	for _, a := range slices.Backward(read) {
		if key := a.uniqueKey(); s.shown[key].IsZero() {
			s.shown[key] = a.At
			fresh = append(fresh, a)
		}
	}
	if len(read) == 0 {
		return nil
	}
	next := read[0].At.Add(-insertTime)
	if len(read) == most {
		next = read[0].At
	}
	if next.After(s.since) {
		s.since = next
		maps.DeleteFunc(s.shown, func(_ string, accepted time.Time) bool { return accepted.Before(next) })
	}
	return fresh
}

func toArrivals[T any](found []T, convert func(T) Arrival) []Arrival {
	all := make([]Arrival, len(found))
	for i := range found {
		all[i] = convert(found[i])
	}
	return all
}
