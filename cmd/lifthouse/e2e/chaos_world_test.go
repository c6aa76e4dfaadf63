package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// tally has the expected counts of a variation.
type tally struct{ visitors, views, converted, goals int64 }

func (a tally) plus(b tally) tally {
	return tally{a.visitors + b.visitors, a.views + b.views, a.converted + b.converted, a.goals + b.goals}
}

func (a tally) within(least, most tally) bool {
	between := func(low, x, high int64) bool { return low <= x && x <= high }
	return between(least.visitors, a.visitors, most.visitors) && between(least.views, a.views, most.views) &&
		between(least.converted, a.converted, most.converted) && between(least.goals, a.goals, most.goals)
}

// load has events that are sent together until they are acknowledged, and their contribution to each variation.
type load struct {
	file, text   string // file: it is imported
	adds         [2]tally
	begun, acked time.Time // acked: zero until it is

	first, visitors int       // the numbers of those who have both of their events
	sending         int       // how many send it now
	frozen          bool      // nobody may
	leaving         [2]tally  // of those who are being forgotten
	left            []leaving // who were
}

// leaving has the contribution of forgotten visitors, and the time when their deletion was complete.
type leaving struct {
	took [2]tally
	gone time.Time
}

// loadOf returns the events of a number of visitors. One event is an hour in the future and is accepted; another is too
// far in the future and is rejected.
func loadOf(from string, first, visitors int) *load {
	l := load{first: first, visitors: visitors}
	var text strings.Builder
	for n := first; n < first+visitors; n++ {
		lines := visitorLines(from, n)
		text.WriteString(lines)
		if n%11 == 0 { // the same once more with other content, which is rejected and must not count
			text.WriteString(strings.NewReplacer(`"time":"2026-0`, `"time":"2025-0`, `.500000000000002`, `.75`, `"variationId":1`, `"variationId":0`).Replace(lines))
		}
		l.adds[n%2] = l.adds[n%2].plus(tallyOf(n))
	}
	for name, ahead := range map[string]time.Duration{"soon": time.Hour, "never": 48 * time.Hour} {
		fmt.Fprintf(&text, `{"eventId":"%[1]s-%[2]s%[3]d","time":"%[4]s","websiteId":1,"visitor":"%[1]s-%[2]s%[3]d","event":"view","campaignId":1,"variationId":0}`+"\n",
			name, from, first, time.Now().Add(ahead).UTC().Format(time.RFC3339))
	}
	l.adds[0] = l.adds[0].plus(tally{visitors: 1, views: 1})
	l.text = text.String()
	return &l
}

// tallyOf returns the contribution of a visitor to the variation.
func tallyOf(n int) tally {
	one := tally{visitors: 1, views: 1}
	if n%3 > 0 {
		one.converted, one.goals = 1, 1
	}
	return one
}

func (a tally) minus(b tally) tally {
	return tally{a.visitors - b.visitors, a.views - b.views, a.converted - b.converted, a.goals - b.goals}
}

// world has servers, clients that send events, clients that read reports, and the expected results.
type world struct {
	t             *testing.T
	store         string
	reads, writes string
	urls          [2]atomic.Pointer[string]
	client        http.Client
	cancel        context.CancelFunc
	people        sync.WaitGroup

	mutex   sync.Mutex
	next    int
	loads   []*load
	waiting []*load

	several                        bool        // processes store events, so that a report has those until dataThrough
	lags                           bool        // a replica that has just come back may be behind
	damaged                        atomic.Bool // the server said so
	stored, unstored, read, unread atomic.Int64
	firstStored, firstRead         chan struct{} // have an element after the first one
}

// String returns the number of requests and their outcomes.
func (w *world) String() string {
	return fmt.Sprintf("%d bodies were acknowledged and %d not, %d reports were right, and %d were not to be had",
		w.stored.Load(), w.unstored.Load(), w.read.Load(), w.unread.Load())
}

func newWorld(t *testing.T, store string) *world {
	t.Helper()
	w := &world{
		t: t, store: store,
		client: http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
	w.must("apply", "-f", "../testdata/thirty.catalog.yaml")
	w.reads, w.writes = w.must("token", "create"), w.must("token", "create", "--scope=ingest", "--website=1")
	return w
}

func (w *world) must(args ...string) string {
	w.t.Helper()
	out, _ := succeed(w.t, nil, append(args, w.store)...)
	return strings.TrimSpace(out)
}

// serve starts a server.
func (w *world) serve(i int, args ...string) *process {
	w.t.Helper()
	return w.serveFrom(i, w.store, args...)
}

// serveFrom starts a server with another address of the store.
func (w *world) serveFrom(i int, store string, args ...string) *process {
	w.t.Helper()
	p := start(w.t, append(append([]string{"serve"}, args...), store)...)
	w.urls[i].Store(&p.url)
	return p
}

// url returns the URL of a random server.
func (w *world) url(r *rand.Rand) string {
	if second := w.urls[1].Load(); second != nil && r.IntN(2) == 0 {
		return *second
	}
	return *w.urls[0].Load()
}

// begin starts the clients.
func (w *world) begin() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.cancel = cancel
	w.firstStored, w.firstRead = make(chan struct{}, 1), make(chan struct{}, 1)
	for i := range uint64(3) {
		w.people.Go(func() { w.send(ctx, rand.New(rand.NewPCG(i, 1))) })
		w.people.Go(func() { w.ask(ctx, rand.New(rand.NewPCG(i, 2))) })
	}
}

