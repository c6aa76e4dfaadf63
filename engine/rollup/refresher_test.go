package rollup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
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

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func TestMain(m *testing.M) { schematest.Main(m) }

var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// shop is a store with a campaign of three variations, one of them unknown to
// the catalogue, a widget with an experiment, and a refresher.
type shop struct {
	t         *testing.T
	conn      driver.Conn
	writer    *ingest.Writer
	engine    *engine.Engine
	refresher *rollup.Refresher
	catalogue *catalogue.Catalogue
	*rand.Rand
	sent []schema.Event
}

func newShop(t *testing.T, seed uint64) *shop {
	t.Helper()
	s := newShopOn(t, seed, schematest.Open(t))
	s.writer.SetExclusive()
	s.writer.AfterInsert(s.engine.Rollups.Inserted)
	s.refresher = rollup.New(s.conn, s.writer, s.engine.Rollups.Indexes()[0])
	return s
}

// newShopOn returns a shop without a refresher.
func newShopOn(t *testing.T, seed uint64, conn driver.Conn) *shop {
	t.Helper()
	s := &shop{t: t, conn: conn, Rand: rand.New(rand.NewPCG(seed, 0))}
	c, err := catalogue.Open(t.Context(), s.conn)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("testdata/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	declared, err := catalogue.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), declared, false); err != nil {
		t.Fatal(err)
	}
	s.catalogue = c
	s.engine = engine.New(s.conn, c, source.Limits{InProcessEvents: 5})
	s.writer = ingest.NewWriter(s.conn)
	s.writer.SetRollups(s.engine.Rollups)
	return s
}

func pick[T any](s *shop, from ...T) T { return from[s.IntN(len(from))] }

