package looks

import (
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// Series returns the daily series of measures: for each, the steps of the visitors whose first view is at or after a
// time.
type Series func(
	since time.Time, measures []plan.Measure, timing plan.Timing,
) (map[plan.Measure][]moments.Step, error)

// readSums reads the daily series of measures since each cut, and returns a function for the sums of a plan.
func (read Series) readSums(
	cuts []time.Time, measures []plan.Measure, timing plan.Timing,
) (func(*plan.Plan) *DailySums, error) {
	steps := map[plan.Measure][][]moments.Step{}
	for _, cut := range cuts {
		found, err := read(cut, measures, timing)
		if err != nil {
			return nil, err
		}
		for _, of := range measures {
			steps[of] = append(steps[of], found[of])
		}
	}
	return func(p *plan.Plan) *DailySums { return newSums(p, cuts, steps[p.Measure()]) }, nil
}

// askedQuestion is the primary question or a guardrail, with its daily sums.
type askedQuestion struct {
	plan     *plan.Plan
	schedule *Schedule // of its looks, which wait for its conversion window, and until its orders have settled
	sums     *DailySums
	harm     harmData
}

// harmData has the days and sums in which harm is looked for. It waits neither for a conversion window nor for orders,
// so an event in a conversion window counts from when it happened.
type harmData struct {
	schedule *Schedule
	sums     *DailySums
}

// readQuestions reads the daily sums of the primary question and of the guardrails, in this order. It also returns a
// function for the sums of another plan of a declared measure.
func (read Series) readQuestions(
	p *plan.Plan, s *Schedule, recorded []Record,
) (asked []askedQuestion, sumsOf func(*plan.Plan) *DailySums, err error) {
	schedules := []*Schedule{s}
	var windowed []plan.Measure // those with a conversion window
	waits := s.waits()
	for i, question := range questionsOf(p) {
		if i > 0 {
			schedules = append(schedules, s.about(question, recorded))
		}
		if question.ConversionWindow.IsSet() {
			windowed = append(windowed, question.Measure())
		}
		waits = waits || schedules[i].waits()
	}
	open := s
	if waits {
		open = s.about(p.AboutMeasure(plan.Measure{GoalID: p.GoalID}), withoutReturns(recorded))
	}
	cuts := SeriesCuts(append(schedules, open)...)
	sumsOf, err = read.readSums(cuts, p.Declared.AllMeasures(), plan.OnFirstView)
	if err != nil {
		return nil, nil, err
	}
	eventSumsOf, err := read.readSums(cuts, plan.SortedMeasures(windowed), plan.OnEvent)
	if err != nil {
		return nil, nil, err
	}
	for i, question := range questionsOf(p) {
		of := askedQuestion{plan: question, schedule: schedules[i], sums: sumsOf(question)}
		of.harm = harmData{of.schedule, of.sums}
		if of.schedule.waits() {
			of.harm.schedule = open
		}
		if question.ConversionWindow.IsSet() {
			of.harm = harmData{open, eventSumsOf(question)}
		}
		asked = append(asked, of)
	}
	return asked, sumsOf, nil
}