// end stops the clients after their current request, once a body was acknowledged and a report was right: in a short
// test, that may need the quiet after the troubles.
func (w *world) end() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for _, happened := range []chan struct{}{w.firstStored, w.firstRead} {
		select {
		case <-happened:
		case <-ctx.Done():
			w.t.Errorf("nothing happened: %s", w)
		}
	}
	w.cancel()
	w.people.Wait()
	w.client.CloseIdleConnections()
}

// take returns events that were not acknowledged, or new events. Sometimes it returns events that were acknowledged
// already.
func (w *world) take(r *rand.Rand) *load {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if n := len(w.waiting); n > 0 {
		l := w.waiting[n-1]
		w.waiting = w.waiting[:n-1]
		l.sending++
		return l
	}
	if again := len(w.loads); again > 0 && r.IntN(8) == 0 {
		if l := w.loads[r.IntN(again)]; l.file == "" && !l.acked.IsZero() && !l.frozen {
			l.sending++
			return l
		}
	}
	l := loadOf("sent", w.next, visitorsOfBody)
	w.next += visitorsOfBody
	l.begun = time.Now()
	l.sending++
	w.loads = append(w.loads, l)
	return l
}

func (w *world) send(ctx context.Context, r *rand.Rand) {
	for ; ctx.Err() == nil; wait(r, 10, 60) {
		l := w.take(r)
		stored := w.sendOne(w.url(r), l)
		w.mutex.Lock()
		l.sending--
		if !stored {
			w.waiting = append(w.waiting, l)
		}
		w.mutex.Unlock()
		if !stored {
			wait(r, 50, 300)
		}
	}
}

// sendOne reports whether the events were acknowledged.
func (w *world) sendOne(url string, l *load) bool {
	status, text, err := w.do(http.MethodPost, url+"/events", w.writes, "", l.text)
	switch {
	case err != nil || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout ||
		w.isDamaged(status, text):
		w.unstored.Add(1)
		return false
	case status != http.StatusOK:
		w.t.Errorf("events: %d %.500s", status, text)
		return false
	case !strings.Contains(text, `"rejected":1,`):
		w.t.Errorf("the event of the day after tomorrow: %.500s", text)
	}
	w.stored.Add(1)
	note(w.firstStored)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if l.acked.IsZero() {
		l.acked = time.Now()
	}
	return true
}

// patience is the time that a running server has to answer once its troubles are over, on a machine that runs other
// tests.
const patience = time.Minute

// mustSend retries for some time, so that a running server can reconnect to its store.
func (w *world) mustSend(url string, l *load) {
	w.t.Helper()
	for until := time.Now().Add(patience); !w.sendOne(url, l); {
		must.That(w.t, !time.Now().After(until), "a server that lives took no events")
	}
}

// report retries for some time, so that a running server can reconnect to its store.
func (w *world) report(url string) (got result.Report) {
	w.t.Helper()
	for until := time.Now().Add(patience); ; {
		status, text, err := w.do(http.MethodGet, url+"/v1/campaigns/1/results", w.reads, "no-cache", "")
		if err == nil && status == http.StatusOK && json.Unmarshal([]byte(text), &got) == nil && !got.Stale {
			return got
		}
		must.That(w.t, !time.Now().After(until), "%d %.500s, %v", status, text, err)
	}
}

func (w *world) do(method, url, token, cache, body string) (status int, text string, err error) {
	var headers []string
	if cache != "" {
		headers = []string{"Cache-Control", cache}
	}
	return send(w.t.Context(), &w.client, method, url, token, body, headers...)
}

