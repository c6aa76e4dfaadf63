package rollup_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// newMall returns a store with the given number of campaigns, each with a rollup.
func newMall(tb testing.TB, campaigns int) *shop {
	tb.Helper()
	s := &shop{conn: schematest.Open(tb)}
	s.t, _ = tb.(*testing.T) // nil in a benchmark
	var text strings.Builder
	text.WriteString("accounts: [{id: 1, name: Mall, websites: [{id: 1, domain: mall.example.com, goals: [{id: 1, name: Order}], campaigns: [\n")
	for i := range campaigns {
		fmt.Fprintf(&text, "{id: %d, name: c%d, type: experiment, primaryGoalId: 1, controlShare: 50, variations: [{id: 1, name: New, share: 100}]},\n", i+1, i+1)
	}
	text.WriteString("]}]}]\n")
	c, err := catalogue.Open(tb.Context(), s.conn)
	if err != nil {
		tb.Fatal(err)
	}
	declared, err := catalogue.Read(strings.NewReader(text.String()))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := c.Apply(tb.Context(), declared, false); err != nil {
		tb.Fatal(err)
	}
	s.catalogue = c
	s.openEngine()
	var events []schema.Event
	for i := range campaigns {
		for visitor := range uint64(6) {
			events = append(events, purchase(int64(i+1), visitor)...)
		}
	}
	if _, err := s.writer.Write(tb.Context(), events); err != nil {
		tb.Fatal(err)
	}
	if err := s.refresher.RefreshAll(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// openEngine opens the store as a new process does.
func (s *shop) openEngine() {
	s.engine = engine.New(s.conn, s.catalogue, source.Limits{InProcessEvents: 5})
	s.engine.Totals.SetOwn()
	s.writer = ingest.NewWriter(s.conn)
	s.writer.SetExclusive()
	s.writer.SetRollups(s.engine.Rollups)
	s.refresher = rollup.New(s.conn, s.writer, s.engine.Rollups.Indexes()[0])
}

// purchase returns the view and the goal of a visitor of a campaign.
func purchase(campaign int64, visitor uint64) []schema.Event {
	view := schema.Event{
		EventID: 2 * visitor, WebsiteID: 1, VisitorID: visitor, VariationID: int64(visitor % 2), Time: start.Add(time.Duration(visitor) * time.Hour), //nolint:gosec // few
		Subject: schema.SubjectCampaign, SubjectID: campaign, Kind: schema.KindView, Attributes: schema.Attributes{Device: "mobile", Country: "DE"},
	}
	goal := view
	goal.EventID, goal.Kind, goal.GoalID, goal.Value = 2*visitor+1, schema.KindGoal, 1, schema.MoneyScale
	return []schema.Event{view, goal}
}

// TestIdleSubjectsCostNothing counts statements with few and with many campaigns:
// none while nothing is written, and equally many to start and to refresh one
// campaign. The number of parts does not grow with the number of campaigns either.
func TestIdleSubjectsCostNothing(t *testing.T) {
	var few, many map[string]int
	for _, campaigns := range []int{10, tier.Of(30, 30, 2_000)} {
		few, many = many, newMall(t, campaigns).statements(campaigns)
	}
	for work, n := range many {
		if n > few[work] {
			t.Errorf("%s: %d statements, with 10 campaigns %d", work, n, few[work])
		}
	}
	if many["idle"] != 0 || many["refresh"] == 0 {
		t.Errorf("statements %v; want none while idle", many)
	}
}

// statements returns the number of statements of a start, of an idle look for new
// events, and of a refresh after an event of one campaign.
func (s *shop) statements(campaigns int) map[string]int {
	s.t.Helper()
	const plenty = 1 << 30
	left := plenty
	conn := s.conn
	s.conn = schematest.KilledConn{Conn: conn, Left: &left} // only counts
	found := map[string]int{}
	measured := func(work string, do func() error) {
		left = plenty
		at := time.Now()
		s.must(do())
		s.t.Logf("%d campaigns: %s: %d statements, %s", campaigns, work, plenty-left, time.Since(at).Round(10*time.Microsecond))
		found[work] = plenty - left
	}
	measured("start", func() error {
		s.openEngine()
		return s.engine.Rollups.Load(s.t.Context())
	})
	s.must(s.refresher.Look(s.t.Context())) // deletes what an earlier process left
	measured("idle", func() error { return s.refresher.Look(s.t.Context()) })
	s.buy(int64(campaigns), 100)
	measured("refresh", func() error { return s.refresher.Look(s.t.Context()) })
	s.compareOne(&query.Request{AccountID: 1, SubjectID: int64(campaigns), Metric: query.ValuePerVisitor}, map[string]int{})
	s.compareOne(&query.Request{AccountID: 1, SubjectID: 1, Metric: query.ValuePerVisitor, Dimension: "os"}, map[string]int{})
	var parts int64
	s.must(conn.QueryRow(s.t.Context(), "SELECT toInt64(max(n)) FROM (SELECT count() AS n FROM system.parts WHERE database = currentDatabase() AND table IN ('rollups', 'exposures', 'conversions') AND active GROUP BY table, partition)").Scan(&parts))
	if parts > 50 {
		s.t.Errorf("a bucket has %d parts; want at most 50", parts)
	}
	return found
}

// buy writes a purchase and updates the engine, as a server does.
func (s *shop) buy(campaign int64, visitor uint64) {
	s.t.Helper()
	_, err := s.writer.Write(s.t.Context(), purchase(campaign, visitor))
	s.must(err)
	s.engine.Written([]plan.Subject{{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: campaign}})
}

// BenchmarkSubjects measures a server's work with few and with many campaigns.
func BenchmarkSubjects(b *testing.B) {
	for _, campaigns := range []int{10, 1_000} {
		s := newMall(b, campaigns)
		b.Run(fmt.Sprintf("start/%d", campaigns), func(b *testing.B) {
			for b.Loop() {
				s.openEngine()
				s.bench(b, s.engine.Rollups.Load(b.Context()))
			}
		})
		s.bench(b, s.refresher.Look(b.Context()))
		b.Run(fmt.Sprintf("idle/%d", campaigns), func(b *testing.B) {
			for b.Loop() {
				s.bench(b, s.refresher.Look(b.Context()))
			}
		})
		visitor := uint64(1000)
		b.Run(fmt.Sprintf("refresh/%d", campaigns), func(b *testing.B) {
			for b.Loop() {
				visitor++
				b.StopTimer()
				_, err := s.writer.Write(b.Context(), purchase(5, visitor))
				s.bench(b, err)
				b.StartTimer()
				s.engine.Written([]plan.Subject{{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 5}})
				s.bench(b, s.refresher.Look(b.Context()))
			}
		})
	}
}

func (s *shop) bench(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
