package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
)

// TestCheckFilesNamesMissingDefinitions also checks stores that are incomplete but not damaged: new ones, and those whose
// creation was interrupted.
func TestCheckFilesNamesMissingDefinitions(t *testing.T) {
	const database, events, facts = "metadata/lifthouse.sql", "metadata/lifthouse/events.sql", "metadata/lifthouse/facts.sql"
	const eventsLink, factsLink, part = "data/lifthouse/events/x", "data/lifthouse/facts/x", "store/abc/abcdef/all_1_1_0/x"
	for name, c := range map[string]struct {
		files []string
		want  []string // files that the error names
	}{
		"empty":                     {nil, nil},
		"no table yet":              {[]string{database}, nil},
		"all tables":                {[]string{database, events, eventsLink, facts, factsLink, part}, nil},
		"interrupted before links":  {[]string{database, events}, nil},
		"interrupted before facts":  {[]string{database, events, eventsLink}, nil},
		"no definition of a table":  {[]string{database, events, eventsLink, factsLink}, []string{facts}},
		"no definition of tables":   {[]string{database, eventsLink, factsLink, part}, []string{events, facts}},
		"no definition of database": {[]string{events, eventsLink, part}, []string{database}},
		"only parts":                {[]string{part}, []string{database}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range c.files {
				path := filepath.Join(dir, file)
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must.OK(t, os.WriteFile(path, []byte("ATTACH "), 0o600))
			}
			said := ""
			if err := schema.CheckFiles(dir); err != nil {
				said = err.Error()
			}
			for _, file := range c.want {
				if !strings.Contains(said, filepath.Join(dir, file)+", is missing: put it back, or restore a backup") {
					t.Errorf("does not name %s: %s", file, said)
				}
			}
			if faults := strings.Count(said, "is missing"); faults != len(c.want) || strings.Count(said, "\n") != max(faults-1, 0) {
				t.Errorf("%q, want %d errors", said, len(c.want))
			}
		})
	}
}
