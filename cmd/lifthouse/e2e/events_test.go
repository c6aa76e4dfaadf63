package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"lifthouse/cmd/internal/arrivals"
	"lifthouse/schema/schematest/must"
)

// TestEventsShowsWhatArrivesThroughTheSocket reads a served store to which events arrive by import and over HTTP.
func TestEventsShowsWhatArrivesThroughTheSocket(t *testing.T) {
	t.Parallel()
	server, _, store := serving(t)
	ended(t, exitOK, "import", "../testdata/thirty.ndjson", store)
	_, token, _ := other(t, nil, "token", "create", "--scope", "ingest", "--website", "1", store)
	code, out, complaints := other(t, nil, "events", "--last", "3", store)
	if code != exitOK || strings.Count(out, "\n") != 3 || !strings.Contains(out, "website 1   ") {
		t.Errorf("events: exit %d\n%s%s", code, out, complaints)
	}

	line := `{"eventId":"new","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v\u001b[31m","event":"view","campaignId":1,"variationId":1,"device":"phone","country":"us"}`
	if !server.post(http.DefaultClient, strings.TrimSpace(token), line+"\n"+`{"visitor":"v\u001b[31m","password":"hunter2"}`) {
		t.Fatal("the events are not taken")
	}
	var accepted, rejected arrivals.Arrival
	for accepted.Event == nil || rejected.Rejected == nil { // a rejected line is stored within half a second
		_, out, _ = other(t, nil, "events", "--json", "--last", "1", store)
		for line := range strings.Lines(out) {
			var a arrivals.Arrival
			must.OK(t, json.Unmarshal([]byte(line), &a), "%v", line)
			if a.Rejected != nil {
				rejected = a
			} else {
				accepted = a
			}
		}
	}
	event, wrong := accepted.Event, rejected.Rejected
	if event == nil || event.CampaignID != 1 || *event.VariationID != 1 || event.Device != "phone" || event.Country != "US" {
		t.Errorf("the event is shown as %+v", event)
	}
	if wrong == nil || wrong.Channel != "http" || wrong.Line != 2 || !strings.Contains(wrong.Reason, "password: unknown field") || !strings.Contains(wrong.Text, `"visitor"`) || strings.Contains(wrong.Text, "hunter2") {
		t.Errorf("the rejected line is shown as %+v", wrong)
	}
	_, out, _ = other(t, nil, "events", "--rejects", store)
	if !strings.Contains(out, "website 1   REJECTED  http line 2: ") || strings.Contains(out, "\x1b") || strings.Contains(out, "view") {
		t.Errorf("events --rejects: %q", out)
	}
	server.interrupt()
}
