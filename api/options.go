package api

import (
	"time"

	"lifthouse/engine"
)

// Options are how the API behaves towards its clients. The zero value of a
// bound is none.
type Options struct {
	Release string   // of the program: another one may answer otherwise
	Origins []string // whose pages may read answers; "*": any
	MaxBody int64    // bytes of a request's body

	MaxEvents     int64 // bytes of a body of events, decompressed
	WaitingEvents int64 // events that may wait to be written, at least 1

	ResultsAge    time.Duration // how long results are good for while the data are the same; 0: they are always computed
	ResultsMemory int64         // bytes that kept results may take; 0: none are kept

	Timeout time.Duration // of a request, from when it needs the store, waiting included; 0: none

	TokenRate float64 // requests a second of one token, and twice as many at once
	// AuthFailures is how many unknown tokens a minute may come from one address.
	AuthFailures int
	StoreSlots   int           // requests that ask the store at the same time
	StoreQueue   int           // requests that wait for their turn
	StoreWait    time.Duration // the longest that one waits
}

// DefaultOptions suit a dashboard and a script or two.
var DefaultOptions = Options{
	MaxBody:       16 << 20,
	MaxEvents:     64 << 20,
	WaitingEvents: 500_000,
	ResultsAge:    time.Minute,
	ResultsMemory: 64 << 20,
	Timeout:       engine.DefaultLimits.Time,
	TokenRate:     500,
	AuthFailures:  20, // more than a person mistypes, too few to fill a log or to look tokens up for nothing
	StoreSlots:    8,  // connections for requests; schema.SpareConns more are for the rest
	StoreQueue:    64,
	StoreWait:     2 * time.Second,
}
