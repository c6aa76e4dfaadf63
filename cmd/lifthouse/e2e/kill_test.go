package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// visitorLines returns the events of a visitor: a view, and for two of three visitors an unattributed goal, sometimes
// in another month, with a value that has the error of a binary float. The goal has revisions, of which the last one is
// not the last one to arrive, and one names the campaign. Some visitors have another goal, which is cancelled.
func visitorLines(from string, n int) string {
	lines := fmt.Sprintf(`{"eventId":"%[1]s-view%[2]d","time":"2026-05-%02[3]dT10:00:00Z","websiteId":1,"visitor":"%[1]s%[2]d","event":"view","campaignId":1,"variationId":%[4]d}`+"\n", from, n, 1+n%28, n%2)
	if n%3 > 0 {
		goal := fmt.Sprintf(`{"eventId":"%[1]s-goal%[2]d","time":"2026-0%[3]d-28T11:00:00Z","websiteId":1,"visitor":"%[1]s%[2]d","event":"goal","goalId":1,`, from, n, 5+n%2)
		lines += fmt.Sprintf(`%s"campaignId":1,"variationId":0,"value":900}`+"\n", goal)
		lines += fmt.Sprintf(`%s"value":%d.500000000000002,"revision":1777636800000}`+"\n", goal, n%7)
		lines += fmt.Sprintf(`%s"value":800,"revision":%d}`+"\n", goal, n%9)
	}
	if n%4 == 0 {
		order := fmt.Sprintf(`{"eventId":"%[1]s-order%[2]d","time":"2026-07-01T11:00:00Z","websiteId":1,"visitor":"%[1]s%[2]d","event":"goal","goalId":1,"value":70,`, from, n)
		lines += order + `"revision":2,"cancelled":true}` + "\n" + order + `"campaignId":1,"variationId":1}` + "\n"
	}
	return lines
}

// compareAll compares a report with the events of the given numbers of visitors over HTTP and from the file.
func compareAll(t *testing.T, got result.Report, counts ...int) {
	t.Helper()
	var want [2]result.Counts
	var value [2]float64
	for _, visitors := range counts {
		for n := range visitors {
			of := &want[n%2]
			of.Visitors++
			of.Views++
			if n%3 > 0 {
				of.ConvertedVisitors++
				of.GoalsReached++
				value[n%2] += float64(n%7) + 0.5
			}
		}
	}
	for i, v := range got.Variations {
		own := v.Counts
		if math.Abs(float64(own.Visitors)*(*v.Metrics.ValuePerVisitor.Value)-value[i]) > 1e-9*value[i] ||
			own.Visitors != want[i].Visitors || own.Views != want[i].Views ||
			own.ConvertedVisitors != want[i].ConvertedVisitors || own.GoalsReached != want[i].GoalsReached {
			t.Errorf("variation %d: %+v; want %+v, value %v", i, own, want[i], value[i])
		}
	}
}

// outbox has the bodies to send and the acknowledged ones.
type outbox struct {
	mutex         sync.Mutex
	next          int
	waiting, done []string
	left          int           // acknowledgements before enough is closed
	enough        chan struct{} // may be nil
}

// acknowledgements returns a channel that is closed after a number of bodies more were acknowledged.
func (o *outbox) acknowledgements(number int) <-chan struct{} {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.left, o.enough = number, make(chan struct{})
	return o.enough
}

const visitorsOfBody = 20

// take returns a body that was not acknowledged, or a new one.
func (o *outbox) take() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if n := len(o.waiting); n > 0 {
		body := o.waiting[n-1]
		o.waiting = o.waiting[:n-1]
		return body
	}
	var body strings.Builder
	for range visitorsOfBody {
		body.WriteString(visitorLines("sent", o.next))
		o.next++
	}
	return body.String()
}

func (o *outbox) give(body string, acknowledged bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if acknowledged {
		o.done = append(o.done, body)
		if o.left--; o.left == 0 {
			close(o.enough)
		}
	} else {
		o.waiting = append(o.waiting, body)
	}
}

// post sends a body and reports whether it was acknowledged.
func (p *process) post(client *http.Client, token, body string) bool {
	status, text, err := send(p.t.Context(), client, http.MethodPost, p.url+"/events", token, body)
	if err != nil {
		return false // it was killed
	}
	check.Equal(p.t, status, http.StatusOK, "%.300s", text)
	return status == http.StatusOK
}

