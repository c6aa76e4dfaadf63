package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// front is a proxy before a server, which records the requests of browsers and fails the first ones.
type front struct {
	*httptest.Server
	backend *httputil.ReverseProxy

	mu       sync.Mutex
	more     *sync.Cond // of sent
	failures int        // requests that are still answered with 503
	sent     []sent
}

// sent is a request that a browser sent.
type sent struct {
	method, origin, cookie, kind string
	status                       int
	body, answer                 string
}

func newFront(t *testing.T, backend string) *front {
	t.Helper()
	f := &front{backend: httputil.NewSingleHostReverseProxy(must.Get(url.Parse(backend))(t))}
	f.more = sync.NewCond(&f.mu)
	f.Server = httptest.NewServer(f)
	f.URL = strings.Replace(f.URL, "127.0.0.1", "localhost", 1) // another site than the shop
	t.Cleanup(f.Close)
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if r.Method == http.MethodGet {
		f.backend.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	fails := f.failures > 0
	f.mu.Unlock()
	answer := httptest.NewRecorder()
	if fails {
		answer.Header().Set("Access-Control-Allow-Origin", "*")
		answer.WriteHeader(http.StatusServiceUnavailable)
	} else {
		f.backend.ServeHTTP(answer, r)
	}
	f.mu.Lock()
	f.failures--
	f.sent = append(f.sent, sent{
		r.Method, r.Header.Get("Origin"), r.Header.Get("Cookie"), r.Header.Get("Content-Type"),
		answer.Code, string(body), answer.Body.String(),
	})
	f.more.Broadcast()
	f.mu.Unlock()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// requests returns what the browsers sent, once there are so many requests.
func (f *front) requests(least int) []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.sent) < least {
		f.more.Wait()
	}
	return f.sent
}

// eventIDs are the ids of the events of a request.
func (s *sent) eventIDs(t *testing.T) string {
	t.Helper()
	var body struct {
		Batch []struct {
			ID    string
			Event string
			Age   float64
		}
	}
	must.OK(t, json.Unmarshal([]byte(s.body), &body), s.body)
	var ids []string
	for _, event := range body.Batch {
		ids = append(ids, event.Event+" "+event.ID)
	}
	return strings.Join(ids, ", ")
}

// shopPage is a page with gtag, of which one event precedes the tag. Its clock makes waits short, and lists them. Once
// the page is slow, no wait ends.
//
//go:embed testdata/shop.html
var shopPage string

