package schema_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { schematest.Main(m) }

func TestMigrateRunsEachFileOnce(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	first, err := schema.Migrate(t.Context(), conn)
	must.That(t, err == nil, "first Migrate = %v, %v; want files", first, err)
	must.That(t, len(first) != 0, "first Migrate = %v, %v; want files", first, err)
	second, err := schema.Migrate(t.Context(), conn)
	must.That(t, err == nil, "second Migrate = %v, %v; want none", second, err)
	check.Equal(t, len(second), 0, "second Migrate = %v, %v; want none", second, err)
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestMigrateErrors(t *testing.T) {
	const create = "CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x"
	ran := fstest.MapFS{"tables/a.sql": file(create)}
	for _, test := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"changed file", fstest.MapFS{"tables/a.sql": file(create + " -- changed")}, "by another build of Lifthouse, whose tables differ (a.sql)"},
		{"newer store", fstest.MapFS{}, "the store was written by a newer release, which ran the migration a.sql: use that release or a later one"},
		{"broken statement", fstest.MapFS{"tables/a.sql": file(create), "tables/b.sql": file("CREATE NONSENSE")}, "migration b.sql"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := schematest.OpenEmpty(t)
			must.Get(schema.MigrateFrom(t.Context(), conn, ran))(t)
			_, err := schema.MigrateFrom(t.Context(), conn, test.files)
			must.That(t, err != nil, "error = %v, want %q", err, test.want)
			check.Contains(t, err.Error(), test.want, "error = %v, want %q", err, test.want)
		})
	}
}

func TestMigrateResumesAfterAFailure(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	good := file("CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x")
	if _, err := schema.MigrateFrom(t.Context(), conn,
		fstest.MapFS{"tables/a.sql": good, "tables/b.sql": file("NONSENSE")}); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	fixed := file("CREATE TABLE IF NOT EXISTS b (x UInt8) ENGINE = MergeTree ORDER BY x")
	applied, err := schema.MigrateFrom(t.Context(), conn, fstest.MapFS{"tables/a.sql": good, "tables/b.sql": fixed})
	must.That(t, err == nil, "applied = %v, %v; want b.sql", applied, err)
	check.Equal(t, strings.Join(applied, ","), "b.sql", "applied = %v, %v; want b.sql", applied, err)
}

// TestTablesEqualGoldenFile detects unintended changes of the tables, by a migration or by a release of ClickHouse.
func TestTablesEqualGoldenFile(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	rows := must.Get(conn.Query(t.Context(), "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name"))(t)
	defer func() { _ = rows.Close() }()
	var got strings.Builder
	var database string
	must.OK(t, conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database))
	for rows.Next() {
		var name, create string
		must.OK(t, rows.Scan(&name, &create))
		create = strings.ReplaceAll(create, database+".", "")
		create = strings.ReplaceAll(create, ", `", ",\n  `")
		got.WriteString(create + "\n\n")
	}
	must.OK(t, rows.Err())
	golden := filepath.Join("testdata", "schema.sql")
	if *update {
		must.OK(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want := must.Get(os.ReadFile(golden))(t)
	check.Equal(t, got.String(), string(want), "%s; go test -update writes it", golden)
}

// TestHashEqualsXXHash64 checks that SQL can look up a visitor by xxHash64('ID').
func TestHashEqualsXXHash64(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	for _, id := range []string{"", "v1", "ü", strings.Repeat("long", 200)} {
		var want uint64
		must.OK(t, conn.QueryRow(t.Context(), "SELECT xxHash64({id:String})", clickhouse.Named("id", id)).Scan(&want))
		check.Equal(t, schema.HashID(id), want, "Hash(%q)", id)
	}
}
