package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// record holds what logs and metrics show about a request. It omits the path and the query string, because they may
// contain secrets of the client.
type record struct {
	route     string // template
	requestID string
	traceID   string          // of the header traceparent; empty: none
	token     catalogue.Token // zero before authentication
}

type recordKey struct{}

// recordOf returns the record of a running request. Handlers set its fields.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// accessLog logs and counts the responses of a handler as they are sent.
func (s *API) accessLog(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		started := time.Now()
		r := &record{route: "none"} // of unknown paths
		sent := &sentWriter{ResponseWriter: w}
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			status := cmp.Or(sent.status, http.StatusOK)
			elapsed := time.Since(started)
			if status == statusClientClosed && s.draining.Load() {
				status = http.StatusServiceUnavailable // the server is stopping
			}
			method := "other" // clients cannot create metric labels
			if slices.Contains(standardMethods, request.Method) {
				method = request.Method
			}
			s.metrics.requests.WithLabelValues(method, r.route, strconv.Itoa(status)).Observe(elapsed.Seconds())
			if strings.HasPrefix(r.route, intakePath) && status < http.StatusBadRequest {
				return // as many as a shop has visitors; the metrics count them
			}
			facts := []slog.Attr{
				slog.String("method", method), slog.String("route", r.route), slog.Int("status", status),
				slog.Float64("milliseconds", float64(elapsed.Microseconds())/1000), slog.Int64("bytes", sent.bytes),
				slog.String("requestId", r.requestID), slog.Int64("account", r.token.AccountID),
				slog.Int64("token", r.token.ID),
			}
			if r.traceID != "" {
				facts = append(facts, slog.String("traceId", r.traceID))
			}
			slog.LogAttrs(request.Context(), slog.LevelInfo, "request", facts...)
		}()
		ctx := context.WithValue(request.Context(), recordKey{}, r)
		if r.traceID = traceOf(request); r.traceID != "" {
			ctx = source.WithTrace(ctx, r.traceID)
		}
		handler.ServeHTTP(sent, request.WithContext(ctx))
	})
}

// traceparent matches the header of the same name (W3C Trace Context), also of later versions.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$`)

// traceOf returns the id of the trace of a request; empty: there is none.
func traceOf(request *http.Request) string {
	found := traceparent.FindStringSubmatch(request.Header.Get("Traceparent"))
	isValid := found != nil && strings.Trim(found[1], "0") != "" && !strings.HasPrefix(found[0], "ff")
	if !isValid {
		return ""
	}
	return found[1]
}

var standardMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

