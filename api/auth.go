package api

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

const tokenKey = "token"

const realm = `Bearer realm="lifthouse"`

// tokenScopesHeader is the response header with the scopes of the token, separated by spaces (RFC 6749, section 3.3).
// With it, clients offer only what the token permits.
const tokenScopesHeader = "X-Token-Scopes"

// requireScope accepts requests with a token that has the scope, or one of the alternatives (RFC 6750).
func (s *API) requireScope(scope catalogue.Scope, alternatives ...catalogue.Scope) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header().Add("Vary", varies)
		scheme, secret, _ := strings.Cut(c.GetHeader("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || secret == "" {
			c.Header("WWW-Authenticate", realm)
			writeProblem(c, newRefusal(http.StatusUnauthorized, "unauthenticated",
				"send the header Authorization: Bearer <token>; create a token with lifthouse token create"))
			return
		}
		token, known := s.Catalogue.Snapshot().FindToken(catalogue.DigestOf(strings.TrimSpace(secret)), time.Now())
		if !known {
			if p := s.checkFailureRate(c.Request); p != nil {
				writeProblem(c, p)
				return
			}
			c.Header("WWW-Authenticate", realm+`, error="invalid_token"`)
			writeProblem(c, newRefusal(http.StatusUnauthorized, "invalid_token",
				"the token is unknown, expired or revoked"))
			return
		}
		recordOf(c.Request.Context()).token = token
		c.Header(tokenScopesHeader, strings.Trim(fmt.Sprint(token.Scopes), "[]"))
		if scope != catalogue.ScopeIngest { // the queue of the writer limits events
			if wait, _ := s.rates.CountAction(token.Digest, time.Now()); wait > 0 {
				writeProblem(c, s.rateLimited(wait, fmt.Sprintf("the limit of the token is %g requests per second, "+
					"with bursts of %d", float64(s.rates.PerSecond), s.rates.Burst)))
				return
			}
		}
		if !token.HasScope(scope) && !slices.ContainsFunc(alternatives, token.HasScope) {
			c.Header("WWW-Authenticate", realm+`, error="insufficient_scope", scope="`+string(scope)+`"`)
			writeProblem(c, newRefusal(http.StatusForbidden, "insufficient_scope",
				"the token lacks the scope "+string(scope)))
			return
		}
		c.Set(tokenKey, token)
		c.Next()
	}
}

// tokenOf returns the token of an authenticated request.
func tokenOf(c *gin.Context) catalogue.Token { return c.MustGet(tokenKey).(catalogue.Token) }

// accountResources returns the resources of the token's account, or those that its share link shows. It also returns
// the website of a token that is bound to one, or 0.
func (s *API) accountResources(c *gin.Context) (*catalogue.AccountResources, int64) {
	token := tokenOf(c)
	owned := s.Catalogue.Snapshot().AccountResources(token.AccountID)
	if token.Shared != nil {
		owned = owned.SharedView(token.Shared)
	}
	return owned, token.WebsiteID
}

// byToken returns the context of the request with its token as the author of changes.
func byToken(c *gin.Context) context.Context {
	token := tokenOf(c)
	return catalogue.WithAuthor(c.Request.Context(),
		strings.TrimSpace(fmt.Sprintf("token %d %s", token.ID, token.Name)))
}

// rateLimited counts a request that exceeds a rate, and returns its problem.
func (s *API) rateLimited(wait time.Duration, detail string) *problem {
	s.metrics.rateLimited.Inc()
	return &problem{
		Status: http.StatusTooManyRequests, Code: "rate_limited",
		retryAfter: int(math.Ceil(wait.Seconds())), Detail: detail,
	}
}

// checkFailureRate rejects an address that sent too many unknown tokens, and logs this once. It is called only for
// unknown tokens. So a valid token is never rejected, even behind the same proxy.
func (s *API) checkFailureRate(request *http.Request) *problem {
	address := addressOf(request)
	wait, first := s.failures.CountAction(address, time.Now())
	if wait == 0 {
		return nil
	}
	if first {
		slog.WarnContext(request.Context(), "too many unknown tokens from one address", "address", address.String())
	}
	return s.rateLimited(wait,
		fmt.Sprintf("more than %d unknown, expired or revoked tokens per minute from this address", s.failures.Burst))
}

// addressOf returns the address of the client. For IPv6, it returns the /64 network, because one client may use all of
// its addresses.
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
