package looks

import (
	"time"

	"lifthouse/engine/plan"
)

const (
	day        = 24 * time.Hour
	daysOfWeek = 7
)

// FirstView is the first view of a subject.
type FirstView struct {
	Time, Accepted time.Time
}

// isImported reports whether the first view was stored long after it happened.
func (f FirstView) isImported() bool { return f.Accepted.Sub(f.Time) > day }

// Schedule has the full days of a subject and the looks that have ended. A full day is a day in
// UTC during all of which the subject ran, with or without views. The first day is partial, so
// it is not a full day.
type Schedule struct {
	Looks []Look
	Next  time.Time // end of the next look; zero: none is planned

	FirstView FirstView
	days      []span    // full days without a break, in order
	last      time.Time // end of the day of the newest event, or of the last look if that is later
	rules     plan.LookRules
}

// Look is the state at the end of a week of full days. It includes all visitors whose first
// view is in a whole week so far. With daily looks, it is the state at the end of a full day.
type Look struct {
	Number int
	End    time.Time
	Days   int // full days in this look and all earlier ones
}

// span is a half-open period.
type span struct{ from, to time.Time }

// NewSchedule returns the schedule of a subject with data up to a time. No look begins after
// the newest event, because it would have no new visitors. A look has ended once it is mature,
// or if the subject has ended. Recorded looks have ended, and fix the first full day.
func NewSchedule(p *plan.Plan, first FirstView, through, newest time.Time, recorded []Record) *Schedule {
	s := &Schedule{FirstView: first, last: ceilDay(newest), rules: p.Rules.LookRules}
	if first.Time.IsZero() {
		return s
	}
	imported := first.isImported() // before the time is replaced by the recorded day
	var written time.Time          // end of the last recorded look
	for _, r := range recorded {
		first.Time = r.FirstDay
		if r.Number > 0 && r.End.After(written) {
			written = r.End
		}
	}
	if written.After(through) {
		through = written
	}
	for _, r := range runsOf(p, first.Time, imported, through) {
		if full := (span{ceilDay(r.from), r.to.Truncate(day)}); full.from.Before(full.to) {
			s.days = append(s.days, full)
		}
	}
	length := s.lookInterval()
	days, number := 0, 0
	for i, run := range s.days {
		for end := run.from.Add(length); ; end = end.Add(length) {
			isMature := !through.Before(end.Add(s.rules.Maturity)) || p.Ended || !end.After(written)
			if !end.After(run.to) && isMature && (!end.Add(-length).After(newest) || !end.After(written)) {
				number, days = number+1, days+int(length/day)
				s.Looks = append(s.Looks, Look{Number: number, End: end, Days: days})
				continue
			}
			if i == len(s.days)-1 && p.Running {
				s.Next = end
			}
			break
		}
	}
	if len(s.days) == 0 && p.Running {
		s.Next = ceilDay(first.Time).Add(length)
	}
	if n := len(s.Looks); n > 0 && s.Looks[n-1].End.After(s.last) {
		s.last = s.Looks[n-1].End
	}
	return s
}

// lookInterval returns the time between two looks.
func (s *Schedule) lookInterval() time.Duration {
	if s.rules.Daily {
		return day
	}
	return daysOfWeek * day
}

// runsOf returns the periods in which the subject ran, from its first view on, up to a time.
// The first run of imported data begins with the first view.
func runsOf(p *plan.Plan, first time.Time, imported bool, through time.Time) []span {
	var runs []span
	for i, r := range p.Runs {
		run := span{from: r.From, to: through}
		if i == 0 && imported || run.from.Before(first) {
			run.from = first
		}
		if r.To != nil && r.To.Before(run.to) {
			run.to = *r.To
		}
		if run.from.Before(run.to) {
			runs = append(runs, run)
		}
	}
	if len(p.Runs) == 0 {
		runs = []span{{first, through}}
	}
	return runs
}

// ceilDay returns the first midnight in UTC that is not before a time.
func ceilDay(t time.Time) time.Time {
	start := t.UTC().Truncate(day)
	if start.Before(t) {
		return start.Add(day)
	}
	return start
}

// lookTau returns the time of a look on the clock of the plan, which ends at 1. most is the
// largest number of visitors of a look so far.
func (s *Schedule) lookTau(l Look, most int64) float64 {
	if s.rules.PlannedVisitors > 0 {
		return float64(most) / float64(s.rules.PlannedVisitors)
	}
	return float64(l.Days) / float64(s.rules.PlannedDays)
}

// inLooks returns the periods of first views in the look at a time: whole weeks, or full days
// for daily looks.
func (s *Schedule) inLooks(end time.Time) []span {
	var found []span
	for _, run := range s.days {
		to := minTime(run.to, end)
		if whole := to.Sub(run.from) / s.lookInterval() * s.lookInterval(); whole > 0 {
			found = append(found, span{run.from, run.from.Add(whole)})
		}
	}
	return found
}

// sinceLooks returns the periods of inLooks, and the full days from the last look up to a time.
func (s *Schedule) sinceLooks(end time.Time) []span {
	found := s.inLooks(end)
	last := s.days[len(s.days)-1]
	for i := len(s.days) - 1; i >= 0 && last.from.After(end); i-- {
		last = s.days[i]
	}
	if !last.from.Before(end) {
		return found
	}
	current := span{last.from, minTime(last.to, end)}
	if n := len(found); n > 0 && found[n-1].from.Equal(current.from) {
		found[n-1] = current
		return found
	}
	return append(found, current)
}

// fullDays returns the ends of all full days, up to the day of the newest event or the last
// look.
func (s *Schedule) fullDays() []time.Time {
	var ends []time.Time
	for _, run := range s.days {
		for end := run.from.Add(day); !end.After(run.to) && !end.After(s.last); end = end.Add(day) {
			ends = append(ends, end)
		}
	}
	return ends
}

// EndOfDay returns the end of the n-th full day, which must exist.
func (s *Schedule) EndOfDay(n int) time.Time { return s.fullDays()[n-1] }

// FullDays returns the number of full days, up to the day of the newest event or the last look.
func (s *Schedule) FullDays() int { return len(s.fullDays()) }

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
