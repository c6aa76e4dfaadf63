package tables

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/watch"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/stats"
)

// isInScope reports whether a subject is of the website of the request.
func (r *reading) isInScope(of schema.Subject) bool {
	return r.WebsiteID == 0 || r.WebsiteID == of.WebsiteID
}

// readChanges reads when the results of each subject last changed. What depends on other campaigns has changed with any
// subject of the website.
func (r *reading) readChanges(ctx context.Context) (err error) {
	r.changes, err = r.Engine.ReadChanges(ctx, r.owned, r.subjects)
	if err != nil {
		return err
	}
	r.accepted, err = r.Engine.ReadAcceptances(ctx)
	if err != nil {
		return err
	}
	ofWebsite := map[int64]time.Time{}
	for i, of := range r.subjects {
		ofWebsite[of.WebsiteID] = schema.LaterTime(ofWebsite[of.WebsiteID], r.changes[i])
	}
	for i, of := range r.subjects {
		if r.versions[i].Prior != "" {
			r.changes[i] = ofWebsite[of.WebsiteID]
		}
	}
	return nil
}

// versionOfSubjects returns the version of a table that depends on the subjects, each by itself.
func versionOfSubjects(_ context.Context, r *reading) (string, error) {
	var text strings.Builder
	fmt.Fprint(&text, r.owned.Version)
	for i, of := range r.subjects {
		fmt.Fprint(&text, "\n", of, " ", r.versions[i].Key(), " ", r.changes[i].UnixMilli(), " ",
			r.accepted[of].UnixMilli())
	}
	return text.String(), nil
}

// versionOfWorth returns the version of what the campaigns of the websites are worth.
func versionOfWorth(ctx context.Context, r *reading) (string, error) {
	var text strings.Builder
	fmt.Fprint(&text, r.owned.Version)
	for _, website := range r.websites() {
		version, err := r.Engine.WorthVersion(ctx, website)
		if err != nil {
			return "", err
		}
		fmt.Fprint(&text, "\n", website, " ", version)
	}
	return text.String(), nil
}

// websites returns the websites of the subjects, in order.
func (r *reading) websites() (ids []int64) {
	for _, of := range r.subjects {
		ids = append(ids, of.WebsiteID)
	}
	return slices.Compact(ids)
}

// hasChanged reports whether the results of a subject have changed since the time of the request.
func (r *reading) hasChanged(i int) bool { return !r.changes[i].Before(r.Since) }

// keyOf returns the key columns of a subject.
func (r *reading) keyOf(of schema.Subject) subjectKey {
	key := subjectKey{
		WebsiteID: of.WebsiteID, Domain: r.owned.Websites[of.WebsiteID].Domain, Kind: query.KindCampaign,
		SubjectID: of.ID, Name: r.owned.SubjectName(of),
	}
	switch of.Kind {
	case schema.SubjectNone:
		key.Kind = query.KindWebsite
		key.SubjectID = of.WebsiteID
	case schema.SubjectWidget:
		key.Kind = query.KindExperiment
		key.ExperimentID = optionalOf(of.ExperimentID)
	case schema.SubjectCampaign:
		key.Key = optionalOf(r.owned.Campaigns[of.ID].Key)
	}
	return key
}

// planInForce returns the plan in force of the declared question of a subject, with a breakdown unless by is empty.
func (r *reading) planInForce(ctx context.Context, of schema.Subject, by query.Dimension) (*plan.Plan, error) {
	request := plan.ResultsRequest(r.owned.ID, of)
	request.Dimension = by
	p, err := plan.New(request, r.owned)
	if err != nil {
		return nil, err
	}
	return r.Engine.PlanInForce(ctx, p)
}

// summarized is a subject with its summary.
type summarized struct {
	index   int // in the subjects
	subject schema.Subject
	summary *watch.Summary
	report  *result.Report
}

