package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/facts"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

	"github.com/cespare/xxhash/v2"
)

// Judgement is what the events of a subject say about its declared question up to a time: the looks and, from them, the
// decision.
type Judgement struct {
	Plan      *plan.Plan // of the report about the declared question, in force at the first view
	FirstView looks.FirstView
	Schedule  *looks.Schedule
	Recorded  []looks.Record
	Looks     *looks.Analysis // nil: not read yet, see AnalyzeLooks
	Events    uint64          // of the subject

	returns []looks.Record                                // of Recorded, those that the ledger does not have
	series  map[seriesKey]map[plan.Measure][]moments.Step // what was read
}

// seriesKey identifies the daily series of measures.
type seriesKey struct {
	since  int64 // start, in milliseconds
	timing plan.Timing
}

// ErrEventsWait means that accepted events of a subject are not folded yet, so it cannot be judged.
var ErrEventsWait = errors.New("events of the subject wait to be folded")

// OpenJudgement returns the judgement of a subject up to a time, before the sums of the looks are read. Days end on
// time, whether or not events arrive. It returns nil if there is nothing to decide, or no view. The error is
// ErrEventsWait if events wait that may change the results of the subject.
func (e *Engine) OpenJudgement(ctx context.Context, p *plan.Plan, now time.Time) (*Judgement, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err != nil || e.firstView(p.Subject).Time.IsZero() || !canDecide(p) {
		return nil, err
	}
	if version.Waiting.Events > 0 {
		return nil, ErrEventsWait
	}
	p, err = e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	return e.openJudgement(ctx, p, version, now)
}

