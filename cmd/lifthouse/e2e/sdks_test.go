package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// sdksFolder is the folder of the stock SDKs, once they are installed for all tests.
var sdksFolder = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(binary), "sdks")
	if err := os.CopyFS(dir, os.DirFS("sdks")); err != nil {
		return "", err
	}
	install := exec.CommandContext(context.Background(), "npm", "ci", "--ignore-scripts", "--loglevel=error")
	install.Dir = dir
	out, err := install.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return dir, nil
})

// installSDKs returns the folder of the stock SDKs, at the versions of package-lock.json.
func installSDKs(t *testing.T) string {
	t.Helper()
	tier.OnlyLong(t)
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("SKIP: %s is not installed: no SDK is run", needed)
		}
	}
	dir, err := sdksFolder()
	if err != nil && offline.MatchString(err.Error()) {
		t.Skipf("SKIP: the network is unavailable: %v", err)
	}
	must.OK(t, err)
	return dir
}

// runNode runs a script of the SDKs, and returns what it prints.
func runNode(t *testing.T, script string, args ...string) string {
	t.Helper()
	dir := installSDKs(t)
	node := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	node.Dir = dir
	var complaints strings.Builder
	node.Stderr = &complaints
	out, err := node.Output()
	must.OK(t, err, "%s: %s%s", script, out, complaints.String())
	return string(out)
}

// counted returns the numbers of source list: accepted, purchases, without a visitor, ignored and rejected items.
func counted(t *testing.T, store, source string) string {
	t.Helper()
	out, _ := succeed(t, nil, "source", "list", store)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 9 && fields[1] == source {
			return strings.Join(fields[4:], " ")
		}
	}
	t.Fatalf("source list does not list %s:\n%s", source, out)
	return ""
}

// TestTheSDKsForNode sends with each stock SDK, pointed at a source as source add says. Items that are neither
// views nor goals are ignored and counted.
func TestTheSDKsForNode(t *testing.T) {
	installSDKs(t)
	t.Parallel()
	server, store := serveEmpty(t)
	to := map[string]string{}
	for _, name := range []string{"segment", "rudderstack", "posthog", "growthbook"} {
		to[name], _ = addSource(t, store, server.url, name)
	}
	runNode(t, "node.mjs", string(must.Get(json.Marshal(to))(t)))
	checkStored(t, storedLines(t, store, "anon-1", "anon-2", "anon-3", "anon-4", "1001", "1002", "1003", "1004"),
		"goal add_to_cart 5, visitor anon-4, id unknown",
		"goal add_to_cart 5, visitor anon-4, id unknown",
		"goal purchase 25, visitor anon-1, id 1001",
		"goal purchase 26, visitor anon-2, id 1002",
		"goal purchase 27, visitor anon-3, id 1003",
		"goal purchase 28, visitor anon-4, id 1004",
		"view checkout-layout/b, visitor anon-1, id unknown",
		"view checkout-layout/b, visitor anon-3, id unknown",
		"view checkout-layout/b, visitor anon-4, id unknown",
		"view checkout-layout/control, visitor anon-2, id unknown")
	for name, want := range map[string]string{
		"segment": "2 1 0 3 0", "rudderstack": "2 1 0 1 0", "posthog": "2 1 0 2 0", "growthbook": "6 3 0 1 0",
	} {
		check.Equal(t, counted(t, store, name), want, "%s: accepted, purchases, no visitor, ignored, rejected", name)
	}
	server.interrupt()
}

