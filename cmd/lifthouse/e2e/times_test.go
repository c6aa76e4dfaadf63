package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/must"
)

// TestEventsAreHeldAgainstTheClock sends events with three times to a server that accepts events of the last day.
func TestEventsAreHeldAgainstTheClock(t *testing.T) {
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	p := start(t, "serve", store, "--max-event-age=24h", "--max-event-skew=1h")
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		code, out, complaints := other(t, strings.NewReader(stdin), append(args, store)...)
		return code, out + complaints
	}
	if code, out := run("", "apply", "-f", "../testdata/thirty.catalog.yaml"); code != exitOK {
		t.Fatal(out)
	}
	_, token := run("", "token", "create", "--scope=ingest", "--website=1")
	line := func(id string, ago time.Duration) string {
		return fmt.Sprintf(`{"eventId":%q,"time":%d,"websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":0}`+"\n", id, time.Now().Add(-ago).UnixMilli())
	}
	const day = 24 * time.Hour
	events := func(id string) string { return line(id+"1", 2*day) + line(id+"2", 0) + line(id+"3", -2*time.Hour) }

	_, answer, err := send(t.Context(), http.DefaultClient, http.MethodPost, p.url+"/events", strings.TrimSpace(token), events("h"))
	must.OK(t, err)
	const old, early = "must be at most 24h0m0s before now", "must be at most 1h0m0s after now"
	if !strings.HasPrefix(answer, `{"accepted":1,"rejected":2,`) || !strings.Contains(answer, old) || !strings.Contains(answer, early) {
		t.Errorf("POST /events: %s", answer)
	}
	p.interrupt()
}