// sendAll sends the bodies of the outbox with several clients until the process is dead.
func (p *process) sendAll(o *outbox, token string, senders *sync.WaitGroup) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	for range 4 {
		senders.Go(func() {
			for {
				body := o.take()
				acknowledged := p.post(client, token, body)
				if o.give(body, acknowledged); !acknowledged {
					return
				}
			}
		})
	}
}

// askAll asks for reports until the server is killed. So an embedded store refreshes its facts all the time.
func (p *process) askAll(token string, senders *sync.WaitGroup) {
	senders.Go(func() {
		for {
			if _, _, err := send(p.t.Context(), http.DefaultClient, http.MethodGet, p.url+"/v1/campaigns/1/results",
				token, ""); err != nil {
				return
			}
		}
	})
}

// TestAKilledServerLosesAndDoublesNothing kills a server with SIGKILL while events arrive over HTTP and from a file.
// Unacknowledged bodies and half of the acknowledged ones are sent again. In the end each event is counted once, and
// the facts are those of the events.
func TestAKilledServerLosesAndDoublesNothing(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	loseAndDoubleNothing(t, "--store=embedded:"+filepath.Join(t.TempDir(), "data"), 30)
}

// TestAKilledServerOfAClickHouseServerLosesAndDoublesNothing does the same on a ClickHouse server, in the long tier. A
// run with 30 kills takes four minutes.
func TestAKilledServerOfAClickHouseServerLosesAndDoublesNothing(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	server := schematest.SharedServer(t)
	loseAndDoubleNothing(t, "--store="+server.DatabaseAddress(server.CreateDatabase(t)), 8)
}

func loseAndDoubleNothing(t *testing.T, store string, kills int) {
	t.Helper()
	do := onStore(t, store)
	do("apply", "-f", "../testdata/thirty.catalog.yaml")
	reads, writes := do("token", "create"), do("token", "create", "--scope=ingest", "--website=1")
	const fromFile = 100_000
	var lines strings.Builder
	for n := range fromFile {
		lines.WriteString(visitorLines("file", n))
	}
	file := must.WriteFile(t, "events.ndjson", lines.String())

	r := rand.New(rand.NewPCG(30, 9))
	var o outbox
	for range kills {
		p := start(t, "serve", store)
		var senders sync.WaitGroup
		more := o.acknowledgements(1 + r.IntN(60))
		p.sendAll(&o, writes, &senders)
		p.askAll(reads, &senders)
		importing := begin(t, nil, nil, "import", file, store)
		<-more
		p.kill()
		senders.Wait()
		_ = importing.Wait()
		for _, body := range o.done {
			if r.IntN(2) == 0 {
				o.waiting = append(o.waiting, body)
			}
		}
		o.done = nil
	}
	p := start(t, "serve", store)
	for _, body := range o.waiting {
		must.That(t, p.post(http.DefaultClient, writes, body), "a server that lives took no events")
	}
	do("import", file)
	do("facts", "--verify")
	compareAll(t, p.results(reads), o.next, fromFile)
	p.interrupt()
	do("check", "--deep")
}

// TestAKilledImportIsRepeated kills a process that imports into an embedded store, and imports again. Counters and
// reports have each event once.
func TestAKilledImportIsRepeated(t *testing.T) {
	tier.OnlyLong(t)
	const visitors = 300_000
	dir := filepath.Join(t.TempDir(), "data")
	store := "--store=embedded:" + dir
	events, declared := writeHistory(t, t.TempDir(), visitors)
	succeed(t, nil, "apply", "-f", declared, store)
	out, _ := succeed(t, nil, "token", "create", store)
	importing := begin(t, nil, nil, "import", events, store)
	for len(partsOf(t, dir, "events")) == 0 {
	}
	must.OK(t, importing.Process.Kill())
	err := importing.Wait()
	must.That(t, err != nil, "it was not killed")
	succeed(t, nil, "import", events, store)
	p := start(t, "serve", store)
	totals := p.results(strings.TrimSpace(out)).Totals
	var campaign struct{ Views int64 }
	p.get("/v1/campaigns/1", strings.TrimSpace(out), &campaign)
	check.Equal(t, campaign.Views, visitors, "%d views are counted, and the report has %+v; want %d", campaign.Views,
		totals, visitors)
	check.Equal(t, totals.Visitors, visitors, "%d views are counted, and the report has %+v; want %d", campaign.Views,
		totals, visitors)
	check.Equal(t, totals.Views, visitors, "%d views are counted, and the report has %+v; want %d", campaign.Views,
		totals, visitors)
	p.interrupt()
	succeed(t, nil, "check", "--deep", store)
}