// event returns an event of one of few visitors on one of few days, so that
// collisions are frequent.
func (s *shop) event() schema.Event {
	e := schema.Event{
		EventID: s.Uint64() % 100_000, WebsiteID: 1, VisitorID: schema.Hash(visitorName(s.IntN(110))), VariationID: int64(s.IntN(2)),
		Time: start.Add(time.Duration(s.IntN(12)) * 12 * time.Hour), Subject: schema.SubjectCampaign, SubjectID: 12,
		Attributes: schema.Attributes{
			Device: pick(s, "mobile", "desktop", ""), Browser: pick(s, "chrome", "safari"), OS: pick(s, "ios", "linux"), Country: pick(s, "US", "FR", "DE", ""),
			Channel: pick(s, "paid", "(other)"), Referrer: fmt.Sprint("https://", s.IntN(70)), VisitorType: pick(s, "new", "returning", ""),
			UTMSource: pick(s, "", "a*", `b\`), UTMMedium: pick(s, "", "m"), UTMCampaign: pick(s, "", "c"), City: pick(s, "Ulm", "", "", "Bad "+fmt.Sprint(s.IntN(70))),
		},
	}
	if s.IntN(3) == 0 {
		e.Time = e.Time.Add(time.Duration(s.Int64N(int64(12*time.Hour))) / 1e6 * 1e6)
	}
	if s.IntN(20) == 0 {
		e.VariationID = 7 // unknown
	}
	e.Kind = pick(s, schema.KindView, schema.KindView, schema.KindGoal, schema.KindGoal, schema.KindConversion)
	if s.IntN(3) == 0 {
		e.Subject, e.SubjectID, e.ExperimentID = schema.SubjectWidget, 3, pick[int64](s, 0, 5)
		e.Kind = pick(s, schema.KindView, schema.KindView, schema.KindClick, schema.KindSubmit, schema.KindCompletion, schema.KindConversion, schema.KindContact, schema.KindGoal)
	}
	if e.Kind == schema.KindGoal {
		e.GoalID = int64(1 + s.IntN(2))
		e.Value, e.Profit, e.ExtraValue = s.money(), s.money(), s.money()
		if s.IntN(4) == 0 { // it counts for whatever its visitor saw
			e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
		}
	}
	return e
}

func visitorName(n int) string { return fmt.Sprint("visitor ", n) }

func (s *shop) money() int64 {
	switch s.IntN(4) {
	case 0:
		return 0
	case 1:
		return -s.Int64N(1_000_000)
	case 2:
		return s.Int64N(schema.MaxMoney * schema.MoneyScale)
	}
	return s.Int64N(1_000_000)
}

func (s *shop) write(events ...schema.Event) {
	s.t.Helper()
	if _, err := s.writer.Write(s.t.Context(), events); err != nil {
		s.t.Fatal(err)
	}
	s.sent = append(s.sent, events...)
}

// more writes new events, and some events again.
func (s *shop) more(n int) {
	s.t.Helper()
	var events []schema.Event
	for range n {
		events = append(events, s.event())
		if len(s.sent) > 0 && s.IntN(5) == 0 {
			again := s.sent[s.IntN(len(s.sent))]
			if s.IntN(2) == 0 { // with other content, which is rejected
				again.Time, again.Value = s.event().Time, again.Value+1
			}
			events = append(events, again)
		}
	}
	s.write(events...)
}

func (s *shop) refresh() {
	s.t.Helper()
	if err := s.refresher.RefreshAll(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// request returns a random request for one of the subjects.
func (s *shop) request() query.Request {
	r := query.Request{AccountID: 1, SubjectID: 12, Metric: pick(s, query.GoalConversionRate, query.ValuePerVisitor, query.ProfitPerVisitor)}
	switch s.IntN(3) {
	case 0:
		r.Operation, r.SubjectID = query.WidgetResults, 3
	case 1:
		r.Operation, r.SubjectID, r.ExperimentID = query.ExperimentResults, 3, 5
	}
	r.GoalID = int64(s.IntN(3))
	if s.IntN(2) == 0 {
		s.anything(&r)
	} else {
		by, day := rollup.CubeAt(s.IntN(rollup.CubeCount))
		s.ofCube(&r, by, day)
	}
	return r
}

// attributes are the columns of cubes by their names in the API, and values of
// them.
var (
	attributes = map[string]string{
		"device": "device", "country": "country", "channel": "channel", "browser": "browser", "os": "os", "visitor_type": "visitorType",
		"referrer": "referrer", "utm_source": "utmSource", "utm_medium": "utmMedium", "utm_campaign": "utmCampaign",
		"city": "city",
	}
	lists = map[string][]string{"device": {"mobile", ""}, "browser": {"safari"}, "os": {"ios"}, "country": {"US", "DE"}, "city": {"Ulm"}}
	texts = map[string][]string{
		"utmSource": {"a*", "*", `b\`, ""}, "utmMedium": {"m"}, "utmCampaign": {"c"}, "visitorType": {"new", "returning"}, "referrer": {"https://1*", "https://20"},
	}
)

// ofCube sets a request that a cube with the columns and perhaps the day of the
// event can serve.
func (s *shop) ofCube(r *query.Request, by []string, day bool) {
	for _, column := range by {
		attribute := attributes[column]
		dimensions := []string{"device", "country", "channel", "referrer", "city"}
		if r.Operation == query.CampaignResults && r.Dimension == "" && slices.Contains(dimensions, attribute) && s.IntN(2) == 0 {
			r.Dimension = query.Dimension(attribute)
			continue
		}
		s.filter(r, attribute)
	}
	if day {
		if s.IntN(2) == 0 {
			r.Interval = pick(s, query.Daily, query.Weekly)
		}
		if s.IntN(3) > 0 {
			r.Filters.From = start.AddDate(0, 0, s.IntN(9)-1)
		}
		if s.IntN(3) > 0 {
			r.Filters.To = start.AddDate(0, 0, s.IntN(9)-1)
		}
	}
}

func (s *shop) filter(r *query.Request, attribute string) {
	if values, isList := lists[attribute]; isList {
		r.Filters.Lists = append(r.Filters.Lists, query.ListFilter{Attribute: attribute, Values: values})
	} else if patterns, isText := texts[attribute]; isText {
		r.Filters.Texts = append(r.Filters.Texts, query.TextFilter{Attribute: attribute, Pattern: pick(s, patterns...)})
	}
}

// anything sets a request that may need the events.
func (s *shop) anything(r *query.Request) {
	if r.Operation != query.WidgetResults {
		r.Dimension = pick(s, "", query.ByDevice, query.ByCountry, query.ByReferrer, "browser", "city", "utmSource", "visitorType", "utmTerm")
	}
	r.Interval = pick(s, "", query.Daily, query.Weekly, query.Hourly)
	if s.IntN(3) == 0 {
		r.Filters.From = s.bound()
	}
	if s.IntN(3) == 0 {
		r.Filters.To = s.bound()
	}
	for _, attribute := range []string{"device", "browser", "os", "country", "city", "utmSource", "utmCampaign", "visitorType", "referrer"} {
		if s.IntN(9) == 0 {
			s.filter(r, attribute)
		}
	}
	if s.IntN(6) == 0 {
		r.Filters.GoalValue = big.NewRat(int64(s.IntN(100)), 7)
	}
}

func (s *shop) bound() time.Time {
	at := start.AddDate(0, 0, s.IntN(9)-1)
	if s.IntN(8) == 0 {
		at = at.Add(time.Hour)
	}
	return at
}

// body returns a report without the fields that depend on the source.
func (s *shop) body(r query.Request) (text []byte, source string) {
	s.t.Helper()
	return s.bodyOf(s.plan(r))
}

func (s *shop) plan(r query.Request) *plan.Plan {
	s.t.Helper()
	plan, err := s.engine.Plan(r)
	if err != nil {
		s.t.Fatalf("%+v: %v", r, err)
	}
	return plan
}

func (s *shop) bodyOf(plan *plan.Plan) (text []byte, source string) {
	s.t.Helper()
	var taken string
	s.engine.Observe(nil, func(source string) { taken = source })
	report, err := s.engine.Report(s.t.Context(), plan)
	if err != nil {
		s.t.Fatalf("%s: %v: %v", plan, err, errors.Unwrap(err))
	}
	report.GeneratedAt = time.Time{}
	text, err = json.Marshal(report)
	if err != nil {
		s.t.Fatal(err)
	}
	return text, taken
}

// compare compares reports from rollups with reports from the events.
func (s *shop) compare(reports int, paths map[string]int) {
	s.t.Helper()
	for i := range reports {
		r := s.request()
		if ranked := []query.Dimension{query.ByReferrer, "city"}; i < len(ranked) {
			r = query.Request{AccountID: 1, SubjectID: 12, Metric: query.ValuePerVisitor, Dimension: ranked[i]}
		}
		s.compareOne(&r, paths)
	}
}

// compareOne compares a report from the cubes or the rows of visitors with one
// from the events.
func (s *shop) compareOne(r *query.Request, paths map[string]int) {
	s.t.Helper()
	got, path := s.body(*r)
	paths[path]++
	if path != source.NameRollup && path != source.NameVisitors {
		return
	}
	var body struct{ DataThrough time.Time }
	if err := json.Unmarshal(got, &body); err != nil {
		s.t.Fatal(err)
	}
	if want := s.exact(*r, body.DataThrough); !bytes.Equal(got, want) {
		at := 0 // the first byte that differs
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		at = max(0, at-1000)
		s.t.Fatalf("%+v\nfrom byte %d of %s\n   rows %.2000s\n  exact %.2000s", *r, at, path, got[at:], want[at:])
	}
}

// exact returns the report counted from the events accepted up to a time.
func (s *shop) exact(r query.Request, through time.Time) []byte {
	s.t.Helper()
	conn := s.conn
	if !through.Equal(s.lastAccepted(r)) {
		conn = s.past(through)
	}
	report, err := engine.New(conn, s.catalogue, source.Limits{}).Report(s.t.Context(), s.plan(r))
	if err != nil {
		s.t.Fatal(err)
	}
	report.GeneratedAt = time.Time{}
	text, err := json.Marshal(report)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// lastAccepted returns the acceptance time of the last event of the subject.
func (s *shop) lastAccepted(r query.Request) time.Time {
	s.t.Helper()
	var at time.Time
	if err := s.conn.QueryRow(s.t.Context(), "SELECT max(ingested_at) FROM events WHERE subject_id = {id:Int64} AND experiment_id = {experiment:Int64}",
		clickhouse.Named("id", r.SubjectID), clickhouse.Named("experiment", r.ExperimentID)).Scan(&at); err != nil {
		s.t.Fatal(err)
	}
	return at.UTC()
}

// past returns a store with the events accepted up to a time.
func (s *shop) past(through time.Time) driver.Conn {
	s.t.Helper()
	conn := schematest.Open(s.t)
	var from string
	if err := s.conn.QueryRow(s.t.Context(), "SELECT currentDatabase()").Scan(&from); err != nil {
		s.t.Fatal(err)
	}
	if err := conn.Exec(s.t.Context(), "INSERT INTO events SELECT * FROM "+from+".events WHERE ingested_at <= {through:DateTime64(3, 'UTC')}",
		clickhouse.DateNamed("through", through, clickhouse.MilliSeconds)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestRollupEqualsReference(t *testing.T) {
	worlds, rounds := tier.Of(1, 1, 8), tier.Of(2, 2, 8)
	paths := map[string]int{}
	for seed := range uint64(worlds) { //nolint:gosec // few
		s := newShop(t, seed)
		for range rounds {
			s.more(1 + s.IntN(60))
			s.noise()
			switch s.IntN(8) {
			case 0:
				s.retain()
			case 1:
				s.forget()
			case 2:
				s.loseParts()
			}
			s.refresh()
			s.compareCounters()
			if s.IntN(2) == 0 {
				s.rebuild()
			}
			s.compare(12, paths)
		}
	}
	t.Log(paths)
	if paths[source.NameRollup] < paths[source.NameSinglePass] {
		t.Errorf("reports by path: %v", paths)
	}
}

// TestVisitorsEqualReference requests reports that no cube expresses, also after
// late events, whose visitors have other first views then.
func TestVisitorsEqualReference(t *testing.T) {
	worlds, rounds := tier.Of(1, 1, 8), tier.Of(3, 3, 6)
	paths := map[string]int{}
	for seed := range uint64(worlds) { //nolint:gosec // few
		s := newShop(t, 100+seed)
		for range rounds {
			s.more(200)
			s.refresh()
			if s.IntN(2) == 0 {
				if err := s.refresher.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.more(20)
				s.refresh()
			}
			for range 25 {
				r := query.Request{AccountID: 1, SubjectID: 12, Metric: pick(s, query.GoalConversionRate, query.ValuePerVisitor), GoalID: int64(s.IntN(3))}
				if s.IntN(3) == 0 {
					r.Operation, r.SubjectID, r.ExperimentID = query.ExperimentResults, 3, 5
				}
				s.anything(&r)
				s.compareOne(&r, paths)
			}
		}
	}
	t.Log(paths)
	if n := paths[source.NameVisitors]; 10*n < 3*worlds*rounds*25 {
		t.Errorf("reports by source: %v; want at least 30 %% of %d from the rows of visitors", paths, worlds*rounds*25)
	}
}

// rebuild makes new generations with other frequent values.
func (s *shop) rebuild() {
	s.t.Helper()
	s.refresher.MostFrequent(pick(s, 0, 3, 30, 200))
	s.refresher.FoldEvents(pick[uint64](s, 0, 1_000_000))
	if err := s.refresher.Rebuild(s.t.Context(), func(plan.Subject, time.Duration, error) {}); err != nil {
		s.t.Fatal(err)
	}
}

// TestFreshReportsHaveEveryEvent requests reports between two refreshes: as of the
// last refresh, and with all later events.
func TestFreshReportsHaveEveryEvent(t *testing.T) {
	s := newShop(t, 7)
	s.more(100)
	s.refresh()
	if err := s.engine.Totals.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := query.Request{AccountID: 1, SubjectID: 12, Metric: query.ValuePerVisitor}
	subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	version := func() uint64 {
		version, known := s.engine.Version(t.Context(), subject)
		if !known {
			t.Fatal("no version")
		}
		return version
	}
	first, path := s.body(r)
	before := version()
	s.more(100)
	if err := s.engine.Totals.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.body(r); path != source.NameRollup || !bytes.Equal(first, again) || version() != before {
		t.Errorf("%s: the report changed without a refresh", path)
	}
	counted, path := s.bodyOf(s.plan(r).WithAllEvents())
	if path != source.NameSinglePass || bytes.Equal(first, counted) {
		t.Errorf("%s: a fresh report lacks events after the last refresh", path)
	}
	if !s.engine.BringUpToDate(t.Context(), subject) {
		t.Error("the rollup was not brought up to date")
	}
	fromRollup, path := s.body(r)
	if path != source.NameRollup || !bytes.Equal(fromRollup, counted) || version() == before {
		t.Errorf("%s: refreshed for a fresh report\n got %.800s\nwant %.800s", path, fromRollup, counted)
	}
	s.refresh()
	for _, of := range []plan.Subject{subject, {WebsiteID: 1, Kind: schema.SubjectWidget, ID: 3, ExperimentID: 5}} {
		if n, skipped, err := s.engine.Verify(t.Context(), of); n == 0 || len(skipped) > 0 || err != nil {
			t.Errorf("%s: %d compared, not %q, %v", of, n, skipped, err)
		}
	}
}

// TestVerifyFindsWhatDiffers inserts a wrong row into the rollups, and events that they
// lack.
func TestVerifyFindsWhatDiffers(t *testing.T) {
	s := newShop(t, 8)
	s.more(100)
	s.refresh()
	if err := s.conn.Exec(t.Context(), "INSERT INTO rollups SELECT * REPLACE (1 AS visitors) FROM rollups WHERE cube_name = 'all by first day' AND event = 'view' AND subject = 'campaign' LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	_, _, err := s.engine.Verify(t.Context(), subject)
	var differs *engine.DiffersError
	if !errors.As(err, &differs) {
		t.Fatalf("spoilt sums pass: %v", err)
	}
	if err := s.refresher.Rebuild(t.Context(), func(plan.Subject, time.Duration, error) {}); err != nil {
		t.Fatal(err)
	}
	if n, skipped, err := s.engine.Verify(t.Context(), subject); n == 0 || len(skipped) > 0 || err != nil {
		t.Errorf("after a rebuild: %d compared, not %q, %v", n, skipped, err)
	}
	s.more(100)
	if n, skipped, err := s.engine.Verify(t.Context(), subject); n > 0 || len(skipped) == 0 || err != nil {
		t.Errorf("a rollup that lacks events: %d compared, not %q, %v", n, skipped, err)
	}
}

// TestOverflowIsCountedFromTheEvents has amounts whose squares overflow.
func TestOverflowIsCountedFromTheEvents(t *testing.T) {
	s := newShop(t, 9)
	var events []schema.Event
	for range 300 {
		e := s.event()
		e.VisitorID, e.Subject, e.SubjectID, e.ExperimentID = 5, schema.SubjectCampaign, 12, 0
		if e.Kind != schema.KindView {
			e.Kind, e.GoalID, e.Value = schema.KindGoal, 1, schema.MaxMoney*schema.MoneyScale
		}
		events = append(events, e)
	}
	s.write(events...)
	s.refresh()
	s.more(10)
	s.refresh()
	if _, path := s.body(query.Request{AccountID: 1, SubjectID: 12, Metric: query.ValuePerVisitor}); path != source.NameSinglePass {
		t.Errorf("the report is %s", path)
	}
}
