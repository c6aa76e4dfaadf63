// Package rates limits the rate of an action per key, such as a token.
package rates

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Rates limits the rate of each key. It remembers recently used keys. A key that it has forgotten starts again without
// a history.
type Rates[K comparable] struct {
	PerSecond rate.Limit
	Burst     int

	limiters *lru.Cache[K, *limiter]
}

type limiter struct {
	*rate.Limiter
	mu      sync.Mutex
	refused bool // since the key was last idle
}

// maxLimited is the number of remembered keys.
const maxLimited = 10_000

// New returns a limit of perSecond actions per second, with bursts of the given size. It returns nil, which limits
// nothing, if perSecond is not above 0.
func New[K comparable](perSecond rate.Limit, burst int) *Rates[K] {
	if perSecond <= 0 {
		return nil
	}
	limiters, err := lru.New[K, *limiter](maxLimited)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Rates[K]{perSecond, burst, limiters}
}

// CountAction counts an action. If the action exceeds the rate, CountAction returns the time to wait, and whether this
// is the first rejection since the key was idle.
func (r *Rates[K]) CountAction(key K, now time.Time) (wait time.Duration, first bool) {
	if r == nil {
		return 0, false
	}
	l, known := r.limiters.Get(key)
	if !known {
		l = &limiter{Limiter: rate.NewLimiter(r.PerSecond, r.Burst)}
		if before, found, _ := r.limiters.PeekOrAdd(key, l); found {
			l = before
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.TokensAt(now) >= float64(r.Burst) {
		l.refused = false
	}
	reserved := l.ReserveN(now, 1)
	if wait = reserved.DelayFrom(now); wait == 0 {
		return 0, false
	}
	reserved.CancelAt(now)
	first, l.refused = !l.refused, true
	return wait, first
}
