// Package api implements the HTTP API under /v1: authentication, parameters, request bodies and problem responses. The
// engine computes the results.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"lifthouse/api/dashboard"
	"lifthouse/api/docs"
	"lifthouse/api/mcp"
	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/readout"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/books"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/ingest"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
	"lifthouse/schema/secrets"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// API is the handler of the API.
type API struct {
	http.Handler
	Parts
	options Options
	metrics *metrics
	ready   struct { // the state of the store, kept briefly, so unauthenticated probes cannot overload it
		sync.Mutex
		asked time.Time
		err   error
	}
	draining atomic.Bool
	results  *results.Service
	mcp      *mcp.Server
	rates    *rateLimits[catalogue.Digest] // nil: no limit
	failures *rateLimits[netip.Prefix]     // failed authentications by address; nil: no limit
	gate     *results.Admission            // for reports
	changes  *results.Admission            // for starts and stops
	setups   *results.Admission            // for other changes of the catalogue
	files    *results.Admission            // for files of visitors
	bulks    *results.Admission            // for all results
	tables   *results.Admission            // for tables
	pictures *results.Admission            // for pictures that are sent
	readouts *readout.Maker
	maxTable int // bytes of a table that is kept
	bodies   *bodies
	senders  sync.Map // of *sender, by the digests of their tokens
	pools    sync.Map // that are computed in the background
}

// Parts are what the API serves.
type Parts struct {
	Engine    *engine.Engine
	Catalogue *catalogue.Catalogue
	Summaries *watch.Summaries
	Outbox    *outbox.Outbox
	Notes     *notes.Notes
	Books     *books.Books
	Documents *documents.Documents
	Collector *ingest.Collector // stores events
	Journal   *ingest.Journal   // of rejected lines
	Times     ingest.Times      // allowed times of events
	Secrets   *secrets.Folder   // files with the secrets of sources
}

// New returns the API of a store.
func New(parts Parts, o Options) *API {
	s := &API{Parts: parts, options: o, metrics: newMetrics()}
	s.exportNames()
	queue := results.Queue{Slots: o.StoreSlots, Length: o.StoreQueue, Wait: o.StoreWait}
	s.gate = results.NewAdmission(queue, s.metrics.results.Shed)
	s.results = results.New(s.Engine, s.Summaries, s.gate,
		results.Options{Age: o.ResultsAge, Memory: o.ResultsMemory, Timeout: o.Timeout}, s.metrics.results)
	s.mcp = mcp.New(s.tableReader(), s.results, s.Journal, o.Release)
	s.readouts = &readout.Maker{Reader: s.tableReader(), Release: o.Release, PublicURL: o.PublicURL}
	queue.Slots = changeSlots
	s.changes = results.NewAdmission(queue, s.metrics.results.Shed)
	s.setups = results.NewAdmission(queue, s.metrics.results.Shed)
	queue.Slots = visitorSlots
	s.files = results.NewAdmission(queue, s.metrics.results.Shed)
	queue.Slots = bulkSlots
	s.bulks = results.NewAdmission(queue, s.metrics.results.Shed)
	queue.Slots = tableSlots
	s.tables = results.NewAdmission(queue, s.metrics.results.Shed)
	queue.Slots = 1
	s.pictures = results.NewAdmission(queue, s.metrics.results.Shed)
	s.maxTable = maxTable
	s.rates = newRateLimits[catalogue.Digest](rate.Limit(o.TokenRate), max(1, int(2*o.TokenRate)))
	s.failures = newRateLimits[netip.Prefix](rate.Limit(float64(o.AuthFailures)/60), o.AuthFailures)
	s.bodies = &bodies{
		small: semaphore.NewWeighted(smallBodies), large: semaphore.NewWeighted(largeBodies), wait: o.StoreWait,
		lines: semaphore.NewWeighted(chunks * chunkLines), parsed: semaphore.NewWeighted(1),
	}
	s.Engine.ObserveQueries(func(elapsed time.Duration, err error) {
		outcome := "ok"
		if store, failed := errors.AsType[*source.StoreError](err); failed {
			outcome = string(store.Fault)
		} else if err != nil {
			outcome = "canceled"
		}
		s.metrics.storeQueries.WithLabelValues(outcome).Observe(elapsed.Seconds())
	})
	compressed, err := gzhttp.NewWrapper(gzhttp.MinSize(1<<10), gzhttp.EnableZstd(true))
	if err != nil {
		panic(err) // the options are constants
	}
	s.Handler = s.accessLog(compressed(s.newRouter()))
	return s
}

