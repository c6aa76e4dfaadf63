package schema_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TestPartFolders compares the parts in the folders of a table with those that the engine reads,
// after inserts, merges, mutations and deletions in any order.
func TestPartFolders(t *testing.T) {
	conn := schematest.Open(t)
	manifest := schema.NewManifest(conn, t.TempDir(), false)
	manifest.Update(t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	create := "CREATE TABLE sample (n Int64, month UInt8) ENGINE = MergeTree PARTITION BY month ORDER BY n"
	for _, statement := range []string{create, "CREATE TABLE other AS sample"} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func() string{
		func() string {
			return fmt.Sprintf("INSERT INTO sample SELECT number + %d, number %% %d FROM numbers(%d)", random.IntN(1000), 1+random.IntN(3), 1+random.IntN(50))
		},
		func() string { return "INSERT INTO sample SELECT number, 0 FROM numbers(3)" },
		func() string { return "INSERT INTO other SELECT number, 0 FROM numbers(3)" },
		func() string { return "OPTIMIZE TABLE sample" },
		func() string { return "OPTIMIZE TABLE sample PARTITION 0 FINAL" },
		func() string {
			return fmt.Sprintf("ALTER TABLE sample DELETE WHERE n %% 7 = %d SETTINGS mutations_sync = 1", random.IntN(7))
		},
		func() string { return fmt.Sprintf("DELETE FROM sample WHERE n = %d", random.IntN(1000)) },
		func() string { return fmt.Sprintf("ALTER TABLE sample DROP PARTITION %d", random.IntN(3)) },
		func() string { return "ALTER TABLE sample DELETE WHERE true SETTINGS mutations_sync = 1" },
		func() string { return "TRUNCATE TABLE sample" },
		func() string { return "DROP TABLE sample SYNC" },
	}
	for range 80 {
		statement := steps[random.IntN(len(steps))]()
		if random.IntN(2) == 0 {
			statement = steps[0]()
		}
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if strings.HasPrefix(statement, "DROP") {
			if err := conn.Exec(t.Context(), create); err != nil {
				t.Fatal(err)
			}
		}
		var got, want []string
		for range 1000 { // a merge may end between two readings
			want = activeParts(t, conn)
			var err error
			if got, err = manifest.PartsOf(t.Context(), "other", "sample"); err != nil {
				t.Fatalf("after %s: %v", statement, err)
			}
			if slices.Sort(got); slices.Equal(got, want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %s: parts\n%v, want\n%v", statement, got, want)
		}
	}
}

func activeParts(t *testing.T, conn driver.Conn) []string {
	t.Helper()
	const statement = "SELECT table || ' ' || name || ' ' || toString(rows) AS part FROM system.parts WHERE database = currentDatabase() AND active AND rows > 0 AND table IN ('sample', 'other') ORDER BY part"
	parts, err := schema.QueryRows(t.Context(), conn, statement, func(row driver.Rows, part *string) error { return row.Scan(part) })
	if err != nil {
		t.Fatal(err)
	}
	return parts
}
