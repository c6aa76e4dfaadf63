package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// factsOf are the facts of the events of a test.
type factsOf struct {
	*facts.Refresher // nil: there are none
}

var sentAt atomic.Int64

// insertFacts stores the events as they were sent, and folds them.
func insertFacts(t *testing.T, conn driver.Conn, events []schema.Event) factsOf {
	t.Helper()
	if _, err := schema.Migrate(t.Context(), conn); err != nil {
		fatal(t, err)
	}
	r := facts.NewRefresher(conn, true)
	of := factsOf{Refresher: r}
	for _, half := range [][]schema.Event{events[:len(events)/2], events[len(events)/2:]} {
		if len(half) == 0 {
			continue
		}
		if err := schema.InsertEvents(t.Context(), conn, half, accepted.Add(time.Duration(sentAt.Add(1))*time.Millisecond)); err != nil {
			fatal(t, err)
		}
		if _, err := r.Refresh(t.Context()); err != nil {
			fatal(t, err)
		}
	}
	return of
}

// compare compares the answer from the facts with the fold, and its breakdown with
// that of another source.
func (of factsOf) compare(t *testing.T, x *source.Execution, events []schema.Event, other *result.Report) {
	t.Helper()
	if of.Refresher == nil {
		return // servers have no facts yet
	}
	unlimited := *x
	unlimited.Limited, unlimited.Outliers = nil, nil
	found, _, err := facts.Source{Execution: &unlimited, Shards: []*facts.Refresher{of.Refresher}}.Read(t.Context())
	if err != nil {
		fatal(t, err)
	}
	if x.Cap != nil && found.Cap.Limit != x.Limited.Limit {
		t.Errorf("limit %d of the facts, want %d\n%s", found.Cap.Limit, x.Limited.Limit, x.Plan)
	}
	if got, want := written(t, result.New(x.Plan, found, nil).Breakdown), written(t, other.Breakdown); got != want {
		t.Errorf("breakdown\n got %.1500s\nwant %.1500s\n%s", got, want, x.Plan)
	}
	whole, undivided := *x, *x.Plan
	undivided.Dimension, whole.Plan = "", &undivided
	compareRows(t, &whole, found.Whole, events)
	if x.Interval == "" {
		return
	}
	got, err := series(t.Context(), x, stateOf(x), found)
	if err != nil {
		fatal(t, err)
	}
	want, err := series(t.Context(), x, stateOf(x), readFrom(t, x, 0))
	if err != nil {
		fatal(t, err)
	}
	if g, w := written(t, got), written(t, want); g != w {
		t.Errorf("%s\nfrom the facts %s\ncounted here %s", x.Plan, g, w)
	}
}

// copyToFacts copies some of the stored events, those that were sent, to a table, and folds them.
func copyToFacts(t *testing.T, conn driver.Conn, table, which string, r *facts.Refresher) {
	t.Helper()
	const columns = `website_id, subject, subject_id, experiment_id, visitor_id, time, event_id, variation_id, event, goal_id, value, profit, extra_value, device,
		browser, os, country, region, city, channel, referrer, utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type, ingested_at`
	err := conn.Exec(t.Context(), "INSERT INTO "+table+" ("+columns+") SELECT "+columns+" FROM events WHERE NOT derived AND "+which+" AND ingested_at > (SELECT max(ingested_at) FROM "+table+")")
	if err != nil {
		fatal(t, err)
	}
	if _, err := r.Refresh(t.Context()); err != nil {
		fatal(t, err)
	}
}

// TestReportsFromFactsEqualTheReference compares reports of all kinds with those that are counted from the events,
// while events arrive: late, repeated, conflicting and without exposures.
func TestReportsFromFactsEqualTheReference(t *testing.T) {
	requests := tier.Of(40, 60, 625)
	for seed := range uint64(tier.Of(2, 2, 8)) { // every other one has two shards
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := world{rand.New(rand.NewPCG(20261126, seed))}
			in := newFactsWorld(t, w, 1+int(seed%2))
			for i := range requests {
				if i%10 == 0 {
					in.send(t, 1+w.IntN(300))
				}
				r := w.request(1 + w.Int64N(2))
				for _, at := range []*time.Time{&r.Filters.From, &r.Filters.To} {
					if !at.IsZero() {
						*at = at.Add(time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5).Sub(start))
					}
				}
				if w.IntN(2) == 0 { // all visitors: from cells
					r.Filters, r.Dimension, r.Cap = query.Filters{}, "", nil
					if w.IntN(2) == 0 {
						if w.IntN(2) == 0 {
							r.Filters.From = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -8-w.IntN(3))
						}
						r.Filters.To = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -w.IntN(8))
					}
					if w.IntN(3) == 0 {
						r.Interval = query.Daily
					}
				}
				r.Scorecard = r.Operation != query.WidgetResults && w.IntN(6) == 0
				in.compare(t, r)
				if t.Failed() {
					t.Fatalf("case %d", i)
				}
			}
		})
	}
}

