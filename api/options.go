package api

import (
	"time"

	"lifthouse/engine/source"
)

// Options configure the API. The zero value of a limit means no limit.
type Options struct {
	Release string   // version of the program; part of entity tags
	Origins []string // origins whose pages may read responses; "*": any
	MaxBody int64    // bytes of a request's body

	PublicURL string // where people open the page, without a slash at the end; the base of links

	MaxEvents     int64 // bytes of a body of events after decompression
	WaitingEvents int64 // events that may wait to be written, at least 1

	ResultsAge    time.Duration // maximum age of cached results of unchanged data; 0: no cache
	ResultsMemory int64         // bytes of cached results; 0: no cache

	Timeout time.Duration // of a request, from its first use of the store, including waits; 0: no limit

	TokenRate float64 // requests per second of a token; bursts may be twice as large
	// AuthFailures is the maximum number of unknown tokens per minute from one address.
	AuthFailures int
	StoreSlots   int           // concurrent requests to the store
	StoreQueue   int           // waiting requests
	StoreWait    time.Duration // maximum wait
}

// DefaultOptions suit dashboards and a few scripts.
var DefaultOptions = Options{
	MaxBody:       16 << 20,
	MaxEvents:     64 << 20,
	WaitingEvents: 500_000,
	ResultsAge:    time.Minute,
	ResultsMemory: 64 << 20,
	Timeout:       source.DefaultLimits.Time,
	TokenRate:     500,
	AuthFailures:  20, // more than typing errors, too few to guess tokens or to fill a log
	StoreSlots:    8,  // connections for requests; everything else uses the other schema.SpareConns
	StoreQueue:    64,
	StoreWait:     2 * time.Second,
}
