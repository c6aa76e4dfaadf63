package api

// Options are how the API behaves towards its clients. The zero value of a
// bound is none.
type Options struct {
	Origins []string // whose pages may read answers; "*": any
	MaxBody int64    // bytes of a request's body
}

// DefaultOptions suit a dashboard and a script or two.
var DefaultOptions = Options{MaxBody: 1 << 20}