// StartDraining makes the readiness probe fail before the server stops. The server still answers requests.
func (s *API) StartDraining() { s.draining.Store(true) }

func (s *API) newRouter() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	router.UseRawPath = true // an encoded slash is part of an id
	router.Use(requestID, recoverPanic, s.setCORSHeaders, s.limitSize)
	router.NoRoute(func(c *gin.Context) {
		writeProblem(c, notFound("no resource at "+c.Request.URL.Path))
	})
	router.NoMethod(func(c *gin.Context) {
		allow := c.Writer.Header().Get("Allow") + ", " + http.MethodOptions
		c.Header("Allow", allow)
		if c.Request.Method == http.MethodOptions {
			if c.Writer.Header().Get("Access-Control-Allow-Origin") != "" &&
				c.GetHeader("Access-Control-Request-Method") != "" { // a CORS preflight request
				headers := sentByPages
				seconds := "600"
				if strings.HasPrefix(c.Request.URL.Path, intakePath) { // SDKs send headers of their own
					headers = c.GetHeader("Access-Control-Request-Headers")
					seconds = "86400"
				}
				c.Header("Access-Control-Allow-Methods", allow)
				c.Header("Access-Control-Allow-Headers", headers)
				c.Header("Access-Control-Max-Age", seconds)
			}
			c.AbortWithStatus(http.StatusNoContent)
			return
		}
		writeProblem(c, newRefusal(http.StatusMethodNotAllowed, "method_not_allowed",
			"allowed methods: "+allow))
	})
	s.addRoutes(router)
	return router
}

// addRoutes adds every operation. Each GET route also answers HEAD.
func (s *API) addRoutes(router *gin.Engine) {
	s.addReadouts(router)
	s.addPictures(router)
	open := getRoutes(router)
	open("/healthz", func(*gin.Context) (any, error) { return healthy, nil })
	open("/readyz", s.checkReadiness)
	get := getRoutes(router.Group("/v1", s.requireScope(catalogue.ScopeRead), s.limitTime))
	get("/campaigns", s.listCampaigns)
	get("/widgets", s.listWidgets)
	get("/goals", listHandler(s, goals, newGoal))
	get("/goals/:id", getHandler(s, goals, newGoal))
	get("/targets", listHandler(s, targets, newTarget))
	get("/targets/:id", getHandler(s, targets, newTarget))
	get("/websites", s.listWebsites)
	get("/undeclared", s.listUndeclared)
	get("/sources", s.listSources)
	get("/names", s.listNames)
	get("/complete", s.completeQuestion)
	get("/websites/:id/worth", s.getWorth, results.JSON, results.CSV)
	get("/websites/:id/plan", s.getPlan)
	get("/tables", withoutParameters(s.listTables))
	get("/rates", s.listRates)
	get("/log", s.listLog, results.JSON, lineType)
	shared := getRoutes(router.Group("/v1", s.requireScope(catalogue.ScopeRead, catalogue.ScopeShare), s.limitTime))
	shared("/campaigns/:id", getHandler(s, campaigns, s.campaignDetail))
	shared("/widgets/:id", getHandler(s, widgets, s.widgetDetail))
	router.Group("/v1", s.requireScope(catalogue.ScopeRead, catalogue.ScopeShare), s.limitTime).POST("/query",
		respondWith(s.answerQuestions, results.JSON, results.CSV))
	getRoutes(router.Group("", s.requireScope(catalogue.ScopeRead), s.limitTime))("/deliveries",
		withoutParameters(s.listDeliveries))
	router.Group("/v1", s.requireScope(catalogue.ScopeRead), s.limitTime).Match(readMethods, "/results", s.sendResults)
	files := router.Group("/v1", s.requireScope(catalogue.ScopeRead)) // without the time limit of reports
	files.Match(readMethods, "/tables/:file", s.sendTable)
	for path, operation := range map[string]query.Operation{
		"/campaigns/:id": query.CampaignResults, "/widgets/:id": query.WidgetResults,
		"/widgets/:id/experiments/:experimentId": query.ExperimentResults,
	} {
		shared(path+"/results", s.answerQuery(s.readReport(operation)), results.Kinds...)
		shared(path+"/dimensions/:name", s.answerQuery(s.readDimension(operation)))
		files.Match(readMethods, path+"/visitors.parquet", s.sendVisitors(operation))
	}
	router.POST("/mcp", s.requireScope(catalogue.ScopeRead), s.answerMCP)
	router.POST("/events", s.requireScope(catalogue.ScopeIngest), respondWith(s.takeEvents))
	write := router.Group("/v1", s.requireScope(catalogue.ScopeWrite), s.limitTime)
	for path, active := range map[string]bool{"/start": true, "/stop": false} {
		write.POST("/campaigns/:id"+path, respondWith(switchHandler(s, campaigns, active, s.countedCampaign)))
		write.POST("/widgets/:id"+path, respondWith(switchHandler(s, widgets, active, s.countedWidget)))
	}
	changes := []string{http.MethodPut, http.MethodDelete}
	write.Match(changes, "/campaigns/:id/outcome", respondWith(s.putOutcome(schema.SubjectCampaign)))
	write.Match(changes, "/widgets/:id/experiments/:experimentId/outcome",
		respondWith(s.putOutcome(schema.SubjectWidget)))
	write.POST("/notes", respondWith(admitTo(s.changes, withoutParameters(s.createNote))))
	write.DELETE("/notes/:id", respondWith(admitTo(s.changes, s.withdrawNote)))
	for _, path := range []string{intakePath + ":key", intakePath + ":key/*path"} { // SDKs append a path of their own
		router.POST(path, respondWith(s.takeItems))
	}
	open(intakePath+":key", s.sendTag, javaScript)
	s.addSetup(router)
	addPages(router)
}

