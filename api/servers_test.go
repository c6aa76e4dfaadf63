package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// eventually polls a condition until it is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	until := time.Now().Add(20 * time.Second)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for ; !holds(); <-look.C {
		must.That(t, !time.Now().After(until), "%s: not within 20 s", what)
	}
}

// TestTwoServersOnOneStore has two catalogues that are refreshed as by serve. Tokens take effect within a second.
func TestTwoServersOnOneStore(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	one, other := newServerOn(t, conn), newServerOn(t, conn)
	var following sync.WaitGroup
	t.Cleanup(following.Wait)
	for _, s := range []*server{one, other} {
		following.Go(func() { s.catalogue.RefreshPeriodically(t.Context(), 400*time.Millisecond) })
	}
	one.apply(twoSites)
	one.token = one.newToken(1, 0, catalogue.ScopeWrite)
	ask := func(path string) reply { return other.Get(path).Token(one.token).Send() }
	withinASecond := func(what string, want int) {
		t.Helper()
		since := time.Now()
		eventually(t, what, func() bool { return ask("/v1/websites").Status == want })
		took := time.Since(since)
		check.That(t, took <= time.Second, "%s: after %v", what, took)
	}
	withinASecond("a token made", http.StatusOK)
	for _, path := range []string{"/v1/campaigns/13", "/v1/widgets/7"} {
		for _, verb := range []string{"start", "stop"} {
			one.Post(path+"/"+verb, "").Send().RequireStatus(http.StatusOK)
			eventually(t, verb+" of "+path, func() bool {
				var resource struct{ Active bool }
				ask(path).JSON(&resource)
				return resource.Active == (verb == "start")
			})
		}
	}
	must.Get(one.catalogue.RevokeToken(t.Context(), 1, 1))(t)
	withinASecond("a token revoked", http.StatusUnauthorized)
}

// TestAStoreThatIsAway checks that results, starts and stops return 503 without a store, and that everything that is
// kept in memory is still returned.
func TestAStoreThatIsAway(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	s := newServerOn(t, conn)
	s.apply(twoSites)
	s.token = s.newToken(1, 0, catalogue.ScopeWrite)
	must.OK(t, conn.Close())
	for _, o := range operations {
		path, want := o.path+"?websiteId=1", http.StatusServiceUnavailable
		if !o.list {
			path = strings.Replace(o.path, "%d", fmt.Sprint(o.id), 1)
		}
		if o.method == http.MethodGet && !strings.HasSuffix(o.path, "/results") {
			path, want = strings.Replace(path, "/v1/websites?websiteId=1", "/v1/websites", 1), http.StatusOK
		}
		response := s.Request(o.method, path, "").Send()
		response.CheckStatus(want)
		if want == http.StatusServiceUnavailable {
			check.Equal(t, response.Code(), "down", "%v", response)
			check.That(t, response.Header.Get("Retry-After") != "", "%v", response)
		}
	}
	s.Get("/readyz").Token("").Send().CheckStatus(http.StatusServiceUnavailable)
	live := s.catalogue.Snapshot().AccountResources(1).Campaigns[12]
	check.That(t, live.Active, "a stop that was refused is in force")
}

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
	store := schematest.NewProxy(t, server.Native.ListenAddress(),
		func() (time.Duration, bool) { return 0, left.Add(-1) < 0 })
	for _, query := range []string{"", "&scorecard=true"} {
		answered, failed := false, 0
		for pieces := int64(0); !answered; pieces++ {
			left.Store(plenty)
			s := newServerOn(t,
				schematest.OpenConnection(t,
					"clickhouse://admin:secret@"+store.ListenAddress()+"/"+database+"?dial_timeout=1s"))
			left.Store(pieces)
			got := s.Get("/v1/campaigns/12/results?websiteId=1" + query).Token(read).Send()
			switch {
			case got.Status == http.StatusOK:
				answered = true
			case got.Status != http.StatusServiceUnavailable || got.Code() != "down":
				t.Errorf("after %d pieces: %v", pieces, got)
			default:
				failed++
			}
		}
		check.That(t, failed >= 4, "%s: %d failures, want one for each statement", query, failed)
	}
}