// TestTheSDKsForBrowsers does the same with the SDKs for browsers, on a page of another site.
func TestTheSDKsForBrowsers(t *testing.T) {
	v := openTab(t)
	dir := installSDKs(t)
	bundle := exec.CommandContext(t.Context(), must.Get(filepath.Abs(checkout+"/node_modules/.bin/esbuild"))(t),
		"browser.mjs", "--bundle", "--log-level=warning")
	bundle.Dir = dir
	script := must.Get(bundle.Output())(t)
	server, store := serveEmpty(t)
	f := newFront(t, server.url)
	to := map[string]string{}
	for _, name := range []string{"segment", "rudderstack", "growthbook"} {
		to[name], _ = addSource(t, store, f.URL, name)
	}
	addresses := must.Get(json.Marshal(to))(t)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, `<script>window.addresses = %s</script><script src="/sdks.js"></script>`, addresses)
		case "/sdks.js":
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(script)
		}
	}))
	defer shop.Close()
	v.do(chromedp.Navigate(shop.URL))
	f.awaitItems(9)
	got := storedLines(t, store, "anon-1", "anon-2", "anon-4", "1001", "1002", "1004")
	checkStored(t, got,
		"goal purchase 25, visitor anon-1, id 1001",
		"goal purchase 26, visitor anon-2, id 1002",
		"goal purchase 28, visitor anon-4, id 1004",
		"view checkout-layout/b, visitor anon-1, id unknown",
		"view checkout-layout/b, visitor anon-2, id unknown",
		"view checkout-layout/b, visitor anon-4, id unknown")
	for name, want := range map[string]string{
		"segment": "2 1 0 1 0", "rudderstack": "2 1 0 1 0",
		"growthbook": "2 1 0 1 0",
	} {
		check.Equal(t, counted(t, store, name), want, "%s: accepted, purchases, no visitor, ignored, rejected", name)
	}
	server.interrupt()
}

// awaitItems returns when the server has taken a number of items.
func (f *front) awaitItems(number int) {
	for requests := 1; ; requests++ {
		items := 0
		for _, r := range f.requests(requests) {
			var taken struct{ Accepted, Ignored, Rejected int }
			_ = json.Unmarshal([]byte(r.answer), &taken) // a preflight has no answer
			items += taken.Accepted + taken.Ignored + taken.Rejected
		}
		if items >= number {
			return
		}
	}
}

// breaker is a proxy that does to requests what networks and servers do: of a hundred, it refuses 15, cuts the
// connection of 5 before and of 5 after the server has stored the events, holds 5 back until another one has passed, if
// there is one, and sends 5 twice.
type breaker struct {
	backend atomic.Pointer[string] // URL of the server; nil: there is none
	done    func()                 // after each request that the server has acknowledged

	mu      sync.Mutex
	changed *sync.Cond // of the counts
	running int        // requests in the proxy
	held    int        // of these, those that are held back
	passed  int        // requests that were forwarded
	random  *rand.Rand
	faults  map[string]int
}

func (b *breaker) draw() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.IntN(100)
}

// count changes the numbers of requests.
func (b *breaker) count(running, held, passed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.held, b.passed = b.running+running, b.held+held, b.passed+passed
	b.changed.Broadcast()
}

