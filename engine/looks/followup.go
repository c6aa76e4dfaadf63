package looks

import (
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// Reading says what the visitors of the looks of a subject did in a window of the follow-up that their campaign
// declares. It is one fixed test for each treatment, at the error rate of the campaign divided by the number of windows
// (Bonferroni), with Dunnett's critical value for several treatments. It decides nothing.
type Reading struct {
	Plan      *plan.Plan // of the question
	Published time.Time  // when it is or was due; zero: the last look of the plan is not known yet
	Rows      []LookRow  // by treatment; none: it is not due
	HasNoLook bool       // the subject ended before its first look, so there is nobody to follow
}

// IsRecorded reports whether the reading is in the ledger.
func (r *Reading) IsRecorded() bool { return len(r.Rows) > 0 && !r.Rows[0].RecordedAt.IsZero() }

// Window returns the number of days of the window.
func (r *Reading) Window() int { return daysOf(r.Plan) }

// daysOf returns the number of days of the window of a follow-up, which is the number of its rows in the ledger.
func daysOf(question *plan.Plan) int { return int(question.ConversionWindow.To / day) }

// followUpsOf returns the plans of the follow-up of the declared question.
func followUpsOf(declared *plan.Plan) (all []*plan.Plan) {
	for _, f := range declared.Declared.FollowUp {
		all = append(all, declared.AboutMeasure(f.Measure).WithMetric(f.Metric))
	}
	return all
}

// lookOfCohort returns the look whose visitors a follow-up is about: the first one at the end of the plan or, if the
// subject ended before, the last one. It returns false if the look is not known yet. primary has the rows of the looks
// at the declared question, in order.
func (s *Schedule) lookOfCohort(declared *plan.Plan, primary []LookRow) (Look, bool) {
	at := slices.IndexFunc(primary, func(r LookRow) bool { return r.Tau >= 1 })
	switch n := len(s.Looks); {
	case at >= 0:
		return primary[at].Look, true
	case declared.Ended && s.Next.IsZero() && n > 0: // no look follows
		return s.Looks[n-1], true
	}
	return Look{}, false
}

// followUpEnd returns when a reading of a cohort is due: when the window of the last visitor has ended, the orders have
// settled, and late events have arrived.
func followUpEnd(question *plan.Plan, cohort Look) time.Time {
	return cohort.End.Add(question.ConversionWindow.Maturity() + question.Rules.Maturity)
}

// isMatured reports whether a reading is due. Of imported data, no order after the newest event is known.
func (s *Schedule) isMatured(question *plan.Plan, cohort Look) bool {
	isComplete := !s.FirstView.OnTime.IsZero() || !s.newest.Before(cohort.End.Add(question.ConversionWindow.To))
	return isComplete && !s.through.Before(followUpEnd(question, cohort))
}

// recordedReading returns the rows of a reading in the ledger; none: it is not recorded.
func recordedReading(question *plan.Plan, recorded []Record) (rows []LookRow) {
	for _, r := range recorded {
		if r.isAbout(question) && r.Kind == OfFollowUp && r.Number == daysOf(question) {
			rows = append(rows, r.LookRow)
		}
	}
	return rows
}

// dueFollowUps returns the questions of the follow-up that are due and not recorded. primary has the rows of the looks
// at the declared question.
func (s *Schedule) dueFollowUps(declared *plan.Plan, primary []LookRow, recorded []Record) (due []*plan.Plan) {
	cohort, isKnown := s.lookOfCohort(declared, primary)
	for _, question := range followUpsOf(declared) {
		if isKnown && s.isMatured(question, cohort) && len(recordedReading(question, recorded)) == 0 {
			due = append(due, question)
		}
	}
	return due
}

// RecordedReadings returns the recorded readings of the follow-up of a declared question, by declared window.
func RecordedReadings(declared *plan.Plan, recorded []Record) (all []Reading) {
	for _, question := range followUpsOf(declared) {
		rows := recordedReading(question, recorded)
		if len(rows) > 0 {
			cohort := Look{End: rows[0].End}
			all = append(all, Reading{Plan: question, Published: followUpEnd(question, cohort), Rows: rows})
		}
	}
	return all
}

// isFollowUpDue reports whether a reading must be recorded. Visitors of a look before the first view was accepted are
// imported, and their readings are not recorded.
func (s *Schedule) isFollowUpDue(declared *plan.Plan, recorded []Record) bool {
	var primary []LookRow
	for _, r := range recorded {
		if r.isAbout(declared) && r.Kind == OfLook {
			primary = append(primary, r.LookRow)
		}
	}
	slices.SortStableFunc(primary, func(a, b LookRow) int { return a.Number - b.Number })
	cohort, isKnown := s.lookOfCohort(declared, primary)
	return isKnown && cohort.End.After(s.FirstView.Accepted) && len(s.dueFollowUps(declared, primary, recorded)) > 0
}

// readFollowUp returns the readings of the follow-up. It reads sums only of those that are due and not recorded.
func (a *Analysis) readFollowUp(recorded []Record, series Series) error {
	primary := a.Primary.ofTreatment(0)
	cohort, isKnown := a.lookOfCohort(a.Plan, primary)
	due := a.dueFollowUps(a.Plan, primary, recorded)
	var sumsOf func(*plan.Plan) *DailySums
	if len(due) > 0 {
		var measures []plan.Measure
		for _, question := range due {
			measures = append(measures, question.Measure())
		}
		var err error
		sumsOf, err = series.readSums(a.cutsOf(cohort), plan.SortedMeasures(measures), plan.OnFirstView)
		if err != nil {
			return err
		}
	}
	for _, question := range followUpsOf(a.Plan) {
		of := Reading{
			Plan: question, Rows: recordedReading(question, recorded),
			HasNoLook: a.Plan.Ended && a.Next.IsZero() && len(a.Looks) == 0,
		}
		if isKnown {
			of.Published = followUpEnd(question, cohort)
		}
		isDue := slices.ContainsFunc(due, func(p *plan.Plan) bool { return p.Measure() == question.Measure() })
		if isDue {
			of.Rows = compareReading(a, sumsOf(question), cohort)
		}
		a.FollowUp = append(a.FollowUp, of)
	}
	return nil
}

// cutsOf returns the times since which the daily series of a cohort must be read.
func (s *Schedule) cutsOf(cohort Look) []time.Time {
	only := *s
	only.Looks = []Look{cohort}
	only.days = s.LookWindows(cohort.End)
	only.last = cohort.End
	return SeriesCuts(&only)
}

// compareReading compares the treatments with control in the visitors of a cohort.
func compareReading(found *Analysis, sums *DailySums, cohort Look) []LookRow {
	p := sums.plan
	data := LookData{Look: Look{Number: daysOf(p), End: cohort.End, Days: cohort.Days}, Tau: 1}
	strata := sums.strataUntil(found.LookWindows(cohort.End), cohort.End)
	for i := range strata {
		samples, visitors := samplesOf(p, &strata[i])
		data.Strata = append(data.Strata, samples)
		data.Visitors += visitors
	}
	rows := CompareCohort(p, found.firstShares(p), data)
	for i := range rows {
		rows[i].Strata = rowStrata(p, strata, rows[i].VariationID)
	}
	return rows
}

// CompareCohort returns the rows of a reading by treatment: one test each, at the error rate of the plan divided by the
// number of its readings. shares are those at the first full day, control first. A variation that was added later has
// no result.
func CompareCohort(p *plan.Plan, shares []float64, data LookData) (rows []LookRow) {
	alpha := alphaOf(p) / float64(len(p.Declared.FollowUp))
	design := stats.NewLookDesign(alpha, shares)
	sequenceOf := func(points []stats.LookPoint) *stats.LookSequence { return design.NewSequence(points, nil) }
	for t, v := range p.Variations[1:] {
		row := RowsWithout([]LookData{data}, v.ID, stats.ReasonPlanChanged)
		if !v.Added {
			row = AnalyzeTreatment([]LookData{data}, t, v.ID, nil, sequenceOf)
		}
		row[0].Kind = OfFollowUp
		rows = append(rows, row...)
	}
	return rows
}
