package population_test

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
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
	events := bytes.Count(one, []byte("\n"))
	check.That(t, events >= 2*12_000, "%d events of 12,000 visitors, want at least 24,000", events)
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
		e := must.JSON[line](t, text)
		if first, seen := firstLine[e.Visitor]; seen && n-first > 10_000 {
			late++
		} else if !seen {
			firstLine[e.Visitor] = n
		}
		total++
	}
	share := float64(late) / float64(total)
	check.That(t, share >= 0.03, "the share of late events is %.3f, want 0.03 to 0.05", share)
	check.That(t, share <= 0.05, "the share of late events is %.3f, want 0.03 to 0.05", share)
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
	for name, s := range map[string]population.Scenario{
		"default":  population.DefaultScenario(),
		"standard": population.StandardScenario(0.01, 1),
	} {
		var text bytes.Buffer
		must.OK(t, s.CatalogueFile().WriteYAML(&text))
		file := must.Get(catalogue.ReadYAML(&text))(t)
		c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
		_, err := c.ApplyFile(t.Context(), file, false)
		check.That(t, err == nil, "%s: %v", name, err)
		changes, err := c.ApplyFile(t.Context(), s.CatalogueFile(), false)
		must.That(t, err == nil, "%s: applying the catalogue again: changes %v, error %v", name, changes, err)
		check.Equal(t, len(changes), 0, "%s: applying the catalogue again: changes %v, error %v", name, changes, err)
	}
}

// TestStandardShape checks the proportions of the standard data set at a small scale.
func TestStandardShape(t *testing.T) {
	s := population.StandardScenario(0.004, 1)
	type visitor struct{ events, seen int }
	visitors := map[uint64]*visitor{}
	var large, later, goals, multiple, long float64
	kinds := map[int64]int{}
	campaigns := map[int64]bool{}
	most := 0
	var value int64
	must.OK(t,
		population.GenerateEvents(t.Context(), &s, func(events []population.Event) []population.Event { return events },
			func(b population.Batch[[]population.Event]) error {
				for _, e := range b.Data {
					campaigns[e.SubjectID] = true
					if e.SubjectID != population.StandardCampaign {
						continue
					}
					v := visitors[e.VisitorID]
					if v == nil {
						v = &visitor{}
						visitors[e.VisitorID] = v
					} else {
						later++
					}
					large++
					v.events++
					most = max(most, v.events)
					if e.Kind == schema.KindGoal {
						goals++
						kinds[e.GoalID]++
						value += e.Value
					} else if v.seen |= 1 << e.VariationID; v.seen == 3 {
						multiple++
						v.seen = 0
					}
					if e.Time.Sub(s.Start.Time).Hours() > 24*61 {
						long++
					}
					must.That(t, (e.Browser != "" || e.Device == ""), "missing attributes: %+v", e)
					must.That(t, e.FirstVisitPage != "", "missing attributes: %+v", e)
					must.That(t, e.VisitorType != "", "missing attributes: %+v", e)
					must.That(t, e.Channel != "", "missing attributes: %+v", e)
				}
				return nil
			}))
	about := func(what string, have, want, within float64) {
		t.Helper()
		check.That(t, math.Abs(have-want) <= within, "%s: %.4f, want about %v", what, have, want)
	}
	about("visitors", float64(len(visitors)), 20_000, 0)
	about("events a visitor", large/float64(len(visitors)), 5.6, 0.15)
	about("goals among the later events", goals/later, 0.22, 0.01)
	about("multiple exposures", multiple/float64(len(visitors)), 0.01, 0.003)
	about("mean value of goal 1", float64(value)/schema.MoneyScale/float64(kinds[1]), 30, 2)
	about("kinds of goals", float64(len(kinds)), 5, 0)
	about("campaigns", float64(len(campaigns)), 201, 0)
	check.That(t, most <= 80, "largest number of events of a visitor: %d; events after day 61: %v", most, long)
	check.That(t, most >= 30, "largest number of events of a visitor: %d; events after day 61: %v", most, long)
	check.Equal(t, long, 0, "largest number of events of a visitor: %d; events after day 61: %v", most, long)
}

// TestFileAndStoreAgree inserts events into a store and imports the same events from a file, which must be
// copies of them.
func TestFileAndStoreAgree(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(1_500)
	s.Traffic.Duplicates = 0.1
	conn := schematest.OpenMigrated(t)
	writer := ingest.NewWriter(conn, nil)
	sent := must.Get(population.InsertScenario(t.Context(), &s, writer, noReport))(t)
	digest := func() (rows, hash uint64) {
		must.OK(t, conn.QueryRow(t.Context(), "SELECT count(), sum(cityHash64(* EXCEPT ingested_at)) FROM events FINAL").Scan(&rows, &hash))
		return rows, hash
	}
	events, want := digest()
	if events == 0 || events >= uint64(sent.Events) || sent.Visitors != 1_500 { //nolint:gosec // a number of events
		t.Fatalf("sent %+v, %d events", sent, events)
	}
	path := filepath.Join(t.TempDir(), "events.ndjson")
	file := must.Get(os.Create(path))(t)
	must.Get(population.WriteNDJSON(t.Context(), &s, file, noReport))(t)
	must.OK(t, file.Close())
	report := must.Get(ingest.ImportFile(t.Context(), writer, path,
		ingest.Options{Reject: func(line int64, reason string) {
			t.Errorf("line %d: %s", line, reason)
		}}))(t)
	rows, hash := digest()
	check.Equal(t, report.Rows, int64(sent.Events), "%+v, %d events; want copies of %d", report, rows, events)
	check.Equal(t, rows, events, "%+v, %d events; want copies of %d", report, rows, events)
	check.Equal(t, hash, want, "%+v, %d events; want copies of %d", report, rows, events)
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // discard request logs
	schematest.Main(m)
}

// TestManyScenarioHasEndedAndRunningCampaigns counts the campaigns of the catalogue.
func TestManyScenarioHasEndedAndRunningCampaigns(t *testing.T) {
	s := population.ManyScenario(500, 0.001, 1)
	running, ended := map[int64]int{}, 0
	for _, site := range s.CatalogueFile().Accounts[0].Websites {
		for _, c := range site.Campaigns {
			if c.Active {
				running[site.ID]++
				continue
			}
			check.That(t, c.EndDate != nil, "campaign %d has no end", c.ID)
			ended++
		}
	}
	check.Equal(t, ended, 400, "ended")
	check.Equal(t, running[1], 100, "running on website 1")
	check.Equal(t, len(running), 1, "websites with running campaigns")
}
