// Package engine computes reports. A report passes through these packages, in one direction:
//
//  1. query: ParseReport parses a query string into a Request. It is strict and returns all
//     errors together. It knows API names but no tables.
//  2. plan: New resolves the Request against the catalogue into a Plan: a Question (the
//     population, the window, the goal, the variations) and what decides it.
//  3. facts: Reader.ReadRows answers the Question with rows. Each row has the moments of one variation and one
//     dimension value. Moments are exact sums over visitors, so totals need no second query.
//     Package moments defines them.
//  4. result: New merges rows into slices. Package stats compares the variations of
//     a slice with control. A Report is the body of the response.
//  5. render: writes a Report as CSV, as a forest plot or as terminal tables.
//
// The results of the looks at the declared question are part of a report. Judgement has them; package watch records
// them and reports and carries out the decision.
//
// Package fold defines which visitors and events count. Package stats has the formulas. Package calculator computes the
// same comparisons from given sums.
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/cache"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Engine computes reports from the facts of a store.
type Engine struct {
	Ledger *looks.Ledger
	Daily  *daily.Log // what was done last about each subject

	facts     facts.Reader
	catalogue *catalogue.Catalogue
	cache     *cache.Cache // of the results of looks
	pools     *cache.Cache // of the fits of pools, each of which needs the looks of all campaigns of a website
	analyzer  *looks.Analyzer

	interactions keptInteractions
	acceptances  facts.Acceptances
}

// looksMemory bounds the memory of the results of looks, in bytes: about 1 KiB for each look at a variation, and 50 KiB
// for the critical values of each comparison.
const looksMemory = 64 << 20

// poolsMemory bounds the memory of the fits of pools, in bytes: those of some 10,000 campaigns. They have a cache of
// their own. Beside the looks, of which many campaigns have more than is kept, each request would evict and compute
// them.
const poolsMemory = 16 << 20

// New returns the engine of a store with facts.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits, shards facts.Shards) *Engine {
	results := cache.New(looksMemory)
	return &Engine{
		Ledger:    looks.NewLedger(conn),
		Daily:     daily.New(conn),
		facts:     facts.Reader{Shards: shards, Store: &source.Store{Conn: conn, Limits: limits}},
		catalogue: c, cache: results, pools: cache.New(poolsMemory), analyzer: looks.NewAnalyzer(results),
		interactions: newKeptInteractions(),
	}
}

// ObserveQueries sets a function that is called with the duration and the error of each query. It must be called before
// the first report.
func (e *Engine) ObserveQueries(query func(elapsed time.Duration, err error)) {
	e.facts.Store.Observe = query
}

// ReadPlanVersion is like ReadVersion, for a report.
func (e *Engine) ReadPlanVersion(ctx context.Context, p *plan.Plan) (Version, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err != nil {
		return version, err
	}
	version.Prior, err = e.learnedPrior(ctx, p)
	return version, err
}

// learnedPrior returns the prior that a plan learns from other campaigns; empty: it learns none.
func (e *Engine) learnedPrior(ctx context.Context, p *plan.Plan) (string, error) {
	if !e.AsOfFirstView(p).Rules.MustLearn() {
		return "", nil
	}
	inForce, err := e.PlanInForce(ctx, p)
	if err != nil {
		return "", err
	}
	prior, err := json.Marshal(inForce.Rules.StatedPrior)
	return string(prior), err
}

// ReadVersions is like ReadPlanVersion, for the declared questions of several subjects of an account. waiting are the
// accepted events of any subject that wait; no version has its own.
func (e *Engine) ReadVersions(
	ctx context.Context, owned *catalogue.AccountResources, subjects []schema.Subject,
) (versions []Version, waiting moments.Waiting, err error) {
	waiting, err = e.facts.AwaitNoted(ctx)
	if err != nil {
		return nil, waiting, err
	}
	versions = e.LastVersions(ctx, subjects)
	for i, subject := range subjects {
		if !versions[i].Known {
			return nil, waiting, &source.StoreError{Fault: source.Down}
		}
		p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
		if err != nil {
			return nil, waiting, err
		}
		versions[i].Prior, err = e.learnedPrior(ctx, p)
		if err != nil {
			return nil, waiting, err
		}
	}
	return versions, waiting, nil
}

// PlanReport resolves a request that needs no names of events against the catalogue. The error is an InvalidError or a
// NotFoundError.
func (e *Engine) PlanReport(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().AccountResources(r.AccountID))
}