// awaitOther returns when another request has passed, or when all are held back, so that none can.
func (b *breaker) awaitOther() {
	b.count(0, 1, 0)
	defer b.count(0, -1, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	for before := b.passed; b.passed == before && b.held < b.running; {
		b.changed.Wait()
	}
}

func (b *breaker) note(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[fault]++
}

// forward sends a request to the server, and returns its status, or 0 if there is no answer.
func (b *breaker) forward(r *http.Request, body string) (status int, answer []byte) {
	backend := b.backend.Load()
	if backend == nil {
		return 0, nil
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodPost, *backend+r.URL.Path,
		strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	b.count(0, 0, 1)
	if response.StatusCode == http.StatusOK {
		b.done()
	}
	return response.StatusCode, answer
}

func (b *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method == http.MethodGet { // the tag
		w.Header().Set("Content-Type", "text/javascript")
		_, body, err := send(r.Context(), http.DefaultClient, http.MethodGet, *b.backend.Load()+r.URL.Path, "", "")
		if err == nil {
			_, _ = io.WriteString(w, body)
		}
		return
	}
	b.count(1, 0, 0)
	defer b.count(-1, 0, 0)
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body, draw := string(text), b.draw()
	cut := func(when string) {
		b.note(when)
		panic(http.ErrAbortHandler)
	}
	switch {
	case draw < 15:
		status := []int{
			http.StatusInternalServerError, http.StatusTooManyRequests,
			http.StatusServiceUnavailable,
		}[draw%3]
		b.note(fmt.Sprint(status))
		w.WriteHeader(status)
		return
	case draw < 20:
		cut("cut before")
	case draw < 25:
		if status, _ := b.forward(r, body); status != 0 {
			cut("cut after")
		}
		cut("no server")
	case draw < 30:
		b.note("twice")
		_, _ = b.forward(r, body)
	case draw < 35:
		b.note("held back")
		b.awaitOther()
	}
	status, answer := b.forward(r, body)
	if status == 0 {
		cut("no server")
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

var sdkEvents = flag.Int("sdk-events", 10_000, "events that TestExactlyOnceThroughABrokenProxy sends")

// TestExactlyOnceThroughABrokenProxy sends events with Segment's SDK while a proxy breaks requests and the server is
// killed. In the end each event is counted once. With 100,000 events: -sdk-events 100000.
func TestExactlyOnceThroughABrokenProxy(t *testing.T) {
	installSDKs(t)
	t.Parallel()
	const kills = 10
	visitors, purchases := *sdkEvents*6/10, *sdkEvents*4/10
	w := newBrokenWorld(t)
	address, _ := addSource(t, w.store, w.proxy.URL, "segment", "--rate=0")
	sent := make(chan string, 1)
	go func() {
		defer close(sent)
		sent <- runNode(t, "many.mjs", address, fmt.Sprint(visitors), fmt.Sprint(purchases))
	}()
	for range kills {
		for range *sdkEvents / 20 / (kills + 2) {
			<-w.acknowledged
		}
		w.kill()
	}
	check.Equal(t, <-sent, fmt.Sprint(visitors+purchases), "events that the SDK delivered")
	w.verify(fmt.Sprintf("%d visitors, %d views, %d converted, %d goals, value %v",
		visitors, visitors, purchases, purchases, expectedValue(purchases)))
}

//go:embed testdata/purchases.html
var purchasesPage string

// TestTheTagExactlyOnce does the same with the tag and 5,000 events. Its visitors come one after the other, each with a
// view and 99 purchases.
func TestTheTagExactlyOnce(t *testing.T) {
	const visitors, purchases, kills = 50, 99, 5
	v := openTab(t)
	w := newBrokenWorld(t)
	address, _ := addSource(t, w.store, w.proxy.URL, "tag", "--rate=0")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, purchasesPage, address)
	}))
	defer shop.Close()
	v.do(chromedp.Navigate(shop.URL))
	for n := range visitors {
		evaluated[int](v, fmt.Sprintf("(window.visiting = visit(%d, %d), 0)", n, purchases))
		if n%(visitors/kills) == visitors/kills-1 {
			w.kill()
		}
		must.Equal(t, evaluated[int](v, "visiting"), (n+1)*(purchases+1), "acknowledged events")
	}
	w.verify(fmt.Sprintf("%d visitors, %d views, %d converted, %d goals, value %v",
		visitors, visitors, visitors, visitors*purchases, 2*visitors*purchases))
}

// brokenWorld is a server behind a breaker.
type brokenWorld struct {
	t            *testing.T
	server       *process
	store        string
	breaker      *breaker
	proxy        *httptest.Server
	acknowledged chan struct{} // a place for each request that the server has acknowledged
	kills        int
}

func newBrokenWorld(t *testing.T) *brokenWorld {
	t.Helper()
	server, store := serveEmpty(t)
	w := &brokenWorld{t: t, server: server, store: store, acknowledged: make(chan struct{}, 10*(*sdkEvents))}
	w.breaker = &breaker{
		done: func() { w.acknowledged <- struct{}{} }, random: rand.New(rand.NewPCG(58, 7)), faults: map[string]int{},
	}
	w.breaker.changed = sync.NewCond(&w.breaker.mu)
	w.breaker.backend.Store(&server.url)
	w.proxy = httptest.NewServer(w.breaker)
	w.proxy.URL = strings.Replace(w.proxy.URL, "127.0.0.1", "localhost", 1)
	t.Cleanup(w.proxy.Close)
	return w
}

