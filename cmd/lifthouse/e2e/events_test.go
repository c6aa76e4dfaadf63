package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"lifthouse/cmd/internal/arrivals"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestEventsShowsWhatArrivesThroughTheSocket follows a served store while events arrive by import and over HTTP.
func TestEventsShowsWhatArrivesThroughTheSocket(t *testing.T) {
	t.Parallel()
	server, _, store := serving(t)
	ended(t, exitOK, "import", "../testdata/thirty.ndjson", store)
	_, token, _ := other(t, nil, "token", "create", "--scope", "ingest", "--website", "1", store)
	code, out, complaints := other(t, nil, "events", "--last", "3", store)
	check.That(t, code == exitOK && strings.Count(out, "\n") == 3 && strings.Contains(out, "website 1   "), "events: exit %d\n%s%s", code, out, complaints)

	read, write := pipe(t)
	follow := begin(t, nil, write, "events", "--follow", "--json", "--last", "1", store)
	_ = write.Close()
	lines := bufio.NewScanner(read)
	next := func() (a arrivals.Arrival) {
		if !lines.Scan() {
			t.Fatalf("it ended: %v", lines.Err())
		}
		must.OK(t, json.Unmarshal(lines.Bytes(), &a), "%v", lines.Text())
		return a
	}
	if a := next(); a.Event == nil || a.WebsiteID != 1 {
		t.Errorf("first %+v, want the last event", a)
	}
	line := `{"eventId":"new","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v\u001b[31m","event":"view","campaignId":1,"variationId":1,"device":"phone","country":"us"}`
	must.That(t, server.post(http.DefaultClient, strings.TrimSpace(token), line+"\n"+`{"visitor":"v\u001b[31m","password":"hunter2"}`), "the events are not taken")
	accepted, rejected := next(), next()
	if accepted.Event == nil {
		accepted, rejected = rejected, accepted
	}
	event, wrong := accepted.Event, rejected.Rejected
	check.That(t, event != nil && event.CampaignID == 1 && *event.VariationID == 1 && event.Device == "phone" && event.Country == "US", "the event is shown as %+v", event)
	check.That(t, wrong != nil && wrong.Channel == "http" && wrong.Line == 2 && strings.Contains(wrong.Reason, "password: unknown field") && strings.Contains(wrong.Text, `"visitor"`) && !strings.Contains(wrong.Text, "hunter2"),
		"the rejected line is shown as %+v", wrong)
	must.OK(t, follow.Process.Signal(os.Interrupt))
	must.OK(t, follow.Wait(), "interrupted")

	_, out, _ = other(t, nil, "events", "--rejects", store)
	check.That(t, strings.Contains(out, "website 1   REJECTED  http line 2: ") && !strings.Contains(out, "\x1b") && !strings.Contains(out, "view"), "events --rejects: %q", out)
	server.interrupt()
	if code, _, complaints := other(t, nil, "events", "--follow", store); code != exitFailed ||
		!strings.Contains(complaints, "this store is not served") {
		t.Errorf("events --follow, not served: exit %d, %s", code, complaints)
	}
}
