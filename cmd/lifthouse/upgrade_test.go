package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// firstWithEvents is the first migration after which events can be stored and
// counted.
const firstWithEvents = "0004"

// TestStoresOfEarlierSchemasAreBroughtUpToDate creates stores with earlier
// schemas (every third in make test) and their rows. After migrations, reports
// equal those of a new store, events are duplicates, every check passes, and a
// second migration changes nothing.
func TestStoresOfEarlierSchemasAreBroughtUpToDate(t *testing.T) {
	today := newHouse(t)
	today.must("apply", "-f", "testdata/thirty.catalog.yaml")
	today.must("import", "testdata/thirty.ndjson")
	var want result.Report
	report := func(h *house, into *result.Report) {
		t.Helper()
		h.token = strings.TrimSpace(h.must("token", "create"))
		h.get("/v1/campaigns/1/results?dimension=device&interval=day", into)
	}
	report(today, &want)
	files, err := filepath.Glob("../../schema/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for k := range len(files) - 1 {
		last := filepath.Base(files[k])
		if last < firstWithEvents || !tier.Long() && k%3 != len(files)%3 {
			continue
		}
		t.Run(last, func(t *testing.T) {
			conn := earlierStore(t, today.store.Conn, files[:k+1])
			for _, wanted := range []int{len(files) - k - 1, 0} {
				if ran, err := schema.Migrate(t.Context(), conn); err != nil || len(ran) != wanted {
					t.Fatalf("%q ran, %v; want %d", ran, err, wanted)
				}
			}
			h := houseOn(t, conn)
			if out := h.must("import", "testdata/thirty.ndjson"); !strings.Contains(out, ": 0 rows inserted") {
				t.Errorf("imported again: %s", out)
			}
			var got result.Report
			report(h, &got)
			if a, b := asText(t, &got), asText(t, &want); a != b {
				t.Errorf("reports\n%s\nwant\n%s", a, b)
			}
			if out := h.must("check", "--deep"); !strings.Contains(out, "is up to date") {
				t.Errorf("check says\n%s", out)
			}
		})
	}
}

// earlierStore returns a store with the tables of some migrations, and the rows
// of a current store that fit.
func earlierStore(t *testing.T, today driver.Conn, files []string) driver.Conn {
	t.Helper()
	conn := schematest.Empty(t)
	var from string
	if err := today.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&from); err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		t.Helper()
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
	do("CREATE TABLE migrations AS " + from + ".migrations")
	do("INSERT INTO migrations SELECT * FROM " + from + ".migrations WHERE name <= '" + filepath.Base(files[len(files)-1]) + "'")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		do(string(text))
	}
	for _, table := range []string{"catalogue", "events"} {
		var columns string
		if err := conn.QueryRow(t.Context(), "SELECT arrayStringConcat(groupArray(name), ', ') FROM system.columns WHERE database = currentDatabase() AND table = '"+table+"'").Scan(&columns); err != nil {
			t.Fatal(err)
		}
		do("INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM " + from + "." + table)
	}
	return conn
}

// asText returns a report without its time of generation.
func asText(t *testing.T, r *result.Report) string {
	t.Helper()
	r.GeneratedAt = time.Time{}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
