package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Engine computes reports from the facts of a store.
type Engine struct {
	Ledger *looks.Ledger

	facts     facts.Reader
	catalogue *catalogue.Catalogue
	cache     *cache.Cache // of the results of looks
	analyzer  *looks.Analyzer
}

// looksMemory bounds the memory of the results of looks, in bytes: about 1 KiB for each look at a variation, and 50 KiB for
// the critical values of each comparison.
const looksMemory = 64 << 20

// New returns the engine of a store with facts.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits, shards facts.Shards) *Engine {
	results := cache.New(looksMemory)
	return &Engine{
		Ledger: looks.NewLedger(conn), facts: facts.Reader{Shards: shards, Store: &source.Store{Conn: conn, Limits: limits}},
		catalogue: c, cache: results, analyzer: looks.NewAnalyzer(results),
	}
}

// ObserveQueries sets a function that is called with the duration and the error of each
// query. It must be called before the first report.
func (e *Engine) ObserveQueries(query func(elapsed time.Duration, err error)) {
	e.facts.Store.Observe = query
}

// PlanReport resolves a request against the catalogue. The error is an InvalidError or
// a NotFoundError.
func (e *Engine) PlanReport(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().AccountResources(r.AccountID))
}

// Version identifies the data of a subject.
type Version struct {
	Known   bool            // whether the store answers
	Data    uint64          // changes with the facts, and with the day; the same on all servers of a store
	Waiting moments.Waiting // accepted events that a report does not include yet
}

// ReadVersion folds the events that wait, see facts.Shards.AwaitNoted, and returns the version of the subject's data. What
// is read later has the data of this version or newer data.
func (e *Engine) ReadVersion(ctx context.Context, subject schema.Subject) (Version, error) {
	ctx, span := source.Tracer.Start(ctx, "fold")
	waiting, err := e.facts.AwaitNoted(ctx)
	source.EndSpan(span, err)
	if err != nil {
		return Version{}, err
	}
	day, known := e.facts.LastDay(ctx)
	return Version{Known: known, Data: e.facts.VersionOn(day, subject), Waiting: waiting}, nil
}

// LastVersions returns the versions of subjects without folding what waits.
func (e *Engine) LastVersions(ctx context.Context, subjects []schema.Subject) []Version {
	day, known := e.facts.LastDay(ctx)
	versions := make([]Version, len(subjects))
	for i, subject := range subjects {
		versions[i] = Version{Known: known, Data: e.facts.VersionOn(day, subject)}
	}
	return versions
}

// firstView returns when the first views of a subject happened, and when the first one was accepted. It returns false
// if there is none.
func (e *Engine) firstView(subject schema.Subject) (looks.FirstView, bool) {
	extent := e.facts.SubjectCounters(subject).Extent
	if extent.FirstView == 0 {
		return looks.FirstView{}, false
	}
	first := looks.FirstView{
		Time: fold.TimeOf(extent.FirstView), OnTime: fold.TimeOf(extent.FirstOnTime), Accepted: fold.TimeOf(extent.FirstAccepted()),
	}
	first.Imported = extent.AcceptedLate != 0 && (extent.AcceptedOnTime == 0 || extent.AcceptedLate <= extent.AcceptedOnTime)
	return first, true
}

// AsOfFirstView returns the plan as it was in force when the first view of the subject
// was accepted.
func (e *Engine) AsOfFirstView(p *plan.Plan) *plan.Plan {
	first, viewed := e.firstView(p.Subject)
	if !viewed {
		return p // a change before the first view counts
	}
	return p.AsOf(first.Time, first.Accepted)
}

// CheckReady returns nil if the store answers and its tables are up to date.
func (e *Engine) CheckReady(ctx context.Context) error {
	if err := e.facts.Store.Ping(ctx); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	pending, err := schema.PendingMigrations(ctx, e.facts.Store.Conn)
	if err == nil && len(pending) > 0 {
		err = fmt.Errorf("pending migrations: %s", strings.Join(pending, ", "))
	}
	return err
}
