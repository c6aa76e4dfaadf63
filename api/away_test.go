package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// TestAStoreThatIsAwayIsSaidSo over the whole way, from a server of the store
// that ends to the client who is told when to ask again.
func TestAStoreThatIsAwayIsSaidSo(t *testing.T) {
	var database string
	if err := schematest.Open(t).QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	store := httptest.NewServer(schematest.Server(t))
	defer store.Close()
	home, err := schema.ParseHome(store.URL+"/"+database+"?dial_timeout=1s", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := schema.Connect(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := newServerOn(t, conn)
	s.apply(twoAccounts)
	read := s.newToken(1, 0, catalogue.ScopeRead)
	const results = "/v1/campaigns/12/results?websiteId=1"
	if got, _, body := s.do(http.MethodGet, results, read); got.status != http.StatusOK {
		t.Fatalf("while the store is there: %d\n%s", got.status, body)
	}
	store.CloseClientConnections()
	store.Close()
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
