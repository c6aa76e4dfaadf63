package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// statuses lists the campaigns, or the widgets, with their statuses until all are computed.
func (s *server) statuses(kind string) []any {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		response, _, text := s.do("GET", "/v1/"+kind+"?websiteId=1&include=status", s.token)
		must.Equal(s.t, response.status, http.StatusOK, "%v", text)
		list := listOf(s.t, text)
		computed := true
		for _, item := range list {
			switch status := item.(map[string]any)["status"].(type) {
			case map[string]any:
				computed = computed && status["computedAt"] != nil
			case []any:
				for _, of := range status {
					computed = computed && of.(map[string]any)["computedAt"] != nil
				}
			}
		}
		if computed {
			return list
		}
		must.That(s.t, !time.Now().After(deadline), "the statuses were not computed: %s", text)
	}
}

func listOf(tb testing.TB, text string) (list []any) {
	tb.Helper()
	must.OK(tb, json.Unmarshal([]byte(text), &list), "%v", text)
	return list
}

// TestListsHaveStatuses compares the statuses in the lists with the reports. Reports of some visitors, which share what
// is computed once per version, come first.
func TestListsHaveStatuses(t *testing.T) {
	s, _ := newTwoSites(t)
	first, _, text := s.do("GET", "/v1/campaigns?websiteId=1&include=status", s.token)
	must.Equal(t, first.status, http.StatusOK, "%v", text)
	for _, item := range listOf(s.t, text) {
		status := item.(map[string]any)["status"].(map[string]any)
		check.That(t, status["reason"] == "NOT_COMPUTED" && status["decision"] == nil, "before it is computed: %v", status)
		s.do("GET", fmt.Sprintf("/v1/campaigns/%v/results?scorecard=true&filters[device]=mobile", item.(map[string]any)["id"]), s.token)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.listed.FollowQueue(ctx)
		close(ended)
	}()
	for _, item := range s.statuses("campaigns") {
		campaign := item.(map[string]any)
		_, report, _ := s.do("GET", "/v1/campaigns/"+fmt.Sprint(campaign["id"])+"/results?scorecard=true", s.token)
		status := campaign["status"].(map[string]any)
		decision, _ := report["decision"].(map[string]any)
		if got, _ := status["decision"].(map[string]any); got["status"] != decision["status"] || got["text"] != decision["text"] {
			t.Errorf("campaign %v: %v, want %v", campaign["id"], got, decision)
		}
		if want := report["totals"].(map[string]any)["visitors"]; decision != nil && status["visitors"] != want {
			t.Errorf("campaign %v: %v visitors, want %v", campaign["id"], status["visitors"], want)
		}
	}
	widgets := s.statuses("widgets")
	experiments := widgets[0].(map[string]any)["status"].([]any)
	check.That(t, len(experiments) != 0 && experiments[0].(map[string]any)["decision"] != nil, "widgets %v", widgets)
	_, _, plain := s.do("GET", "/v1/campaigns?websiteId=1", s.token)
	_, has := listOf(t, plain)[0].(map[string]any)["status"]
	check.That(t, !has, "a list without include=status has a status")
	stop()
	<-ended
}
