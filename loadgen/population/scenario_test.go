package population_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

func noReport(send.Progress) {}

// lines returns all events of a scenario as JSON lines, generated with
// GOMAXPROCS set to cores.
func lines(t *testing.T, s *population.Scenario, cores int) []byte {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var all bytes.Buffer
	if _, err := send.WriteNDJSON(t.Context(), s, &all, noReport); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func TestSameSeedSameBytes(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(12_000)
	one, many := lines(t, &s, 1), lines(t, &s, 8)
	if !bytes.Equal(one, many) {
		t.Error("the events depend on the number of cores")
	}
	if events := bytes.Count(one, []byte("\n")); events < 2*12_000 {
		t.Errorf("%d events of 12,000 visitors, want at least 24,000", events)
	}
	s.Seed++
	if other := lines(t, &s, 2); bytes.Equal(one, other) {
		t.Error("different seeds generate the same events")
	}
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
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("line %d: %v: %s", n+1, err, text)
		}
		if first, seen := firstLine[e.Visitor]; seen && n-first > 10_000 {
			late++
		} else if !seen {
			firstLine[e.Visitor] = n
		}
		total++
	}
	if share := float64(late) / float64(total); share < 0.03 || share > 0.05 {
		t.Errorf("the share of late events is %.3f, want 0.03 to 0.05", share)
	}
}

func TestReadScenario(t *testing.T) {
	s, err := population.ReadScenario(strings.NewReader(`
seed: 7
websites:
  - id: 2
    domain: a.example.com
    goals: [{id: 1, name: Purchase, rate: 0.1, value: 20}]
    campaigns:
      - id: 5
        name: A
        primaryGoalId: 1
        visitors: 100
        variations: [{id: 1, name: B, share: 100}]
        effects: [{variation: 1, when: {device: mobile}, rate: 1.3}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Websites[0].Campaigns[0]; s.Seed != 7 || s.Days != 28 || c.ControlShare != 50 || c.Visitors != 100 || *c.Effects[0].Variation != 1 {
		t.Errorf("read %+v", s)
	}
	if _, err := population.ReadScenario(strings.NewReader("sede: 1\n")); err == nil || !strings.Contains(err.Error(), `unknown field "sede"`) {
		t.Errorf("unknown key: error %v", err)
	}
	_, err = population.ReadScenario(strings.NewReader("days: -1\nwebsites: [{id: 1, domain: a.example.com, campaigns: [{id: 1, visitor: 5}]}]\n"))
	if err == nil || !strings.Contains(err.Error(), `unknown field "visitor"`) || !strings.Contains(err.Error(), "days: invalid value -1: must be from 1") {
		t.Errorf("unknown key and invalid value: error %v", err)
	}
	_, err = population.ReadScenario(strings.NewReader(`
days: 0
traffic: {late: 2}
websites:
  - id: 2
    domain: a.example.com
    goals: [{id: 1, name: Purchase, rate: 1.5}]
    campaigns:
      - {id: 5, name: A, primaryGoalId: 9, visitors: 100, effects: [{variation: 3, goal: 4, event: click, when: {region: Bayern, device: fridge}}]}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"days: invalid value 0: must be from 1 to 3650", "traffic.late: invalid value 2", "goals[0].rate: invalid value 1.5",
		"primaryGoalId: invalid value 9: must be a goal of the website: one of [1]",
		"variations: invalid value with total share 0: must have a positive total share", "effects[0].variation: invalid value 3: must be one of [0]",
		"effects[0].goal: invalid value 4", "effects[0].event", "when.region",
		`when.device: invalid value "fridge": must be one of ["" "desktop" "mobile" "tablet"]`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
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
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var text bytes.Buffer
		if err := s.CatalogueFile().WriteYAML(&text); err != nil {
			t.Fatal(err)
		}
		file, err := catalogue.ReadYAML(&text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := catalogue.Open(t.Context(), schematest.OpenMigrated(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ApplyFile(t.Context(), file, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if changes, err := c.ApplyFile(t.Context(), s.CatalogueFile(), false); err != nil || len(changes) != 0 {
			t.Errorf("%s: applying the catalogue again: changes %v, error %v", name, changes, err)
		}
	}
}
