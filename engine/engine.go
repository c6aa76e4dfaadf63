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

	"lifthouse/engine/cache"
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
	"lifthouse/schema/faults"

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

// looksMemory bounds the memory of the results of looks, in bytes: about 1 KiB for each look at a variation, and 50 KiB
// for the critical values of each comparison.
const looksMemory = 64 << 20

// New returns the engine of a store with facts.
func New(conn driver.Conn, c *catalogue.Catalogue, limits source.Limits, shards facts.Shards) *Engine {
	results := cache.New(looksMemory)
	return &Engine{
		Ledger:    looks.NewLedger(conn),
		facts:     facts.Reader{Shards: shards, Store: &source.Store{Conn: conn, Limits: limits}},
		catalogue: c, cache: results, analyzer: looks.NewAnalyzer(results),
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
	if err == nil && (p.Asked.Scorecard || e.AsOfFirstView(p).Rules.MustLearn()) {
		version.Worth, err = e.worthVersion(ctx, p.Subject.WebsiteID)
	}
	return version, err
}

// PlanReport resolves a request against the catalogue. The error is an InvalidError or a NotFoundError.
func (e *Engine) PlanReport(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().AccountResources(r.AccountID))
}

// Version identifies the data of a subject.
type Version struct {
	Known   bool            // whether the store answers
	Data    uint64          // changes with the facts, and with the day; the same on all servers of a store
	Worth   uint64          // changes with what the website's campaigns are worth, if the report depends on it
	Waiting moments.Waiting // accepted events that a report does not include yet
}

// ReadVersion folds the events that wait, see facts.Shards.AwaitNoted, and returns the version of the subject's data.
// What is read later has the data of this version or newer data.
func (e *Engine) ReadVersion(ctx context.Context, subject schema.Subject) (Version, error) {
	waiting, err := e.facts.AwaitNoted(ctx)
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
	return looks.FirstView{
		Time: fold.TimeOf(extent.FirstView), OnTime: fold.TimeOf(extent.FirstOnTime),
		Accepted: fold.TimeOf(extent.FirstAccepted()),
		Imported: extent.AcceptedLate != 0 &&
			(extent.AcceptedOnTime == 0 || extent.AcceptedLate <= extent.AcceptedOnTime),
	}, true
}

// AsOfFirstView returns the plan as it was in force when the first view of the subject was accepted. A prior may still
// have to be learned, see PlanInForce.
func (e *Engine) AsOfFirstView(p *plan.Plan) *plan.Plan {
	first, viewed := e.firstView(p.Subject)
	if !viewed {
		return p // a change before the first view counts
	}
	return p.AsOf(first.Time, first.Accepted)
}

// PlanInForce returns the plan in force when the first view of the subject was accepted, with its prior. A server keeps
// a prior that was learned in the catalogue, and then nothing is to be learned.
func (e *Engine) PlanInForce(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if p = e.AsOfFirstView(p); !p.Rules.MustLearn() {
		return p, nil
	}
	return e.withPrior(ctx, p)
}

// canDecide reports whether there is something to decide.
func canDecide(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// MaxVisitorEvents returns the number of distinct events of a website above which a visitor is automated.
func (e *Engine) MaxVisitorEvents() int { return e.facts.Shards[0].MaxVisitorEvents }

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

// CampaignCounters are the live counters of a campaign. They count all folded events, including those that a report
// excludes. Goals and value are those of the primary goal.
type CampaignCounters struct {
	GoalsReached int64 `json:"goalsReached"`
	Views        int64 `json:"views"`
	Value        int64 `json:"value"`
}

// CountersOfCampaign returns the live counters of a campaign.
func (e *Engine) CountersOfCampaign(c *catalogue.LiveCampaign) CampaignCounters {
	t := e.facts.SubjectCounters(c.Subject())
	goal := t.Goals[c.PrimaryGoalID]
	return CampaignCounters{Views: t.Events[moments.View], GoalsReached: goal.Events, Value: wholeMoney(goal.Value)}
}

// WidgetCounters are the live counters of a widget and its experiments. Goals and values are those of the primary goal,
// or of all goals if there is no primary goal.
type WidgetCounters struct {
	Clicks       int64 `json:"clicks"`
	Views        int64 `json:"views"`
	Conversions  int64 `json:"conversions"`
	GoalsReached int64 `json:"goalsReached"`
	Value        int64 `json:"value"`
	ExtraValue   int64 `json:"extraValue"`
	Submits      int64 `json:"submits"`
	Completions  int64 `json:"completions"`
	Contacts     int64 `json:"contacts"`
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
		GoalsReached: goals.Events, Value: wholeMoney(goals.Value), ExtraValue: wholeMoney(goals.ExtraValue),
	}
}