// readMethods are the methods of operations that only read.
var readMethods = []string{http.MethodGet, http.MethodHead}

// handler answers an operation with a body or a problem. The body is a reply, bytes of the negotiated type, or JSON.
type handler = func(*gin.Context) (any, error)

// getRoutes returns a function that adds routes for reading to a group.
func getRoutes(group gin.IRoutes) func(path string, handle handler, types ...string) {
	return func(path string, handle handler, types ...string) {
		group.Match(readMethods, path, respondWith(handle, types...))
	}
}

// withoutParameters wraps an operation that has no parameters.
func withoutParameters(handle handler) handler {
	return func(c *gin.Context) (any, error) {
		if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
			return nil, err
		}
		return handle(c)
	}
}

// respondWith sends the result of a handler: a body or a problem. The Accept header selects one of the types; the
// default is JSON. The entity tag covers the body, its content type, the account and the request.
func respondWith(handle handler, types ...string) gin.HandlerFunc {
	if len(types) == 0 {
		types = []string{results.JSON}
	}
	return func(c *gin.Context) {
		if err := negotiateType(c, types); err != nil {
			writeProblem(c, problemOf(err))
			return
		}
		body, err := handle(c)
		r := reply{kind: results.JSON, keep: revalidated}
		isReady := false
		switch b := body.(type) {
		case reply:
			r = b
			isReady = true
		case []byte:
			r.kind = c.GetString(typeKey)
			r.body = b
		default:
			if err == nil {
				r.body, err = render.JSON(body)
			}
		}
		switch {
		case err != nil:
			writeProblem(c, problemOf(err))
			return
		case isReady:
		case !slices.Contains(readMethods, c.Request.Method):
			r.keep = notKept // responses to changes must not be cached
		default:
			account := recordOf(c.Request.Context()).token.AccountID
			r.tag = entityTag(strconv.FormatInt(account, 10), c.Request.URL.RequestURI(),
				c.Writer.Header().Get("X-Total-Count"), r.kind, string(r.body))
		}
		sendReply(c, r)
	}
}

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

// readoutPath is the path of the page of a readout.
const readoutPath = "/readouts/:id"

// homePath is the path of the page of results.
const homePath = "/"

