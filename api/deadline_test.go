package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// stuckStore does not answer while it is stuck. Calls return when their context
// ends, or the test.
type stuckStore struct {
	driver.Conn
	stuck atomic.Bool
	ended context.Context
}

func (c *stuckStore) wait(ctx context.Context) error {
	if !c.stuck.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended.Done():
		return c.ended.Err()
	}
}

func (c *stuckStore) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.Conn.Query(ctx, query, args...)
}

func (c *stuckStore) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if err := c.wait(ctx); err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return c.Conn.QueryRow(ended, query, args...)
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

func (c *stuckStore) Select(ctx context.Context, to any, query string, args ...any) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	return c.Conn.Select(ctx, to, query, args...)
}

func (c *stuckStore) Exec(ctx context.Context, query string, args ...any) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	return c.Conn.Exec(ctx, query, args...)
}

func (c *stuckStore) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// TestNoRequestOutlivesItsTime checks that every operation that needs the store is answered within
// --query-timeout with 503 or 504 and Retry-After if the store hangs, also with
// many requests.
func TestNoRequestOutlivesItsTime(t *testing.T) {
	const timeout, late = 300 * time.Millisecond, 20 * time.Second // without its time, a request waits a minute for a slot, or for ever
	ended, end := context.WithCancel(context.Background())
	store := &stuckStore{Conn: schematest.OpenMigrated(t), ended: ended}
	s := newServerOn(t, store, func(o *api.Options) { o.Timeout, o.ResultsAge, o.StoreSlots, o.StoreWait = timeout, 0, 4, time.Minute })
	t.Cleanup(end)
	s.apply(twoAccounts)
	reads, writes, ingests := s.newToken(1, 0, catalogue.ScopeRead), s.newToken(1, 0, catalogue.ScopeWrite), s.newToken(1, 1, catalogue.ScopeIngest)
	store.stuck.Store(true)
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
		if response, _, text := s.do("GET", path, reads); response.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, response.status, text)
		}
	}
	_ = group.Wait()
	store.stuck.Store(false)
	eventually(t, "a store that answers again", func() bool {
		response, _, _ := s.do("GET", bannerResults, reads)
		return response.status == http.StatusOK
	})
}
