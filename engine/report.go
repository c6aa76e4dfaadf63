package engine

import (
	"context"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/live"
	"lifthouse/engine/looks"
	"lifthouse/engine/packed"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/semaphore"
)

// Engine computes reports from a store.
type Engine struct {
	Totals  *live.Totals // live totals of all subjects
	Rollups *rollup.Set  // rollups of the subjects

	facts         []*facts.Refresher // of each shard; nil: reports are read from events and rollups
	store         *source.Store
	catalogue     *catalogue.Catalogue
	observeSource func(string) // called with the source of each report
	decisions     *decisions
	ledger        *looks.Ledger
	statuses      *statuses
}

// Observe sets a function that is called with the duration and the error of each
// query, and one that is called with the source of each report. It must be called
// before the first report.
func (e *Engine) Observe(query func(elapsed time.Duration, err error), source func(name string)) {
	e.store.Observe, e.observeSource = query, source
}

// New returns the engine of a store.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits) *Engine {
	s := &source.Store{Conn: conn, Limits: limits, Shards: source.ShardsOf(conn)}
	if limits.Scans > 0 {
		s.Scans = semaphore.NewWeighted(int64(limits.Scans))
	}
	e := &Engine{store: s, catalogue: c, Totals: live.New(s), decisions: newDecisions(), ledger: looks.NewLedger(conn), statuses: newStatuses()}
	e.Rollups = rollup.NewSet(conn, limits.MaxInProcess(), c, e.Totals)
	return e
}

// SetOwn sets that only this process writes to the store, and that it calls Inserted and
// Written after each write. The engine then keeps totals and events of small subjects in
// memory. It must be called before the first report.
func (e *Engine) SetOwn() {
	e.Totals.SetOwn()
	e.store.Packed = packed.NewCache(packed.MaxBytes)
}

// Plan resolves a request against the catalogue. The error is an InvalidError or
// a NotFoundError.
func (e *Engine) Plan(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().Account(r.AccountID))
}

// Report computes a report from the cheapest source. The error is an
// InvalidError, a StoreError, or that of the context.
func (e *Engine) Report(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	x, s, err := e.prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	results, from, err := e.decideAndReport(ctx, x, s)
	if err == nil && e.observeSource != nil {
		e.observeSource(from)
	}
	return results, err
}

// FromEvents computes a report from the events, as Report does while there is no
// rollup.
func (e *Engine) FromEvents(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	return e.fromEvents(ctx, p, e.decideAndReport)
}

// Reference computes a report from the events, with all decisions of its days. It
// keeps nothing and uses nothing that was kept.
func (e *Engine) Reference(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	return e.fromEvents(ctx, p, e.decidedReport)
}

// fromEvents calls compute without the rollups.
func (e *Engine) fromEvents(ctx context.Context, p *plan.Plan, compute func(context.Context, *source.Execution, state) (*result.Report, string, error)) (*result.Report, error) {
	x, err := e.execution(ctx, p)
	if err != nil {
		return nil, err
	}
	results, _, err := compute(ctx, x, stateOf(x).withoutRollup())
	return results, err
}

// decidedReport computes a report with all conclusions, and returns the name of its
// source. It keeps nothing.
func (e *Engine) decidedReport(ctx context.Context, x *source.Execution, s state) (results *result.Report, from string, err error) {
	fresh := *e
	fresh.decisions = newDecisions()
	return fresh.decideAndReport(ctx, x, s)
}

// reportOf computes a report, and returns the name of its source.
func reportOf(ctx context.Context, x *source.Execution, s state, a *looks.Analysis) (results *result.Report, from string, err error) {
	found, from, err := read(ctx, x, s)
	if err != nil {
		return nil, "", err
	}
	results, err = reportFrom(ctx, x, s, found, a)
	return results, from, err
}

// reportFrom computes a report from its rows.
func reportFrom(ctx context.Context, x *source.Execution, s state, found *visit.Rows, a *looks.Analysis) (results *result.Report, err error) {
	_, span := source.Tracer.Start(ctx, "stats")
	results = result.New(x.Plan, found, a)
	span.End()
	if x.Interval != "" {
		results.Series, err = series(ctx, x, s, found)
	}
	return results, err
}

// execution reads from the store how fresh the data are.
func (e *Engine) execution(ctx context.Context, p *plan.Plan) (x *source.Execution, err error) {
	ctx, span := source.Tracer.Start(ctx, "plan")
	defer func() { source.EndSpan(span, err) }()
	if p, err = e.asOfFirstView(ctx, p); err != nil {
		return nil, err
	}
	x = &source.Execution{Plan: p, Store: e.store}
	x.Stored, err = e.stored(ctx, p.Subject)
	return x, err
}

// stateOf returns the state of a store without rollups.
func stateOf(x *source.Execution) state {
	return state{events: x.Stored.Events, through: x.Stored.Ingested, sharded: x.Store.Shards != nil}
}

// prepare returns the execution of a plan, and what the choice of its source
// depends on.
func (e *Engine) prepare(ctx context.Context, p *plan.Plan) (*source.Execution, state, error) {
	return e.prepareFrom(ctx, p, e.Rollups)
}

func (e *Engine) prepareFrom(ctx context.Context, p *plan.Plan, rollups *rollup.Set) (*source.Execution, state, error) {
	x, err := e.execution(ctx, p)
	if err != nil {
		return nil, state{}, err
	}
	s := stateOf(x)
	if s.facts = e.facts; s.facts != nil {
		return x, s, nil
	}
	if s.events < rollups.LeastEvents() {
		return x, s, nil
	}
	if err := rollups.Load(ctx); err != nil {
		return nil, state{}, err
	}
	if current, usable := rollups.Current(x.Subject, x.Stored); usable {
		s.rollup = current
	}
	return x, s, nil
}
