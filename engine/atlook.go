package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
)

// AtLook is what was known of a subject at the end of one of its looks.
type AtLook struct {
	Plan     *plan.Plan // in force at the first view
	Number   int        // of the look; 0: this is about full days, of which the last one decided or ended the subject
	End      time.Time
	Days     int            // full days until then
	Question uint64         // hash of the declaration
	Report   *result.Report // of the declared question, with its scorecard and what the treatments are worth
	Devices  *result.Report // by device; nil: nothing is to be said about devices
	Accepted time.Time      // all events that were accepted until then are in the reports
}

// ErrNothingToCompare means that a subject has no variations to compare, or no views.
var ErrNothingToCompare = fmt.Errorf("nothing is compared yet: the first look is due after a week of full days")

// ReadAtLook returns what was known of a subject at a look. A nil number is that of the look that decided, or else of
// the last one. Without such a look, it is about the full days until harm was found, or until the end of the subject.
// The error is ErrNothingToCompare, or an InvalidError if there is no look with the number.
func (e *Engine) ReadAtLook(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, number *int,
) (*AtLook, error) {
	p, err := plan.New(scorecardRequest(owned.ID, subject), owned)
	if err != nil {
		return nil, err
	}
	version, err := e.ReadVersion(ctx, subject)
	if err != nil {
		return nil, err
	}
	if !canDecide(p) || e.firstView(subject).Time.IsZero() {
		return nil, ErrNothingToCompare
	}
	p, err = e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	whole, err := e.openJudgement(ctx, p, version, time.Time{})
	if err != nil {
		return nil, err
	}
	if err := e.AnalyzeLooks(ctx, whole); err != nil {
		return nil, err
	}
	look, err := e.chooseLook(ctx, p, version, whole, number)
	if err != nil {
		return nil, err
	}
	return e.readAtLook(ctx, p, version, whole, look)
}

// scorecardRequest returns a request for the declared question of a subject, with its scorecard.
func scorecardRequest(account int64, subject schema.Subject) query.Request {
	request := plan.ResultsRequest(account, subject)
	request.Scorecard = true
	return request
}

// ParamLook is the name of the number of a look in faults.
const ParamLook = "look"

// chooseLook returns a look, see ReadAtLook.
func (e *Engine) chooseLook(
	ctx context.Context, p *plan.Plan, version Version, whole *Judgement, number *int,
) (looks.Look, error) {
	all := whole.Looks.Looks
	if number != nil {
		at := slices.IndexFunc(all, func(l looks.Look) bool { return l.Number == *number })
		if at < 0 {
			detail := "there is no look yet; omit it"
			if len(all) > 0 {
				detail = fmt.Sprintf("must be the number of a look, from 1 to %d", len(all))
			}
			return looks.Look{}, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{
				{Name: ParamLook, Value: fmt.Sprint(*number), Detail: detail},
			}}
		}
		return all[at], nil
	}
	report, err := e.ComputeReportAt(ctx, p, version)
	if err != nil {
		return looks.Look{}, err
	}
	if d := report.Decision; d != nil && d.DecidedAt != nil {
		at := slices.IndexFunc(all, func(l looks.Look) bool { return !l.End.Before(*d.DecidedAt) })
		if at >= 0 {
			return all[at], nil
		}
		return whole.lookAtDay(*d.DecidedAt), nil
	}
	switch {
	case len(all) > 0:
		return whole.Looks.LastLook(), nil
	case whole.Plan.Ended && whole.Schedule.FullDays() > 0:
		return whole.lookAtDay(whole.Schedule.LastFullDay().End), nil
	}
	return looks.Look{}, ErrNothingToCompare
}

// lookAtDay returns the look without a number at the end of a full day.
func (j *Judgement) lookAtDay(end time.Time) looks.Look {
	days := 0
	for n := range j.Schedule.FullDays() {
		if !j.Schedule.EndOfDay(n + 1).After(end) {
			days = n + 1
		}
	}
	return looks.Look{End: end, Days: days}
}

// goesOnAfter reports whether there is a later look, or a later full day after a look without a number.
func (j *Judgement) goesOnAfter(look looks.Look) bool {
	if look.Number == 0 {
		return look.End.Before(j.Schedule.LastFullDay().End)
	}
	return look.Number < len(j.Looks.Looks)
}

// readAtLook returns what was known at a look. Its rows are those of the ledger; looks that are not recorded, such as
// those of imported data, are taken as they are computed now.
func (e *Engine) readAtLook(
	ctx context.Context, p *plan.Plan, version Version, whole *Judgement, look looks.Look,
) (*AtLook, error) {
	then := *p
	then.Filters.To = look.End
	then.Ended = p.Ended && !whole.goesOnAfter(look)
	j, err := e.openJudgement(ctx, &then, version, time.Time{})
	if err != nil {
		return nil, err
	}
	declared := then.DeclaredPlan()
	stored, err := e.facts.StoredEvents(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	j.Recorded = append(slices.Clip(whole.Recorded), whole.Looks.RecordsToCome()...)
	j.Recorded = slices.DeleteFunc(slices.Clone(j.Recorded), func(r looks.Record) bool { return r.End.After(look.End) })
	j.Schedule = looks.NewSchedule(declared, j.FirstView, look.End, stored.Newest, j.Recorded)
	// Looks that are not recorded must not be kept as if they were.
	if err := e.analyzeLooks(ctx, looks.NewAnalyzer(cache.New(0)), j); err != nil {
		return nil, err
	}
	found := &AtLook{
		Plan: &then, Number: look.Number, End: look.End, Days: look.Days,
		Question: looks.DeclarationOf(declared).Hash, Accepted: version.Accepted,
	}
	data := reportData{looks: j.Looks}
	data.rows, data.byGoal, err = e.readScorecard(ctx, &then)
	if err != nil {
		return nil, err
	}
	found.Report, err = e.newReport(ctx, &then, version, data)
	if err != nil {
		return nil, err
	}
	found.Report.Worth, err = e.ReadWorth(ctx, p, found.Report.WorthReason)
	if err != nil {
		return nil, err
	}
	by := then
	by.Dimension = query.ByDevice
	by.Asked.Dimension = query.ByDevice
	by.Top = plan.MaxBreakdown
	found.Devices, err = e.ReadBreakdown(ctx, &by)
	return found, err
}