// openJudgement returns the judgement of a plan in force at the first view, up to a time; zero: the last acceptance
// time.
func (e *Engine) openJudgement(
	ctx context.Context, p *plan.Plan, version Version, through time.Time,
) (*Judgement, error) {
	declared := p.DeclaredPlan()
	recorded, err := e.Ledger.RecordedLooks(ctx, looks.DeclarationOf(declared))
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	stored, err := e.facts.StoredEvents(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	first := e.firstView(p.Subject)
	hasClock := slices.ContainsFunc(recorded, func(r looks.Record) bool { return r.Kind.FixesClock() })
	if first.Imported && !hasClock {
		first, err = e.addClock(ctx, declared, version, first)
		if err != nil {
			return nil, err
		}
	}
	compare := e.readReturns
	if through.IsZero() { // of a report
		through, compare = stored.Ingested, e.compareReturnsAt
	}
	if end := p.Filters.To; !end.IsZero() {
		recorded = slices.DeleteFunc(slices.Clone(recorded), func(r looks.Record) bool { return r.EndsAfter(end) })
		if end.Before(through) {
			through = end
		}
	}
	j := &Judgement{
		Plan: p.DeclaredReport(), FirstView: first, Recorded: recorded, Events: stored.Events,
		series:   map[seriesKey]map[plan.Measure][]moments.Step{},
		Schedule: looks.NewSchedule(declared, first, through, stored.Newest, recorded),
	}
	if err := e.compareReturns(ctx, j, declared, through, compare); err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	if len(j.returns) > 0 { // looks wait
		j.Recorded = append(slices.Clip(recorded), j.returns...)
		j.Schedule = looks.NewSchedule(declared, first, through, stored.Newest, j.Recorded)
	}
	return j, nil
}

// compareReturns compares the ages at which orders change between the variations, for the questions at which a look is
// due. So it reads no events once the look is recorded.
func (e *Engine) compareReturns(
	ctx context.Context, j *Judgement, declared *plan.Plan, through time.Time,
	compare func(context.Context, *looks.DueReturns, time.Time) (*looks.Returns, error),
) error {
	for _, due := range j.Schedule.DueReturns(declared, j.Recorded) {
		found, err := compare(ctx, &due, through)
		if err != nil {
			return err
		}
		if found != nil {
			j.returns = append(j.returns, looks.NewReturnsRecord(declared, due.Plan, j.Schedule, due.Look, found))
		}
	}
	return nil
}

// returnsAge is how long reports use a comparison of returns. A look that is due waits for the next pass of the
// recorder, at most ten minutes, and a page that polls until then must not read all orders with each new event.
const returnsAge = 10 * time.Minute

// compareReturnsAt is readReturns for reports, which read the orders once for each look and ten minutes.
func (e *Engine) compareReturnsAt(
	ctx context.Context, due *looks.DueReturns, through time.Time,
) (*looks.Returns, error) {
	type returnsOf struct {
		question string
		measure  plan.Measure
		metric   query.Metric
		look     time.Time
	}
	of := returnsOf{questionKey(due.Plan), due.Plan.Measure(), due.Plan.Metric, due.Look.End}
	return cache.ValueAt(e.cache, of, through.Truncate(returnsAge), func() (*looks.Returns, int64, error) {
		found, err := e.readReturns(ctx, due, through)
		const bytes = 256
		return found, bytes, err
	})
}

// readReturns returns what the orders of a question say at a look that is due; nil: they change at the same ages.
func (e *Engine) readReturns(ctx context.Context, due *looks.DueReturns, through time.Time) (*looks.Returns, error) {
	q := due.Plan.Question
	q.Filters.From, q.Filters.To = due.From, due.Look.End
	lifetimes := make([][]stats.Lifetime, len(due.Plan.Variations)-1)
	amount := looks.LifetimeAmount(due.Plan.Metric)
	err := e.facts.EachOrderHistory(ctx, &q, through, func(h *facts.OrderHistory) {
		l, known := h.LifetimeOf(amount, through.UnixMilli())
		isExcluded := h.MultiExposed && q.MultipleExposures == catalogue.ExcludeMultiExposed
		if !known || isExcluded {
			return
		}
		for t := range lifetimes {
			l.Treated = h.Variation == due.Plan.Variations[t+1].ID
			if l.Treated || h.Variation == due.Plan.Variations[0].ID {
				lifetimes[t] = append(lifetimes[t], l)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	found := looks.CompareReturns(due.Look, due.Plan, lifetimes)
	if found == nil {
		return nil, nil
	}
	changes, err := e.facts.ReadOrderChanges(ctx, q.Subject.WebsiteID, through)
	if err != nil {
		return nil, err
	}
	known := time.Duration(0)
	for _, goal := range q.GoalIDs() {
		if of := changes[goal]; of != nil {
			age, _ := of.AgeOf(facts.Settled)
			known = max(known, age)
		}
	}
	found.SettleAfter(known)
	return found, nil
}

// addClock returns the first view of imported data with the start of their clock. The start is kept while no fact of an
// earlier day than today changes, unless it depends on the views of today.
func (e *Engine) addClock(
	ctx context.Context, declared *plan.Plan, version Version, first looks.FirstView,
) (looks.FirstView, error) {
	type clockOf struct {
		question  string
		withToday bool
	}
	type clock struct {
		start             time.Time
		imported, isFinal bool
	}
	moment, known := e.facts.ReadMoment(ctx)
	today := moment.Day
	read := func() (clock, int64, error) {
		q := declared.Question
		q.Cap = nil
		q.Crossings = false // they change no number of visitors
		q.ConversionWindow = schema.ConversionWindow{}
		steps, err := e.facts.ReadVisitorSteps(ctx, q)
		earlier := slices.DeleteFunc(slices.Clone(steps), func(s moments.Step) bool { return s.Bucket >= today })
		with, isFinal := first.WithHistory(earlier)
		if !isFinal {
			with, _ = first.WithHistory(steps)
		}
		return clock{with.Clock, with.Imported, isFinal}, 0, err
	}
	question := questionKey(declared)
	settled := Version{Known: known, Data: e.facts.SettledVersionOn(today, declared.Subject)}
	found, err := valueAt(e, clockOf{question, false}, settled, read)
	if err == nil && !found.isFinal {
		found, err = valueAt(e, clockOf{question, true}, version, read)
	}
	first.Clock, first.Imported = found.start, found.imported
	return first, err
}

// needsLaterFacts reports whether looks of a plan in force at the first view need facts of days after their ends:
// events in the conversion window of an earlier day, or values that change a cap.
func needsLaterFacts(p *plan.Plan) bool {
	return len(p.SharePeriods) > 1 || slices.ContainsFunc(measuresOf(p.DeclaredPlan(), p.Declared.AllMeasures()),
		func(q facts.Measure) bool { return q.Window.IsSet() || q.Cap != nil })
}

// judgeAt returns the judgement of a plan in force at the first view, with its looks, at a version. The results of the
// looks are kept while no fact of a full day changes, unless they need later facts.
func (e *Engine) judgeAt(ctx context.Context, p *plan.Plan, version Version) (*Judgement, error) {
	type judged struct{ question string }
	type analyzed struct{ question string }
	question := questionKey(p)
	moment, known := e.facts.ReadMoment(ctx)
	settled := uint64(0)
	if known && !needsLaterFacts(p) {
		settled = e.facts.SettledVersionOn(moment.Day, p.Subject)
	}
	kept, err := valueAt(e, judged{question}, version, func() (*Judgement, int64, error) {
		j, err := e.openJudgement(ctx, p, version, time.Time{})
		if err != nil {
			return nil, 0, err
		}
		s := j.Schedule
		analyze := func() (*looks.Analysis, int64, error) {
			if err := e.AnalyzeLooks(ctx, j); err != nil {
				return nil, 0, err
			}
			return j.Looks, j.Looks.Bytes(), nil
		}
		if settled == 0 || s.LastFullDay().End.After(moment.Midnight()) {
			_, _, err = analyze()
		} else {
			at := fmt.Sprint(settled, len(j.Recorded), s.FirstView, s.FullDays(), s.Looks, s.HasEnd())
			var found *looks.Analysis
			found, err = cache.ValueAt(e.cache, analyzed{question}, at, analyze)
			if err == nil {
				analysis := *found
				analysis.Schedule = s
				j.Looks = &analysis
			}
		}
		if err != nil {
			return nil, 0, err
		}
		j.series = nil
		return j, j.Looks.Bytes(), nil
	})
	if err != nil {
		return nil, err
	}
	j := *kept
	j.Plan = p.DeclaredReport() // names and other parts of the plan that change no look may have changed
	return &j, nil
}

// valueAt returns what was computed from a version of the data, from the cache if possible.
func valueAt[V any](e *Engine, key any, version Version, compute func() (value V, bytes int64, err error)) (V, error) {
	if !version.Known {
		value, _, err := compute()
		return value, err
	}
	return cache.ValueAt(e.cache, key, versionKey{version.Data, version.Recorded}, compute)
}

// versionKey is a version in the cache.
type versionKey struct{ data, recorded uint64 }

// questionKey identifies a declared question and the window's end of a report about it.
func questionKey(p *plan.Plan) string {
	d := &p.Declared
	key, err := json.Marshal([]any{
		p.Subject, p.Rules, d.GoalID, d.Metric, d.Guardrails, d.Secondary, d.FollowUp,
		measuresOf(p.DeclaredPlan(), d.AllMeasures()),
		p.Variations, p.MultipleExposures, p.SharePeriods, p.Runs, p.Running, p.Ended, p.Filters.To,
	})
	if err != nil {
		panic(err) // only for an infinite number or NaN, which the catalogue rejects
	}
	return string(key)
}

// ReadOrderChanges returns how long the orders of a website change, by goal. It reads the events at most once a day.
func (e *Engine) ReadOrderChanges(ctx context.Context, website int64) (map[int64]*facts.OrderChanges, error) {
	type changesOf struct{ website int64 }
	now := time.Now().UTC()
	day := now.Truncate(24 * time.Hour)
	return cache.ValueAt(e.cache, changesOf{website}, day, func() (map[int64]*facts.OrderChanges, int64, error) {
		found, err := e.facts.ReadOrderChanges(ctx, website, now)
		const bytes = 64 << 10 // of a goal, at most: a number for each hour
		return found, int64(len(found)) * bytes, source.StoreFailure(ctx, err)
	})
}

// Definition returns a hash of what the judgement depends on beside the data.
func (j *Judgement) Definition() uint64 { return xxhash.Sum64String(questionKey(j.Plan)) }

// IsDue reports whether a look has ended, or the subject has, or orders change at different ages, and the ledger does
// not have it.
func (j *Judgement) IsDue() bool {
	return len(j.returns) > 0 || j.Schedule.IsDue(j.Plan.DeclaredPlan(), j.Recorded)
}

// AnalyzeLooks reads the daily sums for the declared question, the guardrails and the secondary goals, and analyzes the
// looks. It reads sums only once, so another call after looks were recorded reads none.
func (e *Engine) AnalyzeLooks(ctx context.Context, j *Judgement) (err error) {
	return e.analyzeLooks(ctx, e.analyzer, j)
}

// analyzeLooks is AnalyzeLooks with an analyzer.
func (e *Engine) analyzeLooks(ctx context.Context, analyzer *looks.Analyzer, j *Judgement) (err error) {
	declared := j.Plan.DeclaredPlan()
	j.Looks, err = analyzer.AnalyzeLooks(declared, j.Schedule, j.Recorded,
		func(
			since time.Time, measures []plan.Measure, timing plan.Timing,
		) (map[plan.Measure][]moments.Step, error) {
			key := seriesKey{since.UnixMilli(), timing}
			steps := j.series[key]
			missing := slices.DeleteFunc(slices.Clone(measures), func(of plan.Measure) bool {
				_, has := steps[of]
				return has
			})
			if len(missing) == 0 {
				return steps, nil
			}
			from := *declared
			from.Filters.From, from.Timing = since, timing
			read, err := e.facts.ReadSteps(ctx, from.Question, measuresOf(&from, missing))
			if err != nil {
				return nil, err
			}
			if steps == nil {
				steps = make(map[plan.Measure][]moments.Step, len(missing))
				j.series[key] = steps
			}
			for i, of := range missing {
				steps[of] = read[i]
			}
			return steps, nil
		})
	return err
}

// findSplitAlarm tests the split of the visitors of all full days, and of their segments; nil: it matches the shares.
func (e *Engine) findSplitAlarm(ctx context.Context, j *Judgement) (*looks.SplitAlarm, error) {
	const most = 1000 // values of an attribute, of which those that appear first are tested
	declared := j.Plan.DeclaredPlan()
	declared.Top = most
	found, err := e.readFirstViews(ctx, visitorQuestion(declared))
	if err != nil {
		return nil, err
	}
	var by [][]moments.Step
	for _, attribute := range result.SplitAttributes {
		by = append(by, found[attribute])
	}
	return j.Schedule.FindSplitAlarm(declared, by), nil
}

// RecordSplit tests the split of the visitors and of their segments at the end of each full day, and writes the first
// alarm to the ledger. Reports read it there. It returns the number of records.
func (e *Engine) RecordSplit(ctx context.Context, j *Judgement, now time.Time) (int, error) {
	if j.Schedule.FullDays() == 0 || looks.HasSplitAlarm(j.Recorded) {
		return 0, nil
	}
	alarm, err := e.findSplitAlarm(ctx, j)
	if err != nil || alarm == nil {
		return 0, err
	}
	declared := j.Plan.DeclaredPlan()
	record := alarm.RecordOf(declared, now.UTC().Truncate(time.Millisecond))
	n, err := e.Ledger.WriteRecords(ctx, []looks.Record{record})
	if err != nil || n == 0 {
		return n, err
	}
	j.Recorded, err = e.Ledger.RecordedLooks(ctx, looks.DeclarationOf(declared))
	return n, err
}

// RecordLooks writes the looks and the harm that are not recorded yet, and returns their number. Records are part of
// the results of the looks, which it analyzes again.
func (e *Engine) RecordLooks(ctx context.Context, j *Judgement, now time.Time) (int, error) {
	records := j.Looks.UnrecordedLooks(now.UTC().Truncate(time.Millisecond))
	for _, r := range j.returns {
		r.RecordedAt = now.UTC().Truncate(time.Millisecond)
		records = append(records, r)
	}
	n, err := e.Ledger.WriteRecords(ctx, records)
	if err != nil || n == 0 {
		return n, err
	}
	j.returns = nil
	j.Recorded, err = e.Ledger.RecordedLooks(ctx, looks.DeclarationOf(j.Looks.Plan))
	if err != nil {
		return n, err
	}
	return n, e.AnalyzeLooks(ctx, j)
}

// ReportDecision returns the report of the declared question with its decision. Its scorecard has only the primary
// goal.
func (e *Engine) ReportDecision(ctx context.Context, j *Judgement) (*result.Report, error) {
	rows, err := e.facts.ReadRows(ctx, j.Plan.Question)
	if err != nil {
		return nil, err
	}
	report := result.New(j.Plan, rows, j.Looks)
	report.AddInteractions(e.interactions.ofSubject(j.Plan.Subject))
	about := j.Plan.AboutMeasure(j.Plan.Measure())
	report.AddScorecard(j.Plan, []result.MeasureRows{{Plan: about, Rows: rows}}, j.Looks)
	report.Decision = result.Decide(j.Plan, j.Looks, &report.Slice)
	if err := e.addNovelty(ctx, j.Plan, j.Looks, report); err != nil {
		return nil, err
	}
	report.Worth, err = e.ReadWorth(ctx, j.Plan, report.WorthReason)
	return report, err
}

// measuresOf returns the measures as the facts are asked for them.
func measuresOf(p *plan.Plan, all []plan.Measure) []facts.Measure {
	asked := make([]facts.Measure, len(all))
	for i, of := range all {
		about := p.AboutMeasure(of)
		asked[i] = facts.Measure{Measure: of, Cap: about.Cap, Metric: about.Expression}
	}
	return asked
}
