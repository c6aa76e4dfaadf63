package loadgen_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lifthouse/loadgen"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func quiet(loadgen.Progress) {}

// lines are all events of a scenario, made by so many cores.
func lines(t *testing.T, s *loadgen.Scenario, cores int) []byte {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var all bytes.Buffer
	if _, err := loadgen.WriteLines(t.Context(), s, &all, quiet); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func TestSameSeedSameBytes(t *testing.T) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(12_000)
	one, many := lines(t, &s, 1), lines(t, &s, 8)
	if !bytes.Equal(one, many) {
		t.Error("8 cores make other bytes than 1")
	}
	if events := bytes.Count(one, []byte("\n")); events < 2*12_000 {
		t.Errorf("%d events of 12,000 visitors", events)
	}
	s.Seed++
	if other := lines(t, &s, 2); bytes.Equal(one, other) {
		t.Error("another seed makes the same bytes")
	}
}

func TestLateEventsComeLater(t *testing.T) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(20_000)
	s.Traffic.Late, s.Traffic.Duplicates = 0.05, 0
	type line struct{ EventID, Visitor string }
	place := map[string]int{}
	far, all := 0, 0
	for n, text := range bytes.Split(bytes.TrimSpace(lines(t, &s, 2)), []byte("\n")) {
		var e line
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("line %d: %v: %s", n+1, err, text)
		}
		if first, seen := place[e.Visitor]; seen && n-first > 10_000 {
			far++
		} else if !seen {
			place[e.Visitor] = n
		}
		all++
	}
	if share := float64(far) / float64(all); share < 0.03 || share > 0.05 {
		t.Errorf("%.3f of the events come after 10,000 others; want a little less than 0.05", share)
	}
}

func TestScenarioFile(t *testing.T) {
	s, err := loadgen.ReadScenario(strings.NewReader(`
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
	if _, err := loadgen.ReadScenario(strings.NewReader("sede: 1\n")); err == nil || !strings.Contains(err.Error(), `unknown field "sede"`) {
		t.Errorf("an unknown key gives %v", err)
	}
	_, err = loadgen.ReadScenario(strings.NewReader("days: -1\nwebsites: [{id: 1, domain: a.example.com, campaigns: [{id: 1, visitor: 5}]}]\n"))
	if err == nil || !strings.Contains(err.Error(), `unknown field "visitor"`) || !strings.Contains(err.Error(), "days: -1: want 1") {
		t.Errorf("an unknown key within, and another fault, give %v", err)
	}
	_, err = loadgen.ReadScenario(strings.NewReader(`
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
		t.Fatal("no fault found")
	}
	for _, want := range []string{
		"days: 0: want 1 to 3650", "traffic.late: 2", "goals[0].rate: 1.5", "primaryGoalId: 9: want a goal of the website: one of [1]",
		"variations: 0: want one with a share", "effects[0].variation: 3: want one of [0]", "effects[0].goal: 4", "effects[0].event", "when.region",
		`when.device: "fridge": want one of ["" "desktop" "mobile" "tablet"]`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among the faults:\n%v", want, err)
		}
	}
}

func TestSetVisitors(t *testing.T) {
	s := loadgen.DefaultScenario()
	for _, visitors := range []int{1, 7, 10_000, 123_457} {
		s := s
		if s.SetVisitors(visitors); s.Visitors() != visitors {
			t.Errorf("%d visitors, want %d", s.Visitors(), visitors)
		}
	}
}

// TestSinksAgree imports what was written as lines and as Parquet into a store
// that has the events already: every row must stand there, with the same
// content.
func TestSinksAgree(t *testing.T) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(1_500)
	s.Traffic.Duplicates = 0.1
	conn := schematest.Open(t)
	writer := ingest.NewWriter(conn)
	sent, stored, err := loadgen.Store(t.Context(), &s, writer, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Duplicates == 0 || stored.Conflicts != 0 || stored.Inserted+stored.Duplicates != sent.Events || sent.Visitors != 1_500 {
		t.Fatalf("sent %+v, stored %+v", sent, stored)
	}
	for _, name := range []string{"events.ndjson", "events.ndjson.gz", "events.ndjson.zst", "events.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := loadgen.WriteFile(t.Context(), &s, path, nil, quiet); err != nil {
			t.Fatal(err)
		}
		report, err := ingest.Import(t.Context(), writer, path, ingest.Options{Reject: func(line int64, reason string) {
			t.Errorf("%s: line %d: %s", name, line, reason)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Inserted != 0 || report.Conflicts != 0 || report.Duplicates != sent.Events {
			t.Errorf("%s: %+v, want only duplicates, %d of them", name, report, sent.Events)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCatalogueApplies(t *testing.T) {
	for name, s := range map[string]loadgen.Scenario{"default": loadgen.DefaultScenario(), "standard": loadgen.Standard(0.01, 1)} {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var text bytes.Buffer
		if err := s.Catalogue().Write(&text); err != nil {
			t.Fatal(err)
		}
		file, err := catalogue.Read(&text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := catalogue.Open(t.Context(), schematest.Open(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Apply(t.Context(), file, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if changes, err := c.Apply(t.Context(), s.Catalogue(), false); err != nil || len(changes) != 0 {
			t.Errorf("%s: the file differs from the catalogue: %v, %v", name, changes, err)
		}
	}
}

// BenchmarkLines makes events as JSON lines. 10 million a minute are 167,000 a second.
func BenchmarkLines(b *testing.B) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(50_000)
	var bytes int64
	events := 0
	for b.Loop() {
		p, err := loadgen.WriteLines(b.Context(), &s, discard{}, quiet)
		if err != nil {
			b.Fatal(err)
		}
		events, bytes = events+p.Events, p.Bytes
	}
	b.SetBytes(bytes)
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
