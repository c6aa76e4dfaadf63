package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestEventsAreHeldAgainstTheClock sends events with three times to a server that accepts events of the last day.
func TestEventsAreHeldAgainstTheClock(t *testing.T) {
	p, _, store := serving(t, "--max-event-age=24h", "--max-event-skew=1h")
	token := strings.TrimSpace(ended(t, exitOK, "token", "create", "--scope=ingest", "--website=1", store))
	const line = `{"eventId":"%v","time":%[1]d,"websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":0}` + "\n"
	var events strings.Builder
	for _, ago := range []time.Duration{48 * time.Hour, 0, -2 * time.Hour} {
		fmt.Fprintf(&events, line, time.Now().Add(-ago).UnixMilli())
	}
	_, answer, err := send(t.Context(), http.DefaultClient, http.MethodPost, p.url+"/events", token, events.String())
	must.OK(t, err)
	for _, part := range []string{`{"accepted":1,"rejected":2,`, "at most 24h0m0s before now", "at most 1h0m0s after now"} {
		check.Contains(t, answer, part)
	}
	p.interrupt()
}
