package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// TestNoRequestOutlivesItsTime checks that every operation that needs the store is answered within
// --query-timeout with 503 or 504 and Retry-After if the store hangs, also with
// many requests.
func TestNoRequestOutlivesItsTime(t *testing.T) {
	const timeout, late = 300 * time.Millisecond, 20 * time.Second // without its time, a request waits a minute for a slot, or for ever
	ended, end := context.WithCancel(context.Background())
	var stuck atomic.Bool // the store does not answer
	store := schematest.HookedConn{Conn: schematest.OpenMigrated(t), Before: func(ctx context.Context, _ string) error {
		if !stuck.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended.Done():
			return ended.Err()
		}
	}}
	s := newServerOn(t, store, func(o *api.Options) { o.Timeout, o.ResultsAge, o.StoreSlots, o.StoreWait = timeout, 0, 4, time.Minute })
	t.Cleanup(end)
	s.apply(twoAccounts)
	reads, writes, ingests := s.newToken(1, 0, catalogue.ScopeRead), s.newToken(1, 0, catalogue.ScopeWrite), s.newToken(1, 1, catalogue.ScopeIngest)
	stuck.Store(true)
	const event = `{"eventId":"e1","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1}`
	var group errgroup.Group
	for _, request := range []struct{ method, path, token, body, header string }{
		{"GET", bannerResults, reads, "", ""},
		{"GET", bannerResults, reads, "", "Cache-Control: no-cache"},
		{"GET", bannerResults + "?filters%5BzScore%5D=2&interval=day", reads, "", "Cache-Control: no-cache"},
		{"GET", bannerResults, reads, "", "Accept: text/csv"},
		{"GET", "/v1/campaigns/12/dimensions/device", reads, "", ""},
		{"POST", "/v1/campaigns/12/stop", writes, "", ""},
		{"POST", "/v1/campaigns/12/start", writes, "", ""},
		{"POST", "/events", ingests, event, ""},
		{"POST", "/events", ingests, event, "Idempotency-Key: k"},
	} {
		for range 6 {
			group.Go(func() error {
				name, value, _ := strings.Cut(request.header, ": ")
				headers := []string{"Authorization", "Bearer " + request.token}
				if name != "" {
					headers = append(headers, name, value)
				}
				began := time.Now()
				response, text := s.send(request.method, request.path, strings.NewReader(request.body), headers...)
				took := time.Since(began)
				if response.status != http.StatusServiceUnavailable && response.status != http.StatusGatewayTimeout || response.Get("Retry-After") == "" || took > late {
					t.Errorf("%s %s (%s): %d after %v, Retry-After %q: %.300s", request.method, request.path, request.header, response.status, took, response.Get("Retry-After"), text)
				}
				return nil
			})
		}
	}
	for _, path := range []string{"/v1/campaigns", "/v1/campaigns/12"} { // are kept in memory
		s.wants(http.StatusOK, "GET", path, reads)
	}
	_ = group.Wait()
	stuck.Store(false)
	eventually(t, "a store that answers again", func() bool {
		response, _, _ := s.do("GET", bannerResults, reads)
		return response.status == http.StatusOK
	})
}