// kill kills the server, and starts it again.
func (w *brokenWorld) kill() {
	w.t.Helper()
	w.breaker.backend.Store(nil)
	w.server.kill()
	w.server = start(w.t, "serve", w.store)
	w.breaker.backend.Store(&w.server.url)
	w.kills++
}

// verify compares what is counted with what was sent.
func (w *brokenWorld) verify(want string) {
	w.t.Helper()
	w.t.Logf("%d kills, faults %v", w.kills, w.breaker.faults)
	for _, fault := range []string{"500", "429", "503", "cut before", "cut after", "twice", "held back"} {
		check.That(w.t, w.breaker.faults[fault] != 0, "the proxy never did this: %s", fault)
	}
	declareDiscovered(w.t, w.store)
	succeed(w.t, nil, "facts", "--verify", w.store)
	token, _ := succeed(w.t, nil, "token", "create", w.store)
	check.Equal(w.t, reportOf(w.t, w.server, strings.TrimSpace(token)), want, "counted")
	w.server.interrupt()
	succeed(w.t, nil, "check", "--deep", w.store)
}

// expectedValue is the value of the purchases that many.mjs sends.
func expectedValue(purchases int) float64 {
	sum := 0.0
	for i := range purchases {
		sum += float64(i%7) + 0.5
	}
	return sum
}

// declareDiscovered declares the experiment that arrived, once the server has counted it.
func declareDiscovered(t *testing.T, store string) {
	t.Helper()
	for {
		if out, _ := succeed(t, nil, "discover", store); strings.Contains(out, "checkout-layout") {
			break
		}
	}
	succeed(t, nil, "discover", "checkout-layout", "--goal=purchase", store)
}

// reportOf returns the totals of the only campaign.
func reportOf(t *testing.T, server *process, token string) string {
	t.Helper()
	var list []struct {
		ID int64 `json:"id"`
	}
	server.get("/v1/campaigns", token, &list)
	must.Equal(t, len(list), 1, "campaigns")
	var r struct {
		Totals struct {
			Visitors, Views, ConvertedVisitors, GoalsReached int
			Value                                            json.Number
		} `json:"totals"`
		Stale bool `json:"stale"`
	}
	for {
		server.get(fmt.Sprintf("/v1/campaigns/%d/results", list[0].ID), token, &r)
		if !r.Stale {
			break
		}
	}
	o := r.Totals
	return fmt.Sprintf("%d visitors, %d views, %d converted, %d goals, value %v", o.Visitors, o.Views,
		o.ConvertedVisitors, o.GoalsReached, o.Value)
}

// TestANewcomerFromAnEmptyFolder goes from an empty folder to a report of 2,000 visitors of an SDK, without a line of
// YAML.
func TestANewcomerFromAnEmptyFolder(t *testing.T) {
	installSDKs(t)
	t.Parallel()
	for sender, script := range map[string]string{"segment": "many.mjs", "growthbook": "growthbook.mjs"} {
		t.Run(sender, func(t *testing.T) {
			begun := time.Now()
			server, store := serveEmpty(t)
			address, _ := addSource(t, store, server.url, sender)
			check.Equal(t, runNode(t, script, address, "2000", "300"), "2300", "events that the SDK delivered")
			declareDiscovered(t, store)
			out, _ := succeed(t, nil, "report", "campaign", "checkout-layout", store)
			t.Logf("from an empty folder to a report: %v\n%s", time.Since(begun).Round(time.Millisecond), out)
			for _, want := range []string{
				"Control       1,000        150  15.0 %",
				"b             1,000        150  15.0 %", "after the first view arrived",
			} {
				check.Contains(t, out, want, "report")
			}
			files := must.Get(os.ReadDir(filepath.Dir(strings.TrimPrefix(store, "--store=embedded:"))))(t)
			check.That(t,
				!slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), ".yaml") }),
				"a YAML file was written")
			server.interrupt()
		})
	}
}