// TestTheTagInABrowser opens a page of another origin with the tag: twice, as by a theme and a tag manager. The server
// fails twice, and the last event happens as the page is left.
func TestTheTagInABrowser(t *testing.T) {
	v := openTab(t)
	server, store := serveEmpty(t)
	f := newFront(t, server.url)
	address, text := addSource(t, store, f.URL, "tag")
	check.Contains(t, text, `<script src="`+address+`.js" async></script>`, "source add tag")
	f.failures = 2
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, shopPage, address)
	}))
	defer shop.Close()

	// Without the cookie, the tag waits.
	v.do(chromedp.Navigate(shop.URL + "/?utm_source=news"))
	v.until(`dataLayer.lifthouse`)
	check.Equal(t,
		evaluated[float64](v,
			`dataLayer.push({event: "experiment_viewed", experiment_id: "checkout-layout", variation_id: "b"}, {event: "gtm.dom"})`), 9, "what push returns")
	v.until(`waits.filter((ms) => ms === 2000).length > 2`)
	early := f.requests(0)
	must.That(t, len(early) == 0, "sent before the visitor is known: %+v", early)

	// With the cookie, the events are sent until the server has them. A reloaded page reports its purchase again.
	evaluated[string](v, `document.cookie = "_ga=GA1.1.123.456"`)
	purchase := `dataLayer.push({event: "purchase", ecommerce: {transaction_id: "T1", value: 42.5, currency: "EUR"}})`
	v.until(`answers === 3`)
	evaluated[float64](v, purchase)
	evaluated[float64](v, purchase)
	v.until(`answers === 4`)
	check.Equal(t, evaluated[string](v, `document.cookie + localStorage.length + sessionStorage.length`),
		"_ga=GA1.1.123.45600", "cookies and storage")
	if evaluated[float64](v, `(slow = true, gtag("event", "add_to_cart", {value: 1}), 0)`); len(f.requests(0)) != 4 {
		t.Errorf("%d requests before the page is left, want 4", len(f.requests(0)))
	}
	v.do(chromedp.Navigate("about:blank"))

	requests := f.requests(5) // the last one is the beacon
	first := requests[0].eventIDs(t)
	for i, want := range []int{503, 503, 200, 200, 200} {
		r := requests[i]
		check.Equal(t, r.status, want, "request %d", i)
		check.Equal(t, r.method, http.MethodPost, "request %d: %+v, want a simple one without cookies", i, r)
		check.Equal(t, r.origin, shop.URL, "request %d: %+v, want a simple one without cookies", i, r)
		check.Equal(t, r.cookie, "", "request %d: %+v, want a simple one without cookies", i, r)
		check.That(t, strings.HasPrefix(r.kind, "text/plain"), "request %d: %+v, want a simple one without cookies", i,
			r)
		if i < 3 {
			check.Equal(t, r.eventIDs(t), first, "ids of request %d", i)
		}
	}
	check.Contains(t, requests[0].body, `"source":"news"`, "the campaign of the visit")
	for _, request := range v.requests() {
		check.That(t,
			strings.HasPrefix(request.URL, shop.URL) || strings.HasPrefix(request.URL, f.URL) ||
				request.URL == "about:blank", "the page asks %s", request.URL)
	}
	checkStored(t, storedLines(t, store, "123.456", "T1"),
		"goal add_to_cart 1, visitor 123.456, id unknown, desktop",
		"goal purchase 42.5, visitor 123.456, id T1, desktop",
		"view CONV-1001/2, visitor 123.456, id unknown, desktop",
		"view checkout-layout/b, visitor 123.456, id unknown, desktop")
	server.interrupt()
}