// summaries returns the subjects that have changed with their summaries, in order. An error ends the sequence.
func (r *reading) summaries(ctx context.Context) iter.Seq2[*summarized, error] {
	of := watch.Bulk{Owned: r.owned, Admit: func(context.Context) (func(), error) { return func() {}, nil }}
	var indexes []int
	for i, subject := range r.subjects {
		if r.hasChanged(i) {
			of.Subjects = append(of.Subjects, subject)
			of.Versions = append(of.Versions, r.versions[i])
			indexes = append(indexes, i)
		}
	}
	return func(yield func(*summarized, error) bool) {
		next := 0
		for summary, err := range r.Summaries.AwaitSummaries(ctx, of) {
			var report *result.Report
			if err == nil {
				report, err = summary.DecodeReport()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			i := indexes[next]
			next++
			if !yield(&summarized{i, r.subjects[i], summary, report}, nil) {
				return
			}
		}
	}
}

// optionalOf returns a value, or nil if it is the zero value.
func optionalOf[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// textOf returns a text of a type of its own, or nil if it is empty.
func textOf[T ~string](text T) *string { return optionalOf(string(text)) }

// numberOf returns a small number; nil stays nil.
func numberOf(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// toMillis returns a time without what a column does not have; nil stays nil.
func toMillis(at *time.Time) *time.Time {
	if at == nil || at.IsZero() {
		return nil
	}
	return new(at.UTC().Truncate(time.Millisecond))
}

// endsOf returns the ends of an interval; nil: it is unbounded, or there is no interval.
func endsOf(of *stats.Interval) (lower, upper *float64) {
	if of == nil {
		return nil, nil
	}
	return of[0], of[1]
}

// sortRows sorts the rows of a subject and writes them.
func sortRows[R any](rows []R, compare func(a, b *R) int, write func(*R) error) error {
	slices.SortFunc(rows, func(a, b R) int { return compare(&a, &b) })
	for i := range rows {
		if err := write(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// compareIDs orders ids; nil is the first.
func compareIDs(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

// readWorth reads the rows of the table worth.
func readWorth(ctx context.Context, r *reading, write func(*worthRow) error) error {
	for _, website := range r.websites() {
		programmes, err := r.Engine.ReadProgrammes(ctx, website)
		if err != nil {
			return err
		}
		var rows []worthRow
		for _, programme := range programmes {
			hasGoal := r.GoalID == 0 || programme.GoalID == r.GoalID
			hasMetric := r.Metric == "" || programme.Metric == worth.KindOf(r.Metric)
			if !hasGoal || !hasMetric {
				continue
			}
			rows = append(rows, r.programmeRows(programme)...)
		}
		if err := sortRows(rows, compareWorth, write); err != nil {
			return err
		}
	}
	return nil
}

func compareWorth(a, b *worthRow) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.SubjectID, b.SubjectID),
		compareIDs(a.ExperimentID, b.ExperimentID), cmp.Compare(a.VariationID, b.VariationID))
}

// programmeRows returns the rows of a programme.
func (r *reading) programmeRows(of *worth.Programme) (rows []worthRow) {
	for i := range of.Items {
		item := &of.Items[i]
		subject := schema.Subject{WebsiteID: of.WebsiteID, Kind: schema.SubjectCampaign, ID: item.CampaignID}
		if item.CampaignID == 0 {
			subject.Kind, subject.ID = schema.SubjectWidget, item.WidgetID
			subject.ExperimentID = item.ExperimentID
		}
		row := worthRow{
			subjectKey: r.keyOf(subject), GoalID: optionalOf(of.GoalID), Currency: optionalOf(of.Currency),
			VariationID: item.VariationID, Variation: item.Name, Metric: string(item.Metric), Of: string(item.Of),
			Allocation: numberOf(item.Allocation), State: textOf(item.State), EndedAt: toMillis(item.EndedAt),
			Shipped: item.Shipped, Outcome: item.Outcome.Outcome.Outcome,
			OutcomeVariationID: optionalOf(item.Outcome.VariationID), OutcomeDate: parseDay(item.Outcome.Date),
			OutcomeNote: optionalOf(item.Outcome.Note), OutcomeDeclared: item.Outcome.Declared,
			Chance: item.Chance, Reason: textOf(item.Reason), ValueReason: textOf(item.ValueReason),
		}
		if seen := item.Observed; seen != nil {
			row.ObservedLift = seen.Lift
			row.ObservedPerMonth = seen.PerMonth
			row.ObservedValuePerMonth = seen.ValuePerMonth
		}
		if item.Expected != nil {
			row.setExpected(item.Expected)
		}
		rows = append(rows, row)
	}
	return rows
}

// setExpected sets what the true effect is expected to be.
func (r *worthRow) setExpected(of *worth.TrueValue) {
	if lift := of.Lift; lift != nil {
		r.ExpectedLift = &lift.Value
		r.ExpectedLiftLower = &lift.Interval[0]
		r.ExpectedLiftUpper = &lift.Interval[1]
	}
	if month := of.PerMonth; month != nil {
		r.ExpectedPerMonth = &month.Value
		r.ExpectedPerMonthLower = &month.Interval[0]
		r.ExpectedPerMonthUpper = &month.Interval[1]
	}
	if value := of.ValuePerMonth; value != nil {
		r.ExpectedValuePerMonth = &value.Value
		r.ExpectedValuePerMonthLow = &value.Interval[0]
		r.ExpectedValuePerMonthHigh = &value.Interval[1]
	}
}

// readSeries reads the rows of the table series.
func readSeries(ctx context.Context, r *reading, write func(*seriesRow) error) error {
	from, to := parseDay(r.From), parseDay(r.To)
	for _, of := range r.subjects {
		p, err := r.planInForce(ctx, of, "")
		if err != nil {
			return err
		}
		goals, err := r.Engine.ReadDays(ctx, p)
		if err != nil {
			return err
		}
		key := r.keyOf(of)
		var rows []seriesRow
		for i := range goals {
			for k := range goals[i].Days {
				day := &goals[i].Days[k]
				row := seriesRow{
					subjectKey: key, Day: dayOf(day.Day), VariationID: day.VariationID,
					GoalID:   optionalOf(goals[i].GoalID),
					Visitors: day.Visitors, ConvertedVisitors: day.ConvertedVisitors, GoalsReached: day.GoalsReached,
					Value: day.Value.Float(), Profit: day.Profit.Float(), ConversionWindow: goals[i].Window.String(),
				}
				isBefore := from != nil && row.Day < *from
				isAfter := to != nil && row.Day > *to
				if !isBefore && !isAfter {
					rows = append(rows, row)
				}
			}
		}
		if err := sortRows(rows, compareSeries, write); err != nil {
			return err
		}
	}
	return nil
}

func compareSeries(a, b *seriesRow) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.VariationID, b.VariationID), compareIDs(a.GoalID, b.GoalID),
		cmp.Compare(a.ConversionWindow, b.ConversionWindow))
}

// readSegments reads the rows of the table segments.
func readSegments(ctx context.Context, r *reading, write func(*segmentRow) error) error {
	attributes := slices.Clone(r.Attributes)
	slices.Sort(attributes)
	for _, of := range r.subjects {
		for _, attribute := range attributes {
			p, err := r.planInForce(ctx, of, query.Dimension(attribute))
			if err != nil {
				return err
			}
			report, err := r.Engine.ReadBreakdown(ctx, p)
			if err != nil {
				return err
			}
			rows := segmentRows(r.keyOf(of), attribute, report)
			if err := sortRows(rows, compareSegments, write); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareSegments(a, b *segmentRow) int {
	return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.VariationID, b.VariationID))
}

// segmentRows returns the rows of a report with a breakdown.
func segmentRows(key subjectKey, attribute string, of *result.Report) (rows []segmentRow) {
	for i := range of.Breakdown {
		segment := &of.Breakdown[i]
		for k := range segment.Variations {
			v := &segment.Variations[k]
			row := segmentRow{
				subjectKey: key, Attribute: attribute, Segment: segment.Value, VariationID: v.ID,
				Visitors: v.Visitors, ConvertedVisitors: v.ConvertedVisitors, Value: v.Value.Float(),
			}
			if of.Compares() {
				estimate := of.EstimateOf(v)
				row.Estimate = estimate.Value
				row.Reason = textOf(estimate.Reason)
			}
			if c := v.Comparison; c != nil {
				row.Lift = c.Improvement.Value
				row.LiftLower, row.LiftUpper = endsOf(c.Improvement.Interval)
				row.Reason = textOf(c.Improvement.Reason)
				if c.Complement != nil {
					others := &c.Complement.ImprovementDifference
					row.MinusOthers = others.Value
					row.MinusOthersLower, row.MinusOthersUpper = endsOf(others.Interval)
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}