// PlanWithNames resolves a request against the resources of its account and the names in events, unless the request has
// its names. The error is an InvalidError, a NotFoundError, or one of the store.
func (e *Engine) PlanWithNames(
	ctx context.Context, r query.Request, owned *catalogue.AccountResources,
) (*plan.Plan, error) {
	if r.NeedsNames() && r.Names == nil {
		var err error
		r.Names, err = e.ReadNames(ctx, owned, WebsiteOf(&r, owned))
		if err != nil {
			return nil, err
		}
	}
	return plan.New(r, owned)
}

// ReadNames returns the names that metrics of a website may contain.
func (e *Engine) ReadNames(
	ctx context.Context, owned *catalogue.AccountResources, website int64,
) (*metric.Names, error) {
	labels, err := schema.ReadLabels(ctx, e.facts.Store.Conn)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	labels = slices.DeleteFunc(labels, func(l schema.Label) bool { return l.WebsiteID != website })
	return plan.NamesOf(owned, website, labels), nil
}

// WebsiteOf returns the website of the subject of a request; 0: there is no such subject.
func WebsiteOf(r *query.Request, owned *catalogue.AccountResources) int64 {
	if r.Operation == query.CampaignResults {
		campaign := owned.Campaigns[r.SubjectID]
		return campaign.WebsiteID
	}
	widget := owned.Widgets[r.SubjectID]
	return widget.WebsiteID
}

// Version identifies the data of a subject.
type Version struct {
	Known    bool            // whether the store answers
	Data     uint64          // changes with the facts, and with the day; the same on all servers of a store
	Recorded uint64          // changes with the recorded looks of the subject, and with its interactions
	Prior    string          // that the report learns from other campaigns; empty: it learns none
	Accepted time.Time       // acceptance time up to which the data have all events; no part of the identity
	Waiting  moments.Waiting // accepted events that a report of the subject does not include yet
	Damage   moments.Damage  // of the data of the subject
}

// Key returns a text that is equal for equal data.
func (v *Version) Key() string {
	return fmt.Sprint(v.Data, " ", v.Recorded, " ", v.Prior, " ", v.Damage)
}

// ReadVersion folds the events that wait, see facts.Shards.AwaitNoted, and returns the version of the subject's data.
// What is read later has the data of this version or newer data.
func (e *Engine) ReadVersion(ctx context.Context, subject schema.Subject) (Version, error) {
	waiting, err := e.facts.AwaitNoted(ctx)
	if err != nil {
		return Version{}, err
	}
	if waiting.Events > 0 {
		waiting.Events, err = e.facts.CountWaiting(ctx, subject)
		if err != nil {
			return Version{}, err
		}
	}
	version := e.LastVersions(ctx, []schema.Subject{subject})[0]
	version.Waiting = waiting
	return version, nil
}

// LastVersions returns the versions of subjects without folding what waits.
func (e *Engine) LastVersions(ctx context.Context, subjects []schema.Subject) []Version {
	versions := make([]Version, len(subjects))
	moment, known := e.facts.ReadMoment(ctx)
	if !known {
		return versions
	}
	for i, subject := range subjects {
		recorded, err := e.Ledger.SubjectVersion(ctx, subject)
		if err != nil {
			return make([]Version, len(subjects))
		}
		versions[i] = Version{
			Known: true, Data: e.facts.VersionAt(moment, subject), Accepted: moment.Accepted,
			Recorded: recorded ^ e.interactions.versionOf(subject), Damage: e.facts.DamageOf(subject),
		}
	}
	return versions
}

// firstView returns when the first views of a subject happened, and when the first one was accepted. If there is none,
// its time is zero.
func (e *Engine) firstView(subject schema.Subject) looks.FirstView {
	extent := e.facts.SubjectCounters(subject).Extent
	return looks.FirstView{
		Time: fold.TimeOf(extent.FirstView), OnTime: fold.TimeOf(extent.FirstOnTime),
		Accepted: fold.TimeOf(extent.FirstAccepted()),
		Imported: extent.AcceptedLate != 0 &&
			(extent.AcceptedOnTime == 0 || extent.AcceptedLate <= extent.AcceptedOnTime),
	}
}

// AsOfFirstView returns the plan as it was in force when the first view of the subject was accepted. A prior may still
// have to be learned, see PlanInForce.
func (e *Engine) AsOfFirstView(p *plan.Plan) *plan.Plan {
	first := e.firstView(p.Subject)
	return p.AsOf(first.Time, first.Accepted)
}

// PlanInForce returns the plan in force when the first view of the subject was accepted, with its prior. A server keeps
// a prior that was learned in the catalogue, and then nothing is to be learned.
func (e *Engine) PlanInForce(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	p = e.AsOfFirstView(p)
	if !p.Rules.MustLearn() {
		return p, nil
	}
	return e.withPrior(ctx, p)
}

