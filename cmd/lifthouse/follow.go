package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/ingest"
)

const (
	// followEvery is how often is looked for what has arrived.
	followEvery = 500 * time.Millisecond
	// followMost is how many events, and rejects, are shown of what arrived
	// since the look before: nobody reads more.
	followMost = 200
	// arrivesLate is how long it may take from an event's time of acceptance
	// until it is stored.
	arrivesLate = 10 * time.Second
)

// follower reads what arrives.
type follower struct {
	conn            driver.Conn
	query           eventsQuery
	events, rejects stream
}

func newFollower(conn driver.Conn, q eventsQuery) *follower {
	begun := time.Now()
	return &follower{conn: conn, query: q, events: stream{since: begun}, rejects: stream{since: begun}}
}

// last returns what arrived before, the last events and the last rejects.
func (f *follower) last(ctx context.Context) ([]arrival, error) {
	most := f.query.last
	if most == 0 {
		return nil, nil
	}
	var all []arrival
	if !f.query.onlyRejects {
		events, err := ingest.LastEvents(ctx, f.conn, f.query.website, most)
		if err != nil {
			return nil, err
		}
		all = f.events.fresh(arrivals(events, arrivalOfEvent), most)
	}
	rejects, err := ingest.LastRejects(ctx, f.conn, f.query.website, most)
	if err != nil {
		return nil, err
	}
	return append(all, f.rejects.fresh(arrivals(rejects, arrivalOfReject), most)...), nil
}

// more returns what has arrived since.
func (f *follower) more(ctx context.Context) ([]arrival, error) {
	var all []arrival
	if !f.query.onlyRejects {
		events, err := ingest.EventsSince(ctx, f.conn, f.query.website, f.events.since, followMost)
		if err != nil {
			return nil, err
		}
		all = f.events.fresh(arrivals(events, arrivalOfEvent), followMost)
	}
	rejects, err := ingest.RejectsSince(ctx, f.conn, f.query.website, f.rejects.since, followMost)
	if err != nil {
		return nil, err
	}
	return append(all, f.rejects.fresh(arrivals(rejects, arrivalOfReject), followMost)...), nil
}

// stream is what was shown of events, or of rejects. What was accepted lately
// is read again, since it may have been stored late, and what was shown of it is
// left out.
type stream struct {
	since time.Time // what is accepted from then on may be new
	shown map[string]time.Time
}

// fresh returns those that were not shown, in the order of their arrival. They
// come the last one first; where there are as many as were asked for, those
// before them are passed over.
func (s *stream) fresh(read []arrival, most int) []arrival {
	if s.shown == nil {
		s.shown = map[string]time.Time{}
	}
	var fresh []arrival
	for _, a := range slices.Backward(read) {
		if key := a.key(); s.shown[key].IsZero() {
			s.shown[key] = a.At
			fresh = append(fresh, a)
		}
	}
	if len(read) == 0 {
		return nil
	}
	next := read[0].At.Add(-arrivesLate)
	if len(read) == most {
		next = read[0].At
	}
	if next.After(s.since) {
		s.since = next
		maps.DeleteFunc(s.shown, func(_ string, at time.Time) bool { return at.Before(next) })
	}
	return fresh
}

func arrivals[T any](of []T, as func(T) arrival) []arrival {
	all := make([]arrival, len(of))
	for i := range of {
		all[i] = as(of[i])
	}
	return all
}