// sentWriter counts the bytes of a response.
type sentWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader records the status.
func (w *sentWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (w *sentWriter) Write(body []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(body)
	w.bytes += int64(n)
	return n, err
}

// Unwrap supports http.ResponseController.
func (w *sentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const requestIDHeader = "X-Request-Id"

// safeRequestID matches ids that are safe in logs.
var safeRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID sets the id of a request in its response, its problem and the log. It uses the client's id if that is safe,
// and a new one otherwise.
func requestID(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if !safeRequestID.MatchString(id) || catalogue.RedactTokens(id) != id {
		id = rand.Text()
	}
	r := recordOf(c.Request.Context())
	r.requestID = id
	if route := c.FullPath(); route != "" {
		r.route = route
	}
	c.Header(requestIDHeader, id)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Next()
}

// Headers that a page of an allowed origin may send and read.
const (
	sentByPages = "Authorization, Accept, Cache-Control, Content-Encoding, Content-Type, Idempotency-Key, If-Match, " +
		"If-None-Match, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Traceparent, X-Request-Id"
	readByPages = "Content-Disposition, ETag, Link, Location, Retry-After, Warning, WWW-Authenticate, X-As-Of, " +
		"X-Request-Id, X-Token-Scopes, X-Total-Count"
)

// setCORSHeaders lets pages of the configured origins read responses. Other origins get responses without the CORS
// headers, so browsers hide them from the page. Credentials are never allowed: a page sets the token in a header.
//
// Pages of all origins can send to a source, also one in a sandbox, whose origin is null.
func (s *API) setCORSHeaders(c *gin.Context) {
	if strings.HasPrefix(c.Request.URL.Path, intakePath) {
		c.Header("Access-Control-Allow-Origin", "*")
		return
	}
	if len(s.options.Origins) == 0 {
		return
	}
	c.Writer.Header().Add("Vary", "Origin")
	origin := c.GetHeader("Origin")
	switch {
	case origin == "":
		return
	case slices.Contains(s.options.Origins, "*"):
		origin = "*"
	case !slices.Contains(s.options.Origins, origin):
		return
	}
	c.Header("Access-Control-Allow-Origin", origin)
	c.Header("Access-Control-Expose-Headers", readByPages)
}

// limitTime sets the deadline of a request from Options.Timeout. At the deadline, everything that waits or runs for the
// request ends with the StoreError TooSlow.
func (s *API) limitTime(c *gin.Context) {
	ctx, cancel := results.WithDeadline(c.Request.Context(), s.options.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// within returns the error of work, or the error of the context if the context ends first. In that case work continues,
// because a change to the store may have to be completed.
func within(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// describeTimeout replaces the message of a change that timed out, because the engine's message is about reports.
func describeTimeout(err error, detail string) error {
	store, failed := errors.AsType[*source.StoreError](err)
	if !failed || store.Fault != source.TooSlow {
		return err
	}
	p := storeProblem(store)
	p.Detail = detail
	return p
}

// Limits of the parts of a request other than the body. They are below http.Server.MaxHeaderBytes, above which net/http
// answers with a plain 431.
const (
	maxPath    = 1 << 10
	maxQuery   = 8 << 10
	maxHeaders = 32 << 10
)

// limitSize rejects requests that are too large. The error for an unknown path or method takes precedence.
func (s *API) limitSize(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	var headers int64
	for name, values := range c.Request.Header {
		for _, value := range values {
			headers += int64(len(name) + len(value))
		}
	}
	path := int64(len(c.Request.URL.EscapedPath()))
	query := int64(len(c.Request.URL.RawQuery))
	body := s.options.MaxBody
	for _, part := range []struct {
		status     int
		code, name string
		most, has  int64 // bytes; 0: no limit
	}{
		{http.StatusRequestURITooLong, "uri_too_long", "query", maxQuery, query},
		{http.StatusRequestURITooLong, "uri_too_long", "path", maxPath, path},
		{http.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "headers", maxHeaders, headers},
		{http.StatusRequestEntityTooLarge, "body_too_large", "body", body, c.Request.ContentLength},
	} {
		if part.most > 0 && part.has > part.most {
			c.Header("Connection", "close") // the rest of the request is not read
			writeProblem(c, newRefusal(part.status, part.code,
				fmt.Sprintf("the %s must have at most %d bytes; it has %d", part.name, part.most, part.has)))
			return
		}
	}
	if body > 0 {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, body)
	}
}

const tokenKey = "token"

const realm = `Bearer realm="lifthouse"`

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
		// With the scopes (RFC 6749, section 3.3), clients offer only what the token permits.
		c.Header("X-Token-Scopes", strings.Trim(fmt.Sprint(token.Scopes), "[]"))
		if scope != catalogue.ScopeIngest { // the queue of the writer limits events
			if p := s.countRequests(&token, 1); p != nil {
				writeProblem(c, p)
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

// countRequests counts requests of a token, and returns the problem if they exceed its rate.
func (s *API) countRequests(token *catalogue.Token, requests int) *problem {
	wait, _ := s.rates.countActions(token.Digest, requests, time.Now())
	if wait == 0 {
		return nil
	}
	return s.rateLimited(wait, fmt.Sprintf("the limit of the token is %g requests per second, with bursts of %d",
		float64(s.rates.perSecond), s.rates.burst))
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
// unknown tokens. So a valid token is never rejected, even behind the same proxy. For IPv6, the address is the /64
// network, because one client may use all of its addresses.
func (s *API) checkFailureRate(request *http.Request) *problem {
	var address netip.Prefix
	if at, err := netip.ParseAddrPort(request.RemoteAddr); err == nil {
		client := at.Addr().Unmap().WithZone("")
		bits := 64
		if client.Is4() {
			bits = 32
		}
		address = netip.PrefixFrom(client, bits).Masked()
	}
	wait, first := s.failures.countAction(address, time.Now())
	if wait == 0 {
		return nil
	}
	if first {
		slog.WarnContext(request.Context(), "too many unknown tokens from one address", "address", address.String())
	}
	return s.rateLimited(wait,
		fmt.Sprintf("more than %d unknown, expired or revoked tokens per minute from this address", s.failures.burst))
}

// rateLimits limits the rate of an action of each key, such as a token. It remembers recently used keys. A key that it
// has forgotten starts again without a history.
type rateLimits[K comparable] struct {
	perSecond rate.Limit
	burst     int

	limiters *lru.Cache[K, *limiter]
}

type limiter struct {
	*rate.Limiter
	mu      sync.Mutex
	refused bool // since the key was last idle
}

// maxLimited is the number of remembered keys.
const maxLimited = 10_000

// newRateLimits returns a limit of perSecond actions per second, with bursts of the given size. It returns nil, which
// limits nothing, if perSecond is not above 0.
func newRateLimits[K comparable](perSecond rate.Limit, burst int) *rateLimits[K] {
	if perSecond <= 0 {
		return nil
	}
	limiters, err := lru.New[K, *limiter](maxLimited)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &rateLimits[K]{perSecond, burst, limiters}
}

// countAction counts an action. If the action exceeds the rate, countAction returns the time to wait, and whether this
// is the first rejection since the key was idle.
func (r *rateLimits[K]) countAction(key K, now time.Time) (wait time.Duration, first bool) {
	return r.countActions(key, 1, now)
}

// countActions is like countAction, for several actions at the same time, of which all count or none.
func (r *rateLimits[K]) countActions(key K, actions int, now time.Time) (wait time.Duration, first bool) {
	if r == nil {
		return 0, false
	}
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
	reserved := l.ReserveN(now, actions)
	wait = reserved.DelayFrom(now)
	if wait == 0 {
		return 0, false
	}
	reserved.CancelAt(now)
	first = !l.refused
	l.refused = true
	return wait, first
}
