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

// rates limits the rate of an action per key, such as a token. It remembers
// recently used keys; a forgotten key starts without history.
type rates[K comparable] struct {
	perSecond rate.Limit
	burst     int
	limiters  *lru.Cache[K, *limiter]
}

type limiter struct {
	*rate.Limiter
	mu      sync.Mutex
	refused bool // since the key was last idle
}

// maxLimited is the number of remembered keys.
const maxLimited = 10_000

func newRates[K comparable](perSecond rate.Limit, burst int) *rates[K] {
	limiters, err := lru.New[K, *limiter](maxLimited)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &rates[K]{perSecond, burst, limiters}
}

// take counts an action. If it exceeds the rate, take returns the wait, and
// whether it is the first rejection since the key was idle.
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

// newTokenRates returns nil if there is no limit.
func newTokenRates(perSecond float64) *rates[catalogue.Digest] {
	if perSecond <= 0 {
		return nil
	}
	return newRates[catalogue.Digest](rate.Limit(perSecond), max(1, int(2*perSecond)))
}

// limited rejects a token that exceeds its rate. It does not apply to events,
// which are limited by the queue of the writer.
func (s *server) limited(token *catalogue.Token, scope catalogue.Scope) *problem {
	if scope == catalogue.ScopeIngest || s.rates == nil {
		return nil
	}
	wait, _ := s.rates.take(token.Digest, time.Now())
	if wait == 0 {
		return nil
	}
	return rateLimited(wait, fmt.Sprintf("the limit of the token is %g requests per second, with bursts of %d", float64(s.rates.perSecond), s.rates.burst))
}

// newFailureRates returns nil if there is no limit.
func newFailureRates(perMinute int) *rates[netip.Prefix] {
	if perMinute <= 0 {
		return nil
	}
	return newRates[netip.Prefix](rate.Limit(float64(perMinute)/60), perMinute)
}

// failed rejects an address that sent too many unknown tokens, and logs this
// once. It is only called for unknown tokens: valid tokens are never rejected,
// even behind the same proxy.
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
	return rateLimited(wait, fmt.Sprintf("more than %d unknown, expired or revoked tokens per minute from this address", s.failures.burst))
}

// addressOf returns the address of the client. For IPv6 it is the /64 network,
// since one client may use all of it.
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
