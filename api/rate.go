package api

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"lifthouse/schema/catalogue"
)

// rates bounds how often something may be done by each of many, such as
// tokens. It knows those that did it last; one that was forgotten starts anew.
type rates[K comparable] struct {
	perSecond rate.Limit
	burst     int
	limiters  *lru.Cache[K, *limiter]
}

type limiter struct {
	*rate.Limiter
	mu      sync.Mutex
	refused bool // since it was idle last
}

// mostLimited are more than do something at the same time.
const maxLimited = 10_000

func newRates[K comparable](perSecond rate.Limit, burst int) *rates[K] {
	limiters, err := lru.New[K, *limiter](maxLimited)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return &rates[K]{perSecond, burst, limiters}
}

// take counts one in. Where it is one too many, it returns how long to wait,
// and whether it is the first that is refused since the key was idle.
func (r *rates[K]) take(key K, now time.Time) (wait time.Duration, first bool) {
	l, known := r.limiters.Get(key)
	if !known {
		l = &limiter{Limiter: rate.NewLimiter(r.perSecond, r.burst)}
		if before, found, _ := r.limiters.PeekOrAdd(key, l); found {
			l = before
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.TokensAt(now) >= float64(r.burst) {
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

func rateLimited(wait time.Duration, detail string) *problem {
	return &problem{Status: http.StatusTooManyRequests, Code: "rate_limited", retryAfter: int(math.Ceil(wait.Seconds())), Detail: detail}
}

// newTokenRates returns nil where there is no bound.
func newTokenRates(perSecond float64) *rates[catalogue.Digest] {
	if perSecond <= 0 {
		return nil
	}
	return newRates[catalogue.Digest](rate.Limit(perSecond), max(1, int(2*perSecond)))
}

// limited refuses a token that asks too often. Events have a bound of their
// own: how many wait to be written.
func (s *server) limited(token *catalogue.Token, scope catalogue.Scope) *problem {
	if scope == catalogue.ScopeIngest || s.rates == nil {
		return nil
	}
	wait, _ := s.rates.take(token.Digest, time.Now())
	if wait == 0 {
		return nil
	}
	return rateLimited(wait, fmt.Sprintf("the token may ask %g times a second, and %d times at once", float64(s.rates.perSecond), s.rates.burst))
}

// newFailureRates returns nil where there is no bound.
func newFailureRates(perMinute int) *rates[netip.Prefix] {
	if perMinute <= 0 {
		return nil
	}
	return newRates[netip.Prefix](rate.Limit(float64(perMinute)/60), perMinute)
}

// failed refuses an address that presented too many unknown tokens, and logs
// that once. It is asked only about a token that is unknown: a valid one is
// never refused, whatever others behind the same proxy present.
func (s *server) failed(request *http.Request) *problem {
	if s.failures == nil {
		return nil
	}
	address := addressOf(request)
	wait, first := s.failures.take(address, time.Now())
	if wait == 0 {
		return nil
	}
	if first {
		slog.WarnContext(request.Context(), "too many unknown tokens from one address", "address", address.String())
	}
	return rateLimited(wait, fmt.Sprintf("more than %d unknown, expired or revoked tokens a minute came from this address", s.failures.burst))
}

// addressOf returns the client's address; of IPv6 the network of 64 bits, all
// of which one client may have.
func addressOf(request *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(request.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	address, bits := at.Addr().Unmap().WithZone(""), 64
	if address.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(address, bits).Masked()
}
