package population_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func noReport(population.Progress) {}

// lines returns all events of a scenario as JSON lines, generated with GOMAXPROCS set to cores.
func lines(t *testing.T, s *population.Scenario, cores int) []byte {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var all bytes.Buffer
	must.Get(population.WriteNDJSON(t.Context(), s, &all, noReport))(t)
	return all.Bytes()
}

func TestSameSeedSameBytes(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(12_000)
	one, many := lines(t, &s, 1), lines(t, &s, 8)
	check.That(t, bytes.Equal(one, many), "the events depend on the number of cores")
	if events := bytes.Count(one, []byte("\n")); events < 2*12_000 {
		t.Errorf("%d events of 12,000 visitors, want at least 24,000", events)
	}
	s.Seed++
	other := lines(t, &s, 2)
	check.That(t, !bytes.Equal(one, other), "different seeds generate the same events")
}

func TestLateEventsAreDelayed(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(20_000)
	s.Traffic.Late, s.Traffic.Duplicates = 0.05, 0
	type line struct{ EventID, Visitor string }
	firstLine := map[string]int{} // by visitor
	late, total := 0, 0
	for n, text := range bytes.Split(bytes.TrimSpace(lines(t, &s, 2)), []byte("\n")) {
		var e line
		must.OK(t, json.Unmarshal(text, &e), "line %d: %s", n+1, text)
		if first, seen := firstLine[e.Visitor]; seen && n-first > 10_000 {
			late++
		} else if !seen {
			firstLine[e.Visitor] = n
		}
		total++
	}
	share := float64(late) / float64(total)
	check.That(t, share >= 0.03 && share <= 0.05, "the share of late events is %.3f, want 0.03 to 0.05", share)
}

func TestSetVisitors(t *testing.T) {
	s := population.DefaultScenario()
	for _, visitors := range []int{1, 7, 10_000, 123_457} {
		s := s
		if s.SetVisitors(visitors); s.TotalVisitors() != visitors {
			t.Errorf("%d visitors, want %d", s.TotalVisitors(), visitors)
		}
	}
}

func TestCatalogueApplies(t *testing.T) {
	for name, s := range map[string]population.Scenario{"default": population.DefaultScenario(), "standard": population.StandardScenario(0.01, 1)} {
		var text bytes.Buffer
		must.OK(t, s.CatalogueFile().WriteYAML(&text))
		file := must.Get(catalogue.ReadYAML(&text))(t)
		c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
		_, err := c.ApplyFile(t.Context(), file, false)
		check.That(t, err == nil, "%s: %v", name, err)
		changes, err := c.ApplyFile(t.Context(), s.CatalogueFile(), false)
		check.That(t, err == nil && len(changes) == 0, "%s: applying the catalogue again: changes %v, error %v", name, changes, err)
	}
}
