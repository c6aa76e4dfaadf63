package api_test

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestLostEventsAreSaidWherePeopleLook loses the events of a campaign after its reports are kept. The next answers warn,
// and keep what they had counted.
func TestLostEventsAreSaidWherePeopleLook(t *testing.T) {
	s := newServer(t)
	s.apply(judgedCampaigns)
	s.plant()
	paths := []string{
		"/v1/campaigns/22/results", "/v1/campaigns/22/results?scorecard=true", "/v1/results?field=report",
	}
	const code = `"code":"EVENTS_LOST"`
	before := map[string]reply{}
	for _, path := range paths {
		before[path] = s.Get(path).Send()
		before[path].RequireStatus(http.StatusOK)
		check.That(t, !strings.Contains(before[path].Text, code), "%s warns of a loss before there is one", path)
	}
	check.Equal(t, s.Get("/readyz").Token("").Send().Text, `{"status":"ok"}`+"\n", "/readyz before the loss")

	must.OK(t, s.conn.Exec(t.Context(), "ALTER TABLE events DELETE WHERE subject_id = 22 AND visitor_id % 10 = 0 "+
		"SETTINGS mutations_sync = 1"))
	must.Get(s.facts[0].ScrubFacts(t.Context(), 0, math.MaxUint64))(t)
	for _, path := range paths {
		now := s.Get(path).Header("If-None-Match", before[path].Header.Get("ETag")).Send()
		now.RequireStatus(http.StatusOK)
		check.Contains(t, now.Text, code, "%s after the loss", path)
		check.Contains(t, now.Text, "restore a backup", "%s after the loss", path)
	}
	check.Contains(t, s.Get("/readyz").Token("").Send().Text, "stored events of", "/readyz after the loss")
}
