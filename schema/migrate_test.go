package schema_test

import (
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

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
