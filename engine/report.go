package engine

import (
	"context"
	"fmt"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Engine computes reports from the facts of a store.
type Engine struct {
	Facts  []*facts.Refresher // of the server, or of each shard
	Outbox *outbox.Outbox     // messages about decisions, checks, starts and stops

	store     *source.Store
	catalogue *catalogue.Catalogue
	decisions *decisions
	ledger    *looks.Ledger
	statuses  *statuses
}

// OpenFacts reads the state of the facts that the engine needs. It must be called before the first
// report.
func (e *Engine) OpenFacts(ctx context.Context) error {
	for _, shard := range e.Facts {
		if _, err := shard.OpenFacts(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ObserveQueries sets a function that is called with the duration and the error of each
// query. It must be called before the first report.
func (e *Engine) ObserveQueries(query func(elapsed time.Duration, err error)) {
	e.store.Observe = query
}

// New returns the engine of a store with facts.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits, of []*facts.Refresher) *Engine {
	s := &source.Store{Conn: conn, Limits: limits}
	return &Engine{Facts: of, store: s, catalogue: c, decisions: newDecisions(), ledger: looks.NewLedger(conn), statuses: newStatuses(), Outbox: outbox.New(conn)}
}

// PlanReport resolves a request against the catalogue. The error is an InvalidError or
// a NotFoundError.
func (e *Engine) PlanReport(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().AccountResources(r.AccountID))
}

// ComputeReport computes a report, including the results of the subject's looks. The error is an InvalidError, a
// StoreError, or the error of the context.
func (e *Engine) ComputeReport(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	x, err := e.prepareReport(ctx, p)
	if err != nil {
		return nil, err
	}
	report, err := e.computePrepared(ctx, x)
	if err == nil {
		report.AddWaiting(x.Waiting)
	}
	return report, err
}

func (e *Engine) computePrepared(ctx context.Context, x *source.ReportQuery) (_ *result.Report, err error) {
	var a *looks.Analysis
	if canDecide(x.Plan) {
		if a, err = e.cachedAnalysis(ctx, x); err != nil {
			return nil, err
		}
		if x.Scorecard {
			return e.scorecardReport(ctx, x, a)
		}
	}
	found, err := e.readRows(ctx, x)
	if err != nil {
		return nil, err
	}
	return e.reportFrom(ctx, x, found, a)
}

// readRows returns the rows of a report.
func (e *Engine) readRows(ctx context.Context, x *source.ReportQuery) (*moments.Rows, error) {
	return facts.Source{ReportQuery: x, Shards: e.Facts}.ReadRows(ctx)
}

// reportFrom computes a report from its rows and the results of the subject's looks; nil: there are none.
func (e *Engine) reportFrom(ctx context.Context, x *source.ReportQuery, found *moments.Rows, a *looks.Analysis) (results *result.Report, err error) {
	_, span := source.Tracer.Start(ctx, "stats")
	results = result.New(x.Plan, found, a)
	span.End()
	if x.Interval != "" {
		if results.Series, err = e.computeSeries(ctx, x, found); err != nil {
			return nil, err
		}
	}
	if a != nil && x.Dimension != "" && x.IsDeclared() && x.OfAllVisitors() {
		err = e.concludeSlices(ctx, x, a, results)
	}
	return results, err
}

// prepareReport waits until events are folded, see FoldNoted, and returns the query of a plan.
func (e *Engine) prepareReport(ctx context.Context, p *plan.Plan) (*source.ReportQuery, error) {
	ctx, span := source.Tracer.Start(ctx, "plan")
	waits, err := e.FoldNoted(ctx)
	source.EndSpan(span, err)
	if err != nil {
		return nil, err
	}
	stored, err := e.storedEvents(ctx, p.Subject)
	return &source.ReportQuery{Plan: e.AsOfFirstView(p), Store: e.store, Stored: stored, Waiting: waits}, err
}

// prepareJudgement is prepareReport for looks and messages, for which no event may wait.
func (e *Engine) prepareJudgement(ctx context.Context, p *plan.Plan) (*source.ReportQuery, error) {
	x, err := e.prepareReport(ctx, p)
	if err == nil && x.Waiting.Events > 0 {
		err = fmt.Errorf("%d events wait to be folded", x.Waiting.Events)
	}
	return x, err
}

// RefreshFacts folds all stored events.
func (e *Engine) RefreshFacts(ctx context.Context) error {
	for _, shard := range e.Facts {
		if _, err := shard.RefreshFacts(ctx); err != nil {
			return source.StoreFailure(ctx, err)
		}
	}
	return nil
}

// FoldNoted waits until the events that this process stored are folded. A server waits for a short time only, and
// returns the events that still wait.
func (e *Engine) FoldNoted(ctx context.Context) (all moments.Waiting, err error) {
	for _, shard := range e.Facts {
		waits, err := shard.AwaitNoted(ctx)
		if err != nil {
			return all, source.StoreFailure(ctx, err)
		}
		if waits.Events > 0 {
			all.Events += waits.Events
			all.Reason = waits.Reason
		}
	}
	return all, nil
}

// IsFollowing reports whether this process keeps the facts up to date.
func (e *Engine) IsFollowing() bool { return len(e.Facts) > 0 && e.Facts[0].IsFollowing() }

// LastUnfoldedTime returns the acceptance time of the last event that this process stored and has not folded yet,
// in milliseconds since 1970; 0: all are folded.
func (e *Engine) LastUnfoldedTime() (last int64) {
	for _, shard := range e.Facts {
		last = max(last, shard.LastUnfoldedTime())
	}
	return last
}

// FoldedThrough returns the latest acceptance time of the events that the facts include, as this process last read it.
func (e *Engine) FoldedThrough() (last time.Time) {
	for _, shard := range e.Facts {
		if at := shard.ShownPosition().FoldedThrough(); at.After(last) {
			last = at
		}
	}
	return last
}

// storedEvents returns what is known of the stored events of a subject.
func (e *Engine) storedEvents(ctx context.Context, of schema.Subject) (source.Stored, error) {
	var s source.Stored
	for _, shard := range e.Facts {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return source.Stored{}, source.StoreFailure(ctx, err)
		}
		counters := shard.SubjectCounters(of)
		s = s.WithEvents(counters.AllEvents(), time.UnixMilli(at.Through), time.UnixMilli(counters.Newest))
	}
	return s.OrNone(), nil
}

// SubjectCounters returns the counters of a subject on all shards.
func (e *Engine) SubjectCounters(of schema.Subject) facts.SubjectCounters {
	all := facts.SubjectCounters{}
	for _, shard := range e.Facts {
		on := shard.SubjectCounters(of)
		all.Merge(&on)
	}
	return all
}

// firstView returns when the first views of a subject happened, and when the first one was accepted. It returns false
// if there is none.
func (e *Engine) firstView(of schema.Subject) (looks.FirstView, bool) {
	extent := e.SubjectCounters(of).Extent
	if extent.FirstView == 0 {
		return looks.FirstView{}, false
	}
	at := func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms).UTC()
	}
	first := looks.FirstView{Time: at(extent.FirstView), OnTime: at(extent.FirstOnTime), Accepted: at(extent.FirstAccepted())}
	first.Imported = extent.AcceptedLate != 0 && (extent.AcceptedOnTime == 0 || extent.AcceptedLate <= extent.AcceptedOnTime)
	return first, true
}

