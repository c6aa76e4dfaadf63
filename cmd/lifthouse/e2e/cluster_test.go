package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/engine/source"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestAClusterAnswersAsAnEmbeddedStore compares reports of a cluster with two shards of two replicas with those of an
// embedded store, byte by byte.
func TestAClusterAnswersAsAnEmbeddedStore(t *testing.T) {
	cluster := schematest.NewCluster(t)
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	answers := func(conn driver.Conn, address schema.Address) map[string]string {
		store := must.Get(app.NewStore(t.Context(), conn, address, app.Options{Limits: source.DefaultLimits}))(t)
		defer func() { _ = store.CloseReplicas() }()
		must.Get(store.Catalogue.ApplyFile(t.Context(), demo.ShopCatalogue(start), false))(t)
		must.OK(t, store.Writer.WriteEvents(t.Context(), demo.ShopEvents(start)))
		for _, shard := range store.Facts {
			must.Get(shard.RefreshFacts(t.Context()))(t)
		}
		token, _, err := store.Catalogue.CreateToken(t.Context(),
			catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
		must.OK(t, err)
		server := httptest.NewServer(store.API(t.Context(), api.DefaultOptions))
		defer server.Close()
		all := map[string]string{}
		for _, path := range reportPaths() {
			for _, form := range []string{"application/json", "text/csv", "image/svg+xml"} {
				all[form+" "+path] = raw(t, server.URL+path, token, form)
			}
		}
		return all
	}
	address := must.Get(schema.ParseAddress(cluster.Address, os.Getenv))(t)
	want, got := answers(schematest.OpenMigrated(t), schema.Address{}), answers(connectTo(t, cluster.Address), address)
	for request, text := range want {
		check.Equal(t, got[request], text, "%v", request)
	}
	t.Logf("%d answers compared", len(want))
}

// connectTo connects to a store and brings its tables up to date.
func connectTo(t *testing.T, address string) driver.Conn {
	t.Helper()
	conn := schematest.OpenConnection(t, address)
	must.Get(schema.Migrate(t.Context(), conn))(t)
	return conn
}

// newDatabase creates a database on all servers of a cluster. It returns its address and a connection to the database
// default.
func newDatabase(t *testing.T, cluster *schematest.Cluster, name string) (address string, admin driver.Conn) {
	t.Helper()
	admin = schematest.OpenConnection(t, strings.Replace(cluster.Address, "/lifthouse?", "/default?", 1))
	must.OK(t, admin.Exec(t.Context(), "CREATE DATABASE "+name+" ON CLUSTER lift"))
	return strings.Replace(cluster.Address, "/lifthouse?", "/"+name+"?", 1), admin
}

// reportPaths returns reports of every kind, and the lists with counters.
func reportPaths() []string {
	paths := []string{"/v1/campaigns", "/v1/widgets?include=experiments"}
	for _, of := range []string{
		"campaigns/12", "campaigns/13", "campaigns/14", "campaigns/18", "widgets/7",
		"widgets/7/experiments/2",
	} {
		queries := []string{
			"", "interval=day", "filters[zScore]=1.5", "filters[dateFrom]=2026-03-05&filters[dateTo]=2026-03-20",
			"filters[dateFrom]=1971-01-01",
			"filters[device][]=mobile&filters[visitorType]=new", "filters[utmSource]=*&filters[goalValue]=20",
			"interval=week&filters[zScore]=2&filters[country][]=US",
			"conversionWindow=1h", "conversionWindow=1h..3d&interval=day&filters[dateTo]=2026-03-20",
		}
		if of != "widgets/7" {
			queries = append(queries, "curve=exposureDay&curveDays=5", "curve=exposureDay&filters[device][]=mobile&compareMetric=goalsPerVisitor&scorecard=true")
		}
		if !strings.HasPrefix(of, "widgets/7") {
			queries = append(queries, "dimension=device", "dimension=country&filters[zScore]=2", "compareMetric=valuePerVisitor&dimension=browser&interval=day")
		}
		for _, query := range queries {
			paths = append(paths, "/v1/"+of+"/results?"+query)
		}
	}
	return paths
}

// madeAt matches generatedAt and dataThrough, in JSON, CSV and SVG, and request ids. Times of the experiments are on
// other days.
var madeAt = func() *regexp.Regexp {
	today := time.Now().UTC()
	days := today.Format(time.DateOnly) + "|" +
		today.AddDate(0, 0, 1).Format(time.DateOnly) // the test may run past midnight
	return regexp.MustCompile(`(?:` + days + `)[T ][\d:.]+Z?|"requestId":"\w+"`)
}()

// raw returns a response without its times and its request id.
func raw(t *testing.T, url, token, form string) string {
	t.Helper()
	status, text := get(t, url, token, "Accept", form)
	check.That(t, status < http.StatusInternalServerError, "%s: %d %.500s", url, status, text)
	return fmt.Sprint(status) + "\n" + madeAt.ReplaceAllString(text, "")
}

// TestAClusterInChaos sends events to two servers on a cluster and reads reports, while the servers are killed, stopped
// and paused, and replicas are away for a while. Both servers refresh the facts of all shards. Once the replicas have
// caught up, all acknowledged events are counted once, and the facts are those of the events. The servers have the
// grants of deploy/users.cluster.sql.
func TestAClusterInChaos(t *testing.T) {
	cluster := schematest.NewCluster(t)
	succeed(t, nil, "migrate", "--store="+cluster.UserAddress(schematest.Migrating))
	address := cluster.UserAddress(schematest.Serving)
	w := newWorld(t, "--store="+address)
	w.several, w.lags = true, true
	serve := func(i int) *process {
		return w.serve(i, "--rate-limit=0", "--log-level=warn", "--query-timeout=20s")
	}
	servers := []*process{serve(0), serve(1)}
	w.imported(w.file(cellsByDayFrom))
	w.begin()
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 27)) //nolint:gosec // no secret
	troubles := map[string]int{}
	for until := time.Now().Add(chaosTime / 2); time.Now().Before(until); wait(r, 200, 1500) {
		if !disturb(r, servers, serve, troubles) {
			troubles["replica away"]++
			shard, replica := 1+r.IntN(2), 1+r.IntN(2)
			cluster.KillReplica(shard, replica)
			wait(r, 1000, 5000)
			cluster.RestartReplica(shard, replica)
			wait(r, 3000, 6000)
		}
	}
	w.end()
	w.sendRest(servers[0])
	schematest.SyncReplicas(t, address)
	for _, p := range servers {
		w.allCounted(p)
		p.interrupt()
	}
	w.must("check", "--deep")
	t.Logf("seed %d; %v; %s", seed, troubles, w)
}

