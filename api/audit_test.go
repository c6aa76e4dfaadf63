package api_test

import (
	"slices"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

func TestStartAndStopAreInTheAuditLog(t *testing.T) {
	s, _ := newTwoSites(t)
	for _, path := range []string{"/v1/campaigns/13/start", "/v1/campaigns/13/stop", "/v1/campaigns/13/stop", "/v1/widgets/7/start"} {
		if response, _, text := s.do("POST", path, s.token); response.status != 200 {
			t.Fatalf("%s = %d %s", path, response.status, text)
		}
	}
	changes := must.Get(s.catalogue.ReadAuditLog(t.Context(), 1, time.Unix(0, 0), 100))(t)
	byToken := slices.DeleteFunc(changes, func(c catalogue.AuditEntry) bool { return c.By != "token 1" })
	want := []string{"widget active", "campaign inactive", "campaign active"} // stopping what is stopped changes nothing
	if len(byToken) != len(want) {
		t.Fatalf("%d changes by the token, want %d: %+v", len(byToken), len(want), changes)
	}
	for i := range byToken {
		if got := byToken[i].Kind + " " + byToken[i].Change; got != want[i] {
			t.Errorf("change %d is %q, want %q", i, got, want[i])
		}
	}
	if none, err := s.catalogue.ReadAuditLog(t.Context(), 99, time.Unix(0, 0), 100); err != nil || len(none) != 0 {
		t.Errorf("another account's: %v, %v", none, err)
	}
}
