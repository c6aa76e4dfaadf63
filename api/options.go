package api

import "time"

// Options are how the API behaves towards its clients. The zero value of a
// bound is none.
type Options struct {
	Release string   // of the program: another one may answer otherwise
	Origins []string // whose pages may read answers; "*": any
	MaxBody int64    // bytes of a request's body

	ResultsAge    time.Duration // how long results are good for while the data are the same; 0: they are always computed
	ResultsMemory int64         // bytes that kept results may take; 0: none are kept
}

// DefaultOptions suit a dashboard and a script or two.
var DefaultOptions = Options{
	MaxBody:       1 << 20,
	ResultsAge:    time.Minute,
	ResultsMemory: 64 << 20,
}
