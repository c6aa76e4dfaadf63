package api_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
)

// TestEveryStatementMayLoseItsStore cuts the connections of a report after each number of pieces of data. A statement
// that fails for want of the store gives 503, and never says that it is a bug.
func TestEveryStatementMayLoseItsStore(t *testing.T) {
	server := schematest.SharedServer(t)
	database := server.CreateMigrated(t)
	direct := newServerOn(t, schematest.OpenConnection(t, server.DatabaseAddress(database)))
	direct.apply(twoAccounts)
	read := direct.newToken(1, 0, catalogue.ScopeRead)
	const plenty = 1 << 30
	var left atomic.Int64
	store := schematest.NewProxy(t, server.Native.ListenAddress(), func() (time.Duration, bool) { return 0, left.Add(-1) < 0 })
	for _, query := range []string{"", "&scorecard=true"} {
		answered, failed := false, 0
		for pieces := int64(0); !answered; pieces++ {
			left.Store(plenty)
			s := newServerOn(t, schematest.OpenConnection(t, "clickhouse://admin:secret@"+store.ListenAddress()+"/"+database+"?dial_timeout=1s"))
			left.Store(pieces)
			got, body, text := s.do(http.MethodGet, "/v1/campaigns/12/results?websiteId=1"+query, read)
			switch {
			case got.status == http.StatusOK:
				answered = true
			case got.status != http.StatusServiceUnavailable || body["code"] != "down":
				t.Errorf("%s after %d pieces: status %d\n%s", query, pieces, got.status, text)
			default:
				failed++
			}
		}
		check.That(t, failed >= 4, "%s: %d failures, want one for each statement", query, failed)
	}
}
