package schema_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { schematest.Main(m) }

func TestMigrateRunsEachFileOnce(t *testing.T) {
	conn := schematest.Empty(t)
	first, err := schema.Migrate(t.Context(), conn)
	if err != nil || len(first) == 0 {
		t.Fatalf("first Migrate = %v, %v; want files", first, err)
	}
	second, err := schema.Migrate(t.Context(), conn)
	if err != nil || len(second) != 0 {
		t.Errorf("second Migrate = %v, %v; want none", second, err)
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestMigrateErrors(t *testing.T) {
	const create = "CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x"
	ran := fstest.MapFS{"migrations/0001_a.sql": file(create)}
	for _, test := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"changed file", fstest.MapFS{"migrations/0001_a.sql": file(create + " -- changed")}, "0001_a.sql was changed after it ran"},
		{"newer store", fstest.MapFS{}, "0001_a.sql, which this release does not know"},
		{"broken statement", fstest.MapFS{"migrations/0001_a.sql": file(create), "migrations/0002_b.sql": file("CREATE NONSENSE")}, "migration 0002_b.sql"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := schematest.Empty(t)
			if _, err := schema.MigrateFrom(t.Context(), conn, ran); err != nil {
				t.Fatal(err)
			}
			_, err := schema.MigrateFrom(t.Context(), conn, test.files)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

func TestMigrateResumesAfterAFailure(t *testing.T) {
	conn := schematest.Empty(t)
	good := file("CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x")
	if _, err := schema.MigrateFrom(t.Context(), conn, fstest.MapFS{"migrations/0001_a.sql": good, "migrations/0002_b.sql": file("NONSENSE")}); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	fixed := file("CREATE TABLE IF NOT EXISTS b (x UInt8) ENGINE = MergeTree ORDER BY x")
	applied, err := schema.MigrateFrom(t.Context(), conn, fstest.MapFS{"migrations/0001_a.sql": good, "migrations/0002_b.sql": fixed})
	if err != nil || strings.Join(applied, ",") != "0002_b.sql" {
		t.Errorf("applied = %v, %v; want 0002_b.sql", applied, err)
	}
}

// TestTablesEqualGoldenFile detects unintended changes of the tables, by a
// migration or by a release of ClickHouse.
func TestTablesEqualGoldenFile(t *testing.T) {
	conn := schematest.Open(t)
	rows, err := conn.Query(t.Context(), "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var got strings.Builder
	var database string
	if err := conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, create string
		if err := rows.Scan(&name, &create); err != nil {
			t.Fatal(err)
		}
		create = strings.ReplaceAll(create, database+".", "")
		create = strings.ReplaceAll(create, ", `", ",\n  `")
		got.WriteString(create + "\n\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "schema.sql")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the tables differ from %s (go test -update writes it):\n%s", golden, got.String())
	}
}

// TestHashEqualsXXHash64 checks that SQL can look up a visitor by
// xxHash64('ID').
func TestHashEqualsXXHash64(t *testing.T) {
	conn := schematest.Empty(t)
	for _, id := range []string{"", "v1", "ü", strings.Repeat("long", 200)} {
		var want uint64
		if err := conn.QueryRow(t.Context(), "SELECT xxHash64({id:String})", clickhouse.Named("id", id)).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := schema.Hash(id); got != want {
			t.Errorf("Hash(%q) = %d, xxHash64 returns %d", id, got, want)
		}
	}
}

// TestMigrateReplacesEditedMigration migrates stores that ran an earlier version
// of 0012. Its table is computed from the events, so it is dropped and created
// again.
func TestMigrateReplacesEditedMigration(t *testing.T) {
	for _, checksum := range []string{"ec8f6ee8255fab4af4422b12e801ce53bacc2e954e5f2f45ff411654df0700f5", "f418452b3b9726c6e49fa91b94497050a269d675594165d21f201cd9a0ec403f"} {
		today, conn := schematest.Open(t), schematest.Open(t)
		for _, statement := range []string{
			"DROP TABLE rollups SYNC",
			"CREATE TABLE settled (website_id Int64, facet String) ENGINE = MergeTree ORDER BY website_id",
			"INSERT INTO settled VALUES (1, 'state')",
			"ALTER TABLE migrations DELETE WHERE name >= '0012' SETTINGS mutations_sync = 1",
			"INSERT INTO migrations (name, checksum) VALUES ('0012_settled.sql', '" + checksum + "')",
		} {
			if err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
		}
		pending, err := schema.Pending(t.Context(), conn)
		if err != nil || len(pending) == 0 || pending[0] != "0012_settled.sql" {
			t.Errorf("pending: %q, %v", pending, err)
		}
		ran, err := schema.Migrate(t.Context(), conn)
		if err != nil || len(ran) != len(pending) {
			t.Fatalf("%q ran, %v", ran, err)
		}
		const definition = "SELECT replaceRegexpOne(create_table_query, '^CREATE TABLE [^ ]+', '') FROM system.tables WHERE database = currentDatabase() AND name = 'rollups'"
		var got, want string
		if err := errors.Join(conn.QueryRow(t.Context(), definition).Scan(&got), today.QueryRow(t.Context(), definition).Scan(&want)); err != nil || got != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
		if ran, err := schema.Migrate(t.Context(), conn); err != nil || len(ran) > 0 {
			t.Errorf("second Migrate: %q, %v", ran, err)
		}
	}
}

// TestMigrateReplacesTheTablesOfRollups migrates a store that ran the versions of the three
// migrations with fewer dictionaries and without cities. Rows of a former layout are dropped.
func TestMigrateReplacesTheTablesOfRollups(t *testing.T) {
	former := map[string]string{
		"0022_rollups.sql":     "8a19be215e9a80baf2b611b2daa915302f087a8f014c29cad55e540a589f7456",
		"0024_exposures.sql":   "b803283e9d74f313b213a0a13fa22878462e463fde26d6896670f2b51aac48c4",
		"0025_conversions.sql": "2eb5828a842246a8df94ebbf53de095f9f024feefada5c756e11453f194c3c4b",
	}
	conn := schematest.Open(t)
	statements := []string{"ALTER TABLE migrations DELETE WHERE name IN ('0022_rollups.sql', '0024_exposures.sql', '0025_conversions.sql') SETTINGS mutations_sync = 1"}
	for name, checksum := range former {
		statements = append(statements, "INSERT INTO migrations (name, checksum) VALUES ('"+name+"', '"+checksum+"')")
	}
	for _, table := range schema.RollupTables {
		statements = append(statements, "INSERT INTO "+table+" (bucket, generation) VALUES (1, 1)")
	}
	for _, statement := range statements {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
	if ran, err := schema.Migrate(t.Context(), conn); err != nil || len(ran) != len(former) {
		t.Fatalf("%q ran, %v", ran, err)
	}
	for _, table := range schema.RollupTables {
		var rows uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%s has %d rows, %v", table, rows, err)
		}
	}
}