// addPages adds the routes of the OpenAPI document, of the second opinion, and of the dashboard: its page at / and its
// files under /dashboard.
func addPages(router *gin.Engine) {
	for _, d := range docs.All() {
		router.Match(readMethods, d.Path, serveDocument(d))
	}
	add := func(path, page string, f dashboard.File) {
		router.Match(readMethods, path, serveDocument(docs.Document{
			Path: path, Kind: f.Kind, Policy: dashboard.Policies[page],
			Body: func() ([]byte, error) { return f.Body, nil },
		}))
	}
	for _, f := range dashboard.Files(dashboard.Results) {
		path, page := "/dashboard/"+f.Name, dashboard.Results
		switch f.Name {
		case dashboard.Index:
			path = homePath
		case dashboard.Readout:
			path, page = readoutPath, dashboard.Readout
		}
		add(path, page, f)
	}
	for _, folder := range []string{dashboard.Opinion, dashboard.OpinionParts} {
		for _, f := range dashboard.Files(folder) {
			add(strings.TrimSuffix("/opinion/"+f.Name, "/"+dashboard.Index), dashboard.Opinion, f)
		}
	}
}

// serveDocument returns the handler of a document, which is the same for all clients.
func serveDocument(d docs.Document) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := d.Body()
		if err != nil {
			writeProblem(c, problemOf(err))
			return
		}
		tag := entityTag(string(body))
		c.Header("ETag", tag)
		c.Header("Cache-Control", "no-cache")
		if d.Path == homePath || d.Path == readoutPath {
			c.Header("X-Robots-Tag", "noindex") // share links must not be found by search engines
		}
		if d.Policy != "" {
			c.Header("Content-Security-Policy", d.Policy)
			c.Header("X-Content-Type-Options", "nosniff")
			c.Header("Referrer-Policy", "no-referrer")
		}
		if matchesTag(c.Request, tag) {
			sendStatus(c, http.StatusNotModified)
			return
		}
		c.Data(http.StatusOK, d.Kind, body)
	}
}

// healthy is the successful response of both probes. Clients must not cache it.
var healthy = reply{kind: results.JSON, keep: notKept, body: []byte(`{"status":"ok"}` + "\n")}

// checkReadiness is the readiness probe. It fails while the server drains, the store is unavailable, or the tables are
// out of date.
func (s *API) checkReadiness(c *gin.Context) (any, error) {
	if s.draining.Load() {
		return nil, newRefusal(http.StatusServiceUnavailable, "draining", "the server is stopping")
	}
	r := &s.ready
	r.Lock()
	defer r.Unlock()
	if time.Since(r.asked) >= time.Second {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), 2*time.Second)
		defer cancel()
		r.err = s.Engine.CheckReady(ctx)
		r.asked = time.Now()
	}
	if r.err != nil {
		return nil, unavailable("not_ready", "the store is not ready; run lifthouse check for details", 0, r.err)
	}
	state := s.Engine.StoreState()
	if state.Fold == nil && len(state.Damage) == 0 {
		return healthy, nil
	}
	body, err := json.Marshal(struct {
		Status string `json:"status"`
		engine.StoreState
	}{"ok", state})
	return reply{kind: results.JSON, keep: notKept, body: append(body, '\n')}, err
}

// MCP returns the server of the Model Context Protocol.
func (s *API) MCP() *mcp.Server { return s.mcp }

// answerMCP answers a message of the Model Context Protocol. It rejects batches, because the rate of a token counts
// requests.
func (s *API) answerMCP(c *gin.Context) {
	// Comparing the origin with the host is not enough: a page can give its own host name the address of this server
	// (DNS rebinding).
	origin := c.GetHeader("Origin")
	allowed := s.options.Origins
	public, err := url.Parse(s.options.PublicURL)
	isOwn := err == nil && strings.EqualFold(origin, public.Scheme+"://"+public.Host)
	isAllowed := slices.Contains(allowed, "*") || slices.Contains(allowed, origin)
	if origin != "" && !isOwn && !isAllowed {
		writeProblem(c, newRefusal(http.StatusForbidden, "origin_not_allowed",
			"the Origin must be that of --public-url or one of --cors-origin"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, mcp.MaxMessage))
	if err != nil {
		writeProblem(c, problemOf(bodyProblem(err)))
		return
	}
	if !utf8.Valid(body) {
		writeProblem(c, newRefusal(http.StatusBadRequest, "invalid_body", "the body must be UTF-8"))
		return
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		writeProblem(c, newRefusal(http.StatusBadRequest, "invalid_body",
			"the body must be one message, not a batch"))
		return
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	token := tokenOf(c)
	s.mcp.ServeCaller(c.Writer, c.Request, mcp.Caller{AccountID: token.AccountID, WebsiteID: token.WebsiteID})
}