// factsWorld is a store whose events are counted by two engines: from events and from facts.
type factsWorld struct {
	world
	conn           driver.Conn
	writer         *ingest.Writer
	counted, facts *Engine
	shards         []*facts.Refresher
	databases      []string // of the shards
	sent           []schema.Event
}

func newFactsWorld(t *testing.T, w world, shards int) *factsWorld {
	t.Helper()
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	site := catalogue.Website{ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "one"}, {ID: 2, WebsiteID: 1, Name: "two"}}}
	for id := int64(1); id <= 2; id++ {
		site.Campaigns, site.Widgets = append(site.Campaigns, w.campaign(id)), append(site.Widgets, w.widget(id))
	}
	if _, err := c.Apply(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false); err != nil {
		t.Fatal(err)
	}
	in := &factsWorld{world: w, conn: conn, writer: ingest.NewWriter(conn, nil), counted: New(conn, c, source.DefaultLimits), facts: New(conn, c, source.DefaultLimits)}
	for range shards {
		in.addShard(t)
	}
	in.facts.useFacts(in.shards...)
	return in
}

// addShard adds a shard, which is a database of its own.
func (in *factsWorld) addShard(t *testing.T) {
	t.Helper()
	conn := schematest.Empty(t)
	if _, err := schema.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(t.Context(), "RENAME TABLE facts TO facts_local, events TO events_local"); err != nil {
		t.Fatal(err)
	}
	var database string
	if err := conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	r := facts.NewShardRefresher([]driver.Conn{conn})
	r.LeastVisitorsByDay = 20
	in.shards, in.databases = append(in.shards, r), append(in.databases, database)
}

// lastWeeks moves a time of a world to the last days before now, so that some of them are recent.
func (in *factsWorld) lastWeeks(at time.Time) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1-in.IntN(9)).Add(at.Sub(start))
}

// send stores events, and folds them.
func (in *factsWorld) send(t *testing.T, n int) {
	t.Helper()
	var events []schema.Event
	for range n {
		e := in.event(1 + in.Int64N(2))
		e.Time = in.lastWeeks(e.Time)
		switch {
		case len(in.sent) > 0 && in.IntN(6) == 0: // again, perhaps with other content
			e = in.sent[in.IntN(len(in.sent))]
			if in.IntN(3) == 0 {
				e.Value, e.Device = e.Value/2, "tablet"
			}
		case e.Kind == schema.KindGoal && in.IntN(3) == 0:
			e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
		}
		events, in.sent = append(events, e), append(in.sent, e)
	}
	if err := in.writer.Write(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	for i, r := range in.shards {
		copyToFacts(t, in.conn, in.databases[i]+".events_local", fmt.Sprintf("visitor_id %% %d = %d", len(in.shards), i), r)
	}
}

// compare compares the two engines' reports, values and versions.
func (in *factsWorld) compare(t *testing.T, r query.Request) {
	t.Helper()
	p := planOf(t, in.facts, r)
	before, _ := in.facts.Version(t.Context(), p.Subject)
	want, err := in.counted.Reference(t.Context(), p)
	invalid := new(query.InvalidError)
	if errors.As(err, &invalid) {
		return // too many points
	}
	if err != nil {
		fatal(t, err)
	}
	got, err := in.facts.Report(t.Context(), p)
	if err != nil {
		fatal(t, err)
	}
	got.GeneratedAt, got.DataThrough, got.NewestEvent = want.GeneratedAt, want.DataThrough, want.NewestEvent // of all subjects
	if g, w := inJSON(t, got), inJSON(t, want); g != w {
		t.Errorf("from facts\n%s\nfrom events\n%s\n%s", g, w, p)
	}
	gotValues, err := in.facts.Values(t.Context(), p, "city", 3)
	if err != nil {
		fatal(t, err)
	}
	wantValues, err := in.counted.Values(t.Context(), p, "city", 3)
	if err != nil {
		fatal(t, err)
	}
	gotValues.DataThrough = wantValues.DataThrough
	if g, w := inJSON(t, gotValues), inJSON(t, wantValues); g != w {
		t.Errorf("values %s, want %s\n%s", g, w, p.Subject)
	}
	if after, _ := in.facts.Version(t.Context(), p.Subject); after != before {
		t.Errorf("version %d, then %d of the same data", before, after)
	}
}
