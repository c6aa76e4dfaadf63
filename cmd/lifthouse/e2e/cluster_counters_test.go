package e2e

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// countOnAllShards checks that the totals of subjects are those of all shards: of new tables, and
// of tables of earlier releases, which had another sharding key. The oracle is a count of the
// events.
func countOnAllShards(t *testing.T, cluster *schematest.Cluster) {
	t.Helper()
	address, _ := newDatabase(t, cluster, "counters")
	conn := connectTo(t, address)
	s, err := app.On(t.Context(), conn, schema.Address{}, app.Options{Limits: source.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Writer.Share(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Writer.Write(t.Context(), demo.Events(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))); err != nil {
		t.Fatal(err)
	}
	compareTotals(t, conn)
	for _, statement := range []string{
		"DROP TABLE subject_stats ON CLUSTER lift SYNC",
		"CREATE TABLE subject_stats ON CLUSTER lift AS subject_stats_local ENGINE = Distributed(lift, currentDatabase(), subject_stats_local, cityHash64(website_id, subject_id))",
	} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	compareTotals(t, conn)
}

// compareTotals compares the totals of all subjects, read together and one by one, with their
// events.
func compareTotals(t *testing.T, conn driver.Conn) {
	t.Helper()
	s, err := app.On(t.Context(), conn, schema.Address{}, app.Options{Limits: source.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	want := map[plan.Subject]source.Stored{}
	const query = "SELECT website_id, toString(subject), subject_id, experiment_id, count(), max(ingested_at), max(time) FROM events GROUP BY ALL"
	err = schema.EachRow(t.Context(), conn, query, func(row driver.Rows) error {
		var of plan.Subject
		var kind string
		var stored source.Stored
		err := row.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &stored.Events, &stored.Ingested, &stored.Newest)
		of.Kind = schema.Subject(kind)
		want[of] = stored
		return err
	})
	if err != nil || len(want) == 0 {
		t.Fatal(len(want), err)
	}
	one := s.Engine.Totals
	for of, stored := range want {
		if got, err := one.Stored(t.Context(), of); err != nil || got != stored {
			t.Errorf("%s read alone: %v, want %v; %v", of, got, stored, err)
		}
	}
	if err := one.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for of, stored := range want {
		if got, _ := one.Last(of); got != stored {
			t.Errorf("%s of all: %v, want %v", of, got, stored)
		}
	}
	var all []plan.Subject
	for of := range want {
		all = append(all, of)
	}
	one.Written(all)
	if err := one.RefreshIfOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	for of, stored := range want {
		if got, _ := one.Last(of); got != stored {
			t.Errorf("%s after a write: %v, want %v", of, got, stored)
		}
	}
}