// wholeMoney rounds an amount to an integer, half away from zero.
func wholeMoney(units fold.Int128) int64 {
	half := big.NewInt(schema.MoneyScale / 2)
	amount := units.BigInt()
	if amount.Sign() < 0 {
		half.Neg(half)
	}
	return half.Quo(half.Add(amount, half), big.NewInt(schema.MoneyScale)).Int64()
}

// ComputeReport computes a report, including the results of the subject's looks. The error is an InvalidError, a
// StoreError, or the error of the context.
func (e *Engine) ComputeReport(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	return e.ComputeReportAt(ctx, p, version)
}

// ComputeReportAt computes a report from the data of a version, or from newer data.
func (e *Engine) ComputeReportAt(ctx context.Context, p *plan.Plan, version Version) (*result.Report, error) {
	p, err := e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	return e.computeReport(ctx, p, version)
}

// computeReport computes the report of a plan in force at the first view.
func (e *Engine) computeReport(
	ctx context.Context, p *plan.Plan, version Version,
) (report *result.Report, err error) {
	// Judge the looks, read the sums, and compare the variations.
	var a *looks.Analysis
	if canDecide(p) && (p.Asked.Scorecard || p.OfAllVisitors() && p.IsDeclared()) {
		judged, err := e.judgeAt(ctx, p, version)
		if err != nil {
			return nil, err
		}
		a = judged.Looks
	}
	var rows *moments.Rows
	var byGoal []result.GoalRows // of the scorecard
	if p.Asked.Scorecard && canDecide(p) {
		if rows, byGoal, err = e.readScorecard(ctx, p); err != nil {
			return nil, err
		}
	}
	if rows == nil || p.Dimension != "" || p.Interval != "" {
		if rows, err = e.facts.ReadRows(ctx, p.Question); err != nil {
			return nil, err
		}
	}
	if p.Asked.Complement {
		if rows, err = e.withEveryone(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	report = result.New(p, rows, a)

	// Add what the request asks for beside it.
	if check := report.Checks.SampleRatio; check != nil && check.Mismatch {
		if report.Checks.SplitCause, err = e.readSplitCause(ctx, p, version); err != nil {
			return nil, err
		}
	}
	if p.Interval != "" {
		if report.Series, err = e.computeSeries(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	if p.Asked.Curve {
		if report.Curve, err = e.computeCurve(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	if p.Asked.Distribution {
		steps, err := e.facts.ReadDistribution(ctx, p.Question, result.ValueBins())
		if err != nil {
			return nil, err
		}
		report.Distribution = result.NewDistribution(p, steps)
	}
	if byGoal != nil {
		report.AddScorecard(p, byGoal, a)
		if err := e.addWorth(ctx, p, a, report); err != nil {
			return nil, err
		}
	}
	if a != nil && p.OfAllVisitors() && p.IsDeclared() {
		if err := e.addNovelty(ctx, p, a, report); err != nil {
			return nil, err
		}
	}

	// Warn of what the sums do not show.
	var negative int64
	for id, goal := range e.facts.SubjectCounters(p.Subject).Goals {
		if p.GoalID == 0 || id == p.GoalID {
			negative += goal.Negative
		}
	}
	if negative > 0 {
		report.WarnOfNegativeValues(negative)
	}
	if version.Waiting.Events > 0 {
		report.AddWaiting(version.Waiting)
	}
	return report, nil
}

// readSplitCause returns where a sample ratio mismatch comes from. It reads once for all reports about the same
// visitors at a version.
func (e *Engine) readSplitCause(ctx context.Context, p *plan.Plan, version Version) (*result.SplitCause, error) {
	q := p.Question
	q.Cap, q.ConversionWindow, q.Timing, q.Crossings = nil, schema.ConversionWindow{}, plan.WhenMature, false
	f := &p.Filters
	visitors, err := json.Marshal([]any{p.Subject, p.Variations, p.SharePeriods, f.From, f.To, f.Lists, f.Texts})
	if err != nil {
		return nil, err
	}
	type split struct{ visitors string }
	return valueAt(e, split{string(visitors)}, version, func() (*result.SplitCause, int64, error) {
		by := map[query.Dimension][]moments.Step{}
		for _, attribute := range result.SplitAttributes {
			if by[attribute], err = e.facts.ReadFirstViews(ctx, q, attribute); err != nil {
				return nil, 0, err
			}
		}
		lost, err := e.facts.ReadLostViews(ctx, q)
		const bytes = 4096 // of the parts, about
		return result.NewSplitCause(p, by, lost), bytes, err
	})
}

// withEveryone returns the rows of a report with those of all visitors, whatever their attributes.
func (e *Engine) withEveryone(ctx context.Context, p *plan.Plan, rows *moments.Rows) (*moments.Rows, error) {
	q := p.Question
	q.Filters.Lists, q.Filters.Texts, q.Dimension, q.Interval, q.Cap = nil, nil, "", "", fixedCap(rows.Cap)
	everyone, err := e.facts.ReadRows(ctx, q)
	if err != nil {
		return nil, err
	}
	both := *rows
	both.Everyone = everyone.Whole
	return &both, nil
}

// readScorecard returns the rows of the goals of a scorecard: the goals that the subject declares, the goal of the
// report, and all goals of the website with events of the subject. The conversion window of a request holds for all. It
// also returns the rows of the report's goal, without breakdown and series.
func (e *Engine) readScorecard(ctx context.Context, p *plan.Plan) (*moments.Rows, []result.GoalRows, error) {
	goals := append(p.Declared.AllGoals(), p.Goal())
	for id := range e.facts.SubjectCounters(p.Subject).Goals {
		if _, known := p.FindGoal(id); known {
			goals = append(goals, plan.GoalWindow{GoalID: id, Window: p.WindowOf(id)})
		}
	}
	if p.Asked.ConversionWindow != nil {
		for i := range goals {
			goals[i].Window = p.ConversionWindow
		}
	}
	goals = plan.SortedGoals(goals)
	found, err := e.facts.ReadGoals(ctx, p.AboutGoal(p.Goal()).Question, questionsAbout(p, goals))
	if err != nil {
		return nil, nil, err
	}
	var byGoal []result.GoalRows
	for i, goal := range goals {
		byGoal = append(byGoal, result.GoalRows{Plan: p.AboutGoal(goal), Rows: found[i]})
	}
	return found[slices.Index(goals, p.Goal())], byGoal, nil
}

// Limits of a series. With a z-score, each point is a separate report.
const (
	maxPoints       = 1000
	maxZScorePoints = 100
)

// computeSeries returns a point at the end of each bucket, including empty ones, from the first visitor to the last
// counted event. The last point equals the report.
func (e *Engine) computeSeries(ctx context.Context, p *plan.Plan, found *moments.Rows) ([]result.Point, error) {
	steps := found.Steps
	if len(steps) == 0 {
		return []result.Point{}, nil
	}
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	most := int64(maxPoints)
	if p.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		const detail = "would return %d points, the maximum is %d: choose a longer interval or a shorter window"
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{
			{Name: query.ParamInterval, Value: string(p.Interval), Detail: fmt.Sprintf(detail, n, most)},
		}}
	}
	if p.Filters.ZScore == 0 {
		return result.CumulateSteps(p, steps), nil
	}
	// Each point is a separate report, with the cap of the whole report.
	var points []result.Point
	for bucket := first; bucket <= last; bucket++ {
		until := p.Question
		until.Filters.To, until.Interval, until.Cap = result.EndOf(p, bucket), "", fixedCap(found.Cap)
		whole, err := e.facts.ReadRows(ctx, until)
		if err != nil {
			return nil, err
		}
		points = append(points, result.NewPoint(p, bucket, whole.Whole))
	}
	return points, nil
}

// fixedCap returns the cap of a report as an amount, for other reports with the same cap.
func fixedCap(of *moments.Cap) *schema.Cap {
	if of == nil || of.Limit == 0 {
		return nil
	}
	return &schema.Cap{Units: of.Limit}
}

const day = 24 * time.Hour

// computeCurve returns the curve by age of a report with these rows. Without a number of days in the request, it has as
// many that half of the visitors are in the cohort.
func (e *Engine) computeCurve(ctx context.Context, p *plan.Plan, found *moments.Rows) (*result.Curve, error) {
	days := p.Asked.CurveDays
	if days == 0 {
		var err error
		if days, err = e.daysOfHalf(ctx, p, found); err != nil {
			return nil, err
		}
	}
	steps, err := e.readAges(ctx, p, days)
	if err != nil {
		return nil, err
	}
	curve := result.NewCurve(p, days, steps, found.Whole)
	first := schema.LaterTime(found.First, p.Filters.From)
	if most := int(curveEnd(p, found).Sub(first) / day); curve.Cohort.Visitors == 0 && p.Asked.CurveDays > 0 &&
		!first.IsZero() {
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{{
			Name: query.ParamCurveDays, Value: fmt.Sprint(days),
			Detail: fmt.Sprintf("no visitor was first exposed so long ago: must be at most %d", most),
		}}}
	}
	return curve, nil
}

// readAges reads what each day of age adds to the sums of the visitors whose first view was at least some days ago.
func (e *Engine) readAges(ctx context.Context, p *plan.Plan, days int) ([]moments.Step, error) {
	ages := *p
	ages.ConversionWindow = schema.ConversionWindow{To: time.Duration(days) * day}
	ages.Interval, ages.Dimension, ages.Timing, ages.Crossings = query.Daily, "", plan.ByAge, false
	steps, err := e.facts.ReadSteps(ctx, ages.Question, questionsAbout(&ages, []plan.GoalWindow{ages.Goal()}))
	if err != nil {
		return nil, err
	}
	return steps[0], nil
}

// daysOfHalf returns the largest number of days, up to the default, for which half of the visitors are in the cohort.
func (e *Engine) daysOfHalf(ctx context.Context, p *plan.Plan, found *moments.Rows) (int, error) {
	q := p.Question
	q.ConversionWindow, q.Cap, q.Dimension, q.Interval, q.Timing = schema.ConversionWindow{}, nil, "", query.Daily, 0
	steps, err := e.facts.ReadVisitorSteps(ctx, q)
	if err != nil {
		return 0, err
	}
	var all, so int64
	for _, step := range steps {
		all += step.Visitors
	}
	for _, step := range steps {
		if so += step.Visitors; 2*so >= all {
			median := time.UnixMilli((step.Bucket + 1) * day.Milliseconds())
			days := int(curveEnd(p, found).Sub(median) / day)
			return min(max(days, query.LeastCurveDays), query.DefaultCurveDays), nil
		}
	}
	return query.LeastCurveDays, nil
}

// curveEnd returns the time at which the visitors of a curve must be mature.
func curveEnd(p *plan.Plan, found *moments.Rows) time.Time {
	if to := p.Filters.To; !to.IsZero() && to.Before(found.Complete) {
		return to
	}
	return found.Complete
}

// addNovelty adds what the looks that decide found about novelty: it compares the ages of first conversions among the
// visitors of a look whose first days have passed then. Only late events change that, so it is computed once. The
// report must be about the declared question and all visitors.
func (e *Engine) addNovelty(ctx context.Context, p *plan.Plan, a *looks.Analysis, report *result.Report) error {
	type novelty struct {
		question string
		look     int
	}
	for _, look := range a.DecidingLooks() {
		key := novelty{questionKey(p), look.Number}
		found, err := cache.ValueAt(e.cache, key, nil, func() ([]result.Novelty, int64, error) {
			about := *p.DeclaredReport()
			about.Filters.From = a.EndOfDay(1).Add(-day)
			about.Filters.To = look.End.Add(about.ConversionWindow.Maturity())
			days, err := e.daysOfHalf(ctx, &about, &moments.Rows{Complete: about.Filters.To})
			if err != nil {
				return nil, 0, err
			}
			steps, err := e.readAges(ctx, &about, days)
			if err != nil {
				return nil, 0, err
			}
			found := result.NewCurve(&about, days, steps, nil).Novelty
			return found, int64(len(found)) * noveltyBytes, nil
		})
		if err != nil {
			return err
		}
		report.AddNovelty(found)
	}
	return nil
}

// noveltyBytes is the approximate size of the novelty of a variation.
const noveltyBytes = 128
