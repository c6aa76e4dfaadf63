package api

import (
	"fmt"
	"math"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"lifthouse/schema/catalogue"
)

// rates bounds how often each token may ask. It knows the tokens that asked
// last; one that was forgotten starts anew.
type rates struct {
	perSecond rate.Limit
	burst     int
	limiters  *lru.Cache[catalogue.Digest, *rate.Limiter]
}

// mostTokens are more than ask at the same time.
const mostTokens = 10_000

// newRates returns nil where there is no bound.
func newRates(perSecond float64) *rates {
	if perSecond <= 0 {
		return nil
	}
	limiters, err := lru.New[catalogue.Digest, *rate.Limiter](mostTokens)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return &rates{rate.Limit(perSecond), max(1, int(2*perSecond)), limiters}
}

// take counts a request, and returns the problem where it is one too many.
func (r *rates) take(token *catalogue.Token, now time.Time) *problem {
	if r == nil {
		return nil
	}
	limiter, known := r.limiters.Get(token.Digest)
	if !known {
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		if before, found, _ := r.limiters.PeekOrAdd(token.Digest, limiter); found {
			limiter = before
		}
	}
	reserved := limiter.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reserved.CancelAt(now)
	return &problem{
		Status: http.StatusTooManyRequests, Code: "rate_limited", retryAfter: int(math.Ceil(wait.Seconds())),
		Detail: fmt.Sprintf("the token may ask %g times a second, and %d times at once", float64(r.perSecond), r.burst),
	}
}
