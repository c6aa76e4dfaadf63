package api

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"lifthouse/api/rates"
	"lifthouse/schema/catalogue"
)

func rateLimited(wait time.Duration, detail string) *problem {
	return &problem{Status: http.StatusTooManyRequests, Code: "rate_limited", retryAfter: int(math.Ceil(wait.Seconds())), Detail: detail}
}

// newTokenRates returns nil if there is no limit.
func newTokenRates(perSecond float64) *rates.Rates[catalogue.Digest] {
	if perSecond <= 0 {
		return nil
	}
	return rates.New[catalogue.Digest](rate.Limit(perSecond), max(1, int(2*perSecond)))
}

// checkTokenRate rejects a token that exceeds its rate. It does not apply to events,
// which the queue of the writer limits.
func (s *server) checkTokenRate(token *catalogue.Token, scope catalogue.Scope) *problem {
	if scope == catalogue.ScopeIngest || s.rates == nil {
		return nil
	}
	wait, _ := s.rates.CountAction(token.Digest, time.Now())
	if wait == 0 {
		return nil
	}
	return rateLimited(wait, fmt.Sprintf("the limit of the token is %g requests per second, with bursts of %d", float64(s.rates.PerSecond), s.rates.Burst))
}

// newFailureRates returns nil if there is no limit.
func newFailureRates(perMinute int) *rates.Rates[netip.Prefix] {
	if perMinute <= 0 {
		return nil
	}
	return rates.New[netip.Prefix](rate.Limit(float64(perMinute)/60), perMinute)
}

// checkFailureRate rejects an address that sent too many unknown tokens, and logs this
// once. It is called only for unknown tokens. So a valid token is never rejected, even
// behind the same proxy.
func (s *server) checkFailureRate(request *http.Request) *problem {
	if s.failures == nil {
		return nil
	}
	address := addressOf(request)
	wait, first := s.failures.CountAction(address, time.Now())
	if wait == 0 {
		return nil
	}
	if first {
		slog.WarnContext(request.Context(), "too many unknown tokens from one address", "address", address.String())
	}
	return rateLimited(wait, fmt.Sprintf("more than %d unknown, expired or revoked tokens per minute from this address", s.failures.Burst))
}

// addressOf returns the address of the client. For IPv6, it returns the /64 network,
// because one client may use all of its addresses.
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