// canDecide reports whether there is something to decide.
func canDecide(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// Books returns the books of the websites that declare a currency.
func (e *Engine) Books() map[int64]*books.Book { return e.facts.Books() }

// MaxVisitorEvents returns the number of distinct events of a website above which a visitor is automated.
func (e *Engine) MaxVisitorEvents() int { return e.facts.Shards[0].MaxVisitorEvents }

// purchase is the key of the goal of purchases in shipped mappings.
const purchase = "purchase"

// ReadUnseen reads the purchases of a website whose visitor has no view.
func (e *Engine) ReadUnseen(ctx context.Context, website int64) (facts.Unseen, error) {
	goal, _, err := schema.IDOf(website, schema.NameGoal, purchase)
	if err != nil {
		return facts.Unseen{}, err
	}
	return e.facts.ReadUnseen(ctx, schema.Subject{WebsiteID: website}, goal)
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

// StoreState is what operators of the store should know.
type StoreState struct {
	Fold   *moments.FoldAll `json:"fold,omitempty"`   // of all events, the first one or a rebuild; nil: none runs
	Damage []string         `json:"damage,omitempty"` // sentences about lost or damaged data, with the remedy
}

// StoreState returns how far a fold of all events is, and which data are lost or damaged.
func (e *Engine) StoreState() StoreState {
	return StoreState{Fold: e.facts.FoldProgress().AsFold(), Damage: e.facts.DescribeDamage()}
}

// CampaignCounters are the live counters of a campaign. They count all folded events, including those that a report
// excludes. Goals and value are those of the primary goal, or of the goal whose events the primary metric reads.
type CampaignCounters struct {
	GoalsReached int64 `json:"goalsReached"`
	Views        int64 `json:"views"`
	// absent if there is no rate for some amounts
	Value *int64 `json:"value,omitempty"`
}

// CountersOfCampaign returns the live counters of a campaign.
func (e *Engine) CountersOfCampaign(c *catalogue.LiveCampaign) CampaignCounters {
	t := e.facts.SubjectCounters(c.Subject())
	id := c.PrimaryGoalID
	if m, isDeclared := e.ownerOf(c.WebsiteID).TermsOf(c.WebsiteID).FindMetric(c.PrimaryMetric); isDeclared {
		id = m.Written.SingleGoal()
	}
	goal := t.Goals[id]
	return CampaignCounters{
		Views: t.Events[moments.View], GoalsReached: goal.Events, Value: wholeMoney(&goal, goal.Value),
	}
}

// WidgetCounters are the live counters of a widget and its experiments. Goals and values are those of the primary goal,
// or of all goals if there is no primary goal.
type WidgetCounters struct {
	Clicks       int64 `json:"clicks"`
	Views        int64 `json:"views"`
	Conversions  int64 `json:"conversions"`
	GoalsReached int64 `json:"goalsReached"`
	// absent if there is no rate for some amounts
	Value       *int64 `json:"value,omitempty"`
	ExtraValue  *int64 `json:"extraValue,omitempty"`
	Submits     int64  `json:"submits"`
	Completions int64  `json:"completions"`
	Contacts    int64  `json:"contacts"`
}

// CountersOfWidget returns the live counters of a widget, with those of its experiments.
func (e *Engine) CountersOfWidget(w *catalogue.LiveWidget) WidgetCounters {
	var t facts.SubjectCounters
	for _, experiment := range append([]catalogue.Experiment{{}}, w.Experiments...) {
		own := e.facts.SubjectCounters(w.Subject(experiment.ID))
		t.Merge(&own)
	}
	var goals facts.GoalCounters
	for id, goal := range t.Goals {
		if w.PrimaryGoalID == 0 || id == w.PrimaryGoalID {
			goals = goals.Plus(goal)
		}
	}
	return WidgetCounters{
		Views: t.Events[moments.View], Clicks: t.Events[moments.Click], Submits: t.Events[moments.Submit],
		Completions: t.Events[moments.Completion], Conversions: t.Events[moments.Conversion],
		Contacts:     t.Events[moments.Contact],
		GoalsReached: goals.Events,
		Value:        wholeMoney(&goals, goals.Value), ExtraValue: wholeMoney(&goals, goals.ExtraValue),
	}
}

// wholeMoney rounds an amount of goals to an integer, half away from zero; nil: it is not known.
func wholeMoney(of *facts.GoalCounters, units fold.Int128) *int64 {
	if of.Unknown > 0 {
		return nil
	}
	half := big.NewInt(schema.MoneyScale / 2)
	amount := units.BigInt()
	if amount.Sign() < 0 {
		half.Neg(half)
	}
	return new(half.Quo(half.Add(amount, half), big.NewInt(schema.MoneyScale)).Int64())
}