// ask reads reports and compares them with the expected results.
func (w *world) ask(ctx context.Context, r *rand.Rand) {
	for ; ctx.Err() == nil; wait(r, 20, 120) {
		cache := []string{"", "no-cache"}[r.IntN(2)]
		path := "/v1/campaigns/1/results" +
			[]string{"", "?dimension=device", "?interval=day", "?filters%5Bdevice%5D%5B%5D="}[r.IntN(4)]
		asked := time.Now()
		status, text, err := w.do(http.MethodGet, w.url(r)+path, w.reads, cache, "")
		answered := time.Now()
		switch {
		case err != nil || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout ||
			w.isDamaged(status, text):
			w.unread.Add(1)
			continue
		case status != http.StatusOK:
			w.t.Errorf("%s: %d %.500s", path, status, text)
			continue
		}
		var got result.Report
		if !check.OK(w.t, json.Unmarshal([]byte(text), &got)) {
			continue
		}
		through := asked
		if w.several || got.Stale {
			through = time.Time{}
			if got.DataThrough != nil {
				through = *got.DataThrough
			}
		}
		if got.Stale {
			asked = time.Time{} // it is an answer of before
		}
		least, most := w.bounds(through, answered, asked)
		if w.lags {
			least = [2]tally{}
		}
		check.Equal(w.t, wrongWith(&got, least, most), "", "%s (%s), asked %v, answered %v, through %v, stale %v", path,
			cache, asked, answered, through, got.Stale)
		w.read.Add(1)
		note(w.firstRead)
	}
}

// note notes that something happened.
func note(happened chan struct{}) {
	select {
	case happened <- struct{}{}:
	default:
	}
}

// isDamaged reports whether the server must be restarted because the disk was full during a merge.
func (w *world) isDamaged(status int, text string) bool {
	if status == http.StatusInternalServerError && strings.Contains(text, `"code":"damaged"`) {
		w.damaged.Store(true)
		return true
	}
	return false
}

// bounds returns the minimum and the maximum of a report. Events acknowledged before acked must be in it. Events sent
// before begun may be in it, unless their visitor was forgotten before asked.
func (w *world) bounds(acked, begun, asked time.Time) (least, most [2]tally) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, l := range w.loads {
		for i, adds := range l.adds {
			if !l.acked.IsZero() && l.acked.Before(acked) {
				least[i] = least[i].plus(adds.minus(l.leaving[i]))
			}
			if !l.begun.Before(begun) {
				continue
			}
			most[i] = most[i].plus(adds)
			for _, left := range l.left {
				if !left.gone.Before(asked) {
					most[i] = most[i].plus(left.took[i])
				}
			}
		}
	}
	return least, most
}

// wrongWith describes impossible values in a report.
func wrongWith(got *result.Report, least, most [2]tally) string {
	var visitors int64
	for i, v := range got.Variations {
		own := tally{v.Visitors, v.Views, v.ConvertedVisitors, v.GoalsReached}
		if !own.within(least[i], most[i]) {
			return fmt.Sprintf("variation %d: %+v; want between %+v and %+v", i, own, least[i], most[i])
		}
		visitors += own.visitors
	}
	if len(got.Breakdown) > 0 {
		for _, slice := range got.Breakdown {
			visitors -= slice.Totals.Visitors
		}
		if visitors != 0 {
			return fmt.Sprintf("the breakdown has %d visitors less than the report", visitors)
		}
	}
	return ""
}

// file writes a file with the events of a number of visitors, which will be imported.
func (w *world) file(visitors int) *load {
	w.t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	l := loadOf("file"+strconv.Itoa(len(w.loads))+"-", 0, visitors)
	l.begun, l.file = time.Now(), filepath.Join(w.t.TempDir(), "events.ndjson")
	w.loads = append(w.loads, l)
	must.OK(w.t, os.WriteFile(l.file, []byte(l.text), 0o600))
	return l
}

// imported records that a file was imported.
func (w *world) imported(l *load) {
	w.t.Helper()
	code, out, complaints := other(w.t, nil, "import", l.file, w.store)
	check.That(w.t, code == exitRejected, "import: exit %d, %s%s; want the one event of the day after tomorrow rejected", code, out, complaints)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	l.acked = time.Now()
}

// killedImport starts to import a file and kills the importing process.
func (w *world) killedImport(r *rand.Rand) {
	w.t.Helper()
	importing := begin(w.t, nil, nil, "import", w.file(3000).file, w.store)
	wait(r, 20, 250)
	_ = importing.Process.Kill()
	_ = importing.Wait()
}

// sendRest sends all unacknowledged events again.
func (w *world) sendRest(p *process) {
	w.t.Helper()
	for _, l := range w.loads {
		switch {
		case l.file != "":
			w.imported(l)
		case l.acked.IsZero():
			w.mustSend(p.url, l)
		}
	}
}

// allCounted sends all unacknowledged events again, and compares a report with all events that were ever sent.
func (w *world) allCounted(p *process) {
	w.t.Helper()
	w.sendRest(p)
	w.must("facts", "--verify")
	now := time.Now()
	_, all := w.bounds(time.Time{}, now, now)
	got := w.report(p.url)
	check.Equal(w.t, wrongWith(&got, all, all), "", "in the end")
}
