package api_test

import (
	"net/http"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// TestAStoreThatIsAwayIsSaidSo stops the ClickHouse server of a store. Clients
// must get 503 with Retry-After.
func TestAStoreThatIsAwayIsSaidSo(t *testing.T) {
	server := schematest.Server(t)
	store := schematest.NewProxy(t, server.Native.Address(), nil)
	s := newServerOn(t, schematest.Reach(t, "clickhouse://admin:secret@"+store.Address()+"/"+server.Migrated(t)+"?dial_timeout=1s"))
	s.apply(twoAccounts)
	read := s.newToken(1, 0, catalogue.ScopeRead)
	const results = "/v1/campaigns/12/results?websiteId=1"
	if got, _, body := s.do(http.MethodGet, results, read); got.status != http.StatusOK {
		t.Fatalf("while the store is there: %d\n%s", got.status, body)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		got, body, text := s.do(http.MethodGet, results+"&compareMetric=valuePerVisitor", read)
		if got.status != http.StatusServiceUnavailable || got.Get("Retry-After") == "" || body["code"] != "down" {
			t.Errorf("status %d, Retry-After %q\n%s", got.status, got.Get("Retry-After"), text)
		}
	}
	if got, _, _ := s.do(http.MethodGet, "/readyz", ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d", got.status)
	}
}