// TestTablesChangeWhileAReplicaIsAway checks that tables cannot be created while a server is away, and can be changed.
// The returning server must then answer for its shard alone.
func TestTablesChangeWhileAReplicaIsAway(t *testing.T) {
	cluster := schematest.NewCluster(t)
	address, admin := newDatabase(t, cluster, "away")
	do := onStore(t, "--store="+address)
	cluster.KillReplica(2, 2)
	code, _, complaints := other(t, nil, "migrate", "--store="+address)
	check.Equal(t, code, exitFailed, "tables are made while a server is away: exit %d, %s", code, complaints)
	check.Contains(t, complaints, "start them, and migrate again",
		"tables are made while a server is away: exit %d, %s", code, complaints)
	cluster.RestartReplica(2, 2)
	waitFor(t, admin, "SELECT count() FROM clusterAllReplicas('lift', system.databases) WHERE name = 'away'")
	do("migrate")
	cluster.KillReplica(2, 2)
	conn := connectTo(t, address)
	must.OK(t, conn.Exec(t.Context(), "ALTER TABLE events_local ON CLUSTER lift ADD COLUMN IF NOT EXISTS later String"))
	do("apply", "-f", "../testdata/thirty.catalog.yaml")
	do("import", "../testdata/thirty.ndjson")
	do("facts")
	do("forget", "--visitor=nobody", "--visitor=c1", "--visitor=c2", "--visitor=c3", "--yes")
	want := timeless(t, do("report", "campaign", "1", "--json"))
	alone := "--store=embedded:" + filepath.Join(t.TempDir(), "alone")
	for _, command := range [][]string{
		{"apply", "-f", "../testdata/thirty.catalog.yaml"},
		{"import", "../testdata/thirty.ndjson"},
		{"forget", "--visitor=c1", "--visitor=c2", "--visitor=c3", "--yes"},
	} {
		succeed(t, nil, append(command, alone)...)
	}
	if embedded, _ := succeed(t, nil, "report", "campaign", "1", "--json", alone); timeless(t, embedded) != want {
		t.Errorf("without three visitors:\n%s\nwant that of an embedded store\n%s", want, timeless(t, embedded))
	}
	cluster.RestartReplica(2, 2)
	waitFor(t, admin, "SELECT count() FROM clusterAllReplicas('lift', system.columns) WHERE database = 'away' AND table = 'events_local' AND name = 'later'")
	schematest.SyncReplicas(t, address)
	cluster.KillReplica(2, 1)
	check.Equal(t, timeless(t, do("report", "campaign", "1", "--json")), want, "the server that was away")
	cluster.RestartReplica(2, 1)
	waitFor(t, admin, "SELECT count() FROM clusterAllReplicas('lift', system.one)")
	do("check", "--deep")
}

// waitFor waits until a query counts all four servers.
func waitFor(t *testing.T, conn driver.Conn, query string) {
	t.Helper()
	var servers uint64
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = conn.QueryRow(t.Context(), query).Scan(&servers); err == nil && servers == 4 {
			return
		}
	}
	t.Fatalf("%s: %d servers, %v", query, servers, err)
}