// TestTheTagStartsQuickly measures how long the tag occupies a page whose dataLayer has 1,000 entries.
func TestTheTagStartsQuickly(t *testing.T) {
	v := openTab(t)
	tag := must.Get(os.ReadFile("../../../api/tag/tag.min.js"))(t)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<script>
			dataLayer = Array.from({length: 1000},
				(_, i) => ({event: "purchase", ecommerce: {transaction_id: "T" + i}}));
			const begun = performance.now();
			%s;
			window.took = performance.now() - begun;
		</script>`, tag)
	}))
	defer shop.Close()
	best := 1000.0
	for range 5 { // others use the machine, too
		v.do(chromedp.Navigate(shop.URL))
		best = min(best, evaluated[float64](v, `took`))
	}
	if t.Logf("the tag takes %.2f ms", best); best > 5 {
		t.Errorf("the tag takes %.2f ms, want at most 5", best)
	}
}

// pixelIn returns the pixel in what source add prints.
func pixelIn(t *testing.T, text string) string {
	t.Helper()
	const begins = "analytics.subscribe("
	_, pixel, found := strings.Cut(text, begins)
	pixel, _, ends := strings.Cut(begins+pixel, "Then: lifthouse source list")
	must.That(t, found, "source add prints no pixel:\n%s", text)
	must.That(t, ends, "source add prints no pixel:\n%s", text)
	return pixel
}

//go:embed testdata/visits.html
var visitsPage string

//go:embed testdata/buyers.html
var buyersPixel string

// TestANewcomerWithTagAndPixel goes from an empty folder to a report with the line and the pixel that source add
// prints, in a shop that reports its experiments to Google, without a line of YAML. Of 100 visitors, 30 buy.
func TestANewcomerWithTagAndPixel(t *testing.T) {
	const visitors, buyers = 100, 30
	v := openTab(t)
	begun := time.Now()
	server, store := serveEmpty(t)
	f := newFront(t, server.url)
	address, text := addSource(t, store, f.URL, "tag")
	line := `<script src="` + address + `.js" async></script>`
	check.Contains(t, text, line, "source add tag")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		// one visitor after the other: the tag has sent the view of one when the cookie of the next one is set
		case "/":
			_, _ = fmt.Fprintf(w, visitsPage, visitors, line)
		case "/thanks":
			_, _ = io.WriteString(w, `<iframe sandbox="allow-scripts" src="/pixel"></iframe>`)
		case "/pixel":
			_, _ = fmt.Fprintf(w, buyersPixel, buyers, pixelIn(t, text))
		}
	}))
	defer shop.Close()
	v.do(chromedp.Navigate(shop.URL))
	v.until(`dataLayer.lifthouse`)
	evaluated[int](v, `(visits(), 0)`)
	v.until(`window.visited`)
	v.do(chromedp.Navigate(shop.URL + "/thanks"))
	f.awaitItems(visitors + buyers)
	for found := ""; !strings.Contains(found, "CONV-1001"); {
		found, _ = succeed(t, nil, "discover", store)
	}
	succeed(t, nil, "discover", "CONV-1001", "--goal=purchase", "--control=1", store)
	out, _ := succeed(t, nil, "report", "campaign", "CONV-1001", store)
	t.Logf("from an empty folder to a report: %v\n%s", time.Since(begun).Round(time.Millisecond), out)
	for _, want := range []string{"1                50         15  30.0 %", "2                50         15  30.0 %"} {
		check.Contains(t, out, want, "report")
	}
	server.interrupt()
}

//go:embed testdata/sandbox.html
var sandboxPixel string

// TestThePixelInASandbox runs the pixel that source add prints as Shopify runs it: in a frame whose origin is null,
// with Shopify's objects.
func TestThePixelInASandbox(t *testing.T) {
	v := openTab(t)
	server, store := serveEmpty(t)
	f := newFront(t, server.url)
	_, text := addSource(t, store, f.URL, "tag")
	pixel := pixelIn(t, text)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, `<iframe sandbox="allow-scripts" src="/pixel"></iframe>`)
			return
		}
		_, _ = fmt.Fprintf(w, sandboxPixel, pixel)
	}))
	defer shop.Close()
	v.do(chromedp.Navigate(shop.URL))
	r := f.requests(1)[0]
	check.Equal(t, r.method, http.MethodPost, "the pixel sends %+v", r)
	check.Equal(t, r.origin, "null", "the pixel sends %+v", r)
	check.That(t, strings.HasPrefix(r.kind, "text/plain"), "the pixel sends %+v", r)
	check.Equal(t, r.status, http.StatusOK, "the pixel sends %+v", r)
	check.Equal(t, len(f.requests(0)), 1, "requests")
	checkStored(t, storedLines(t, store, "123.456", "5009"), "goal purchase 42.5, visitor 123.456, id 5009")
	server.interrupt()
}

// TestTheThemeOfShopify runs the script that source add shopify prints for the theme, in a page with the cookie of
// Google Analytics and in one without.
func TestTheThemeOfShopify(t *testing.T) {
	v := openTab(t)
	server, store := serveEmpty(t)
	_, text := addSource(t, store, server.url, "shopify", "--views=tag")
	_, script, found := strings.Cut(text, "<script>")
	script, _, ends := strings.Cut(script, "</script>")
	must.That(t, found, "source add prints no script:\n%s", text)
	must.That(t, ends, "source add prints no script:\n%s", text)
	updates := make(chan string, 2)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cart/update.js" {
			body, _ := io.ReadAll(r.Body)
			updates <- r.Header.Get("Content-Type") + " " + string(body)
			return
		}
		if r.URL.Path == "/consent" {
			w.Header().Set("Set-Cookie", "_ga=GA1.2-1.123.456; Path=/")
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<script>document.cookie = 'x_ga=GA1.1.9.9'; %s</script>", script)
	}))
	defer shop.Close()
	v.do(chromedp.Navigate(shop.URL))
	v.do(chromedp.Navigate(shop.URL + "/consent"))
	check.Equal(t, <-updates, `application/json {"attributes":{"lifthouse":"123.456"}}`, "update of the cart")
	check.Equal(t, len(updates), 0, "further updates")
	server.interrupt()
}
