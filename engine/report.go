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
	Outbox *outbox.Outbox // messages about decisions, checks, starts and stops

	shards    facts.Shards
	store     *source.Store
	catalogue *catalogue.Catalogue
	decisions *decisions
	ledger    *looks.Ledger
	statuses  *statuses
}

// ObserveQueries sets a function that is called with the duration and the error of each
// query. It must be called before the first report.
func (e *Engine) ObserveQueries(query func(elapsed time.Duration, err error)) {
	e.store.Observe = query
}

// New returns the engine of a store with facts.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits, shards facts.Shards) *Engine {
	s := &source.Store{Conn: conn, Limits: limits}
	return &Engine{shards: shards, store: s, catalogue: c, decisions: newDecisions(), ledger: looks.NewLedger(conn), statuses: newStatuses(), Outbox: outbox.New(conn)}
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
	if canDecide(x.Plan) && (x.Scorecard || x.IsDeclared() && x.OfAllVisitors()) {
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
	return facts.Source{ReportQuery: x, Shards: e.shards}.ReadRows(ctx)
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
	stored, err := e.shards.StoredEvents(ctx, p.Subject)
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

// FoldNoted waits until the events that this process stored are folded, see facts.Shards.AwaitNoted.
func (e *Engine) FoldNoted(ctx context.Context) (moments.Waiting, error) {
	return e.shards.AwaitNoted(ctx)
}

// LastUnfoldedTime returns the acceptance time of the last event that this process stored and has not folded yet.
func (e *Engine) LastUnfoldedTime() int64 { return e.shards.LastUnfoldedTime() }

// firstView returns when the first views of a subject happened, and when the first one was accepted. It returns false
// if there is none.
func (e *Engine) firstView(of schema.Subject) (looks.FirstView, bool) {
	extent := e.shards.SubjectCounters(of).Extent
	if extent.FirstView == 0 {
		return looks.FirstView{}, false
	}
	first := looks.FirstView{
		Time: fold.TimeOf(extent.FirstView), OnTime: fold.TimeOf(extent.FirstOnTime), Accepted: fold.TimeOf(extent.FirstAccepted()),
	}
	first.Imported = extent.AcceptedLate != 0 && (extent.AcceptedOnTime == 0 || extent.AcceptedLate <= extent.AcceptedOnTime)
	return first, true
}

// ResultsVersion returns a number that changes whenever the results of the subject may
// change: with its facts, and with the day. Versions agree between servers of a store. It returns
// false if the version is not known because the store does not answer.
func (e *Engine) ResultsVersion(ctx context.Context, of schema.Subject) (version uint64, known bool) {
	day, known := e.shards.LastDay(ctx)
	return e.shards.VersionOn(day, of), known
}