// ResultsVersion returns a number that changes whenever the results of the subject may
// change: with its facts, and with the day. Versions agree between servers of a store. It returns
// false if the version is not known because the store does not answer.
func (e *Engine) ResultsVersion(ctx context.Context, of schema.Subject) (version uint64, known bool) {
	day, known := e.lastDay(ctx)
	return e.versionOn(day, of), known
}

// lastDay returns the later of today and the day of the last acceptance, in days since 1970. It returns false if the
// store does not answer.
func (e *Engine) lastDay(ctx context.Context) (day int64, known bool) {
	day = fold.DayOf(time.Now().UnixMilli())
	for _, shard := range e.Facts {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return 0, false
		}
		day = max(day, fold.DayOf(at.Through))
	}
	return day, true
}

// versionOn returns the version of a subject on a day.
func (e *Engine) versionOn(day int64, of schema.Subject) uint64 {
	version := uint64(day) //nolint:gosec // not negative
	for _, shard := range e.Facts {
		version ^= shard.SubjectCounters(of).Version
	}
	return version
}

// FactsLag returns the longest time since the last refresh that succeeded, of a server or shard.
func (e *Engine) FactsLag() (longest time.Duration) {
	for _, shard := range e.Facts {
		longest = max(longest, shard.RefreshLag())
	}
	return longest
}

// LostVisitors returns the number of visitors of the last scrubs who lost events.
func (e *Engine) LostVisitors() (n int) {
	for _, shard := range e.Facts {
		n += shard.LostVisitors()
	}
	return n
}
