package looks

import (
	"slices"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// FirstView says when the first views of a subject happened, and when the first one was accepted.
type FirstView struct {
	Time     time.Time // of the first view, which may have a wrong clock
	OnTime   time.Time // of the first view that was accepted within a day of its own time; zero: none
	Accepted time.Time // when the first view was accepted
	Imported bool      // no view on time was accepted before the first late one
	Clock    time.Time // the start of the clock of imported views, see WithHistory; zero: Time
}

// Start returns the time from which the clock of the looks runs: the first view on time. A wrong clock, or a file that
// arrives later, does not move it. Imported views start it themselves.
func (f FirstView) Start() time.Time {
	switch {
	case !f.Imported:
		return f.OnTime
	case !f.Clock.IsZero():
		return f.Clock
	}
	return f.Time
}

const (
	// strayGap is the number of full days without a view after which earlier views are stray ones.
	strayGap = 7
	// leastHistory is the number of visitors from which earlier views are no stray ones.
	leastHistory = 100
)

// WithHistory returns the first view of imported data with the start of their clock: the date of the first view. If 7
// full days without any view follow before 100 visitors were seen, the earlier views are stray, and it is the next
// view. The data are not imported if fewer than 100 visitors were seen before the first view on time. steps has the
// daily series of all visitors. isFinal means that later days change nothing.
func (f FirstView) WithHistory(steps []moments.Step) (with FirstView, isFinal bool) {
	f.Clock = f.Time
	var visitors, last int64
	for _, step := range steps {
		if visitors >= leastHistory || step.Views == 0 {
			continue
		}
		switch start := time.Unix(step.Bucket*int64(day/time.Second), 1).UTC(); {
		case !f.OnTime.IsZero() && !start.Before(f.OnTime.Truncate(day)):
			f.Imported = false
			return f, true
		case last != 0 && step.Bucket-last > strayGap:
			f.Clock = start
			visitors = 0
		}
		visitors += step.Visitors
		last = step.Bucket
	}
	return f, visitors >= leastHistory
}

// Schedule has the full days of a subject and the looks that have ended. A full day is a day in UTC during all of which
// the subject ran, with or without views. The first day is partial, so it is not a full day.
type Schedule struct {
	Looks []Look
	Next  time.Time // end of the next look; zero: none is planned

	FirstView FirstView
	days      []Window  // full days without a break, in order
	last      time.Time // end of the day of the newest event, or of the last look if that is later
	newest    time.Time // event
	through   time.Time // up to which there are data
	ended     bool      // the subject ended, and its last day is mature
	stop      time.Time // end of the subject; zero: it runs
	rules     plan.LookRules
	wait      time.Duration // after the end of a look until its visitors are mature and its orders have settled
}

// Maturity returns the time from the end of a look until it is published: that of the plan, after the conversion window
// of the last visitors, and after their orders have settled.
func (s *Schedule) Maturity() time.Duration { return s.rules.Maturity }

// waits reports whether looks wait for a conversion window or for orders to settle.
func (s *Schedule) waits() bool { return s.wait > 0 }

// Look is the state at the end of a week of full days. It includes all visitors whose first view is in a whole week so
// far.
type Look struct {
	Number int
	End    time.Time
	Days   int // full days in this look and all earlier ones
}

// Window is a half-open period of first views.
type Window struct{ From, To time.Time }

// NewSchedule returns the schedule of the looks at the question of a plan, with data up to a time. No look begins after
// the newest event, because it would have no new visitors. A look has ended once it is mature, or if the subject has
// ended and the question waits for no conversion window and no orders. Recorded looks have ended, and fix the first
// full day. Recorded returns make all other looks wait until their orders have settled.
func NewSchedule(p *plan.Plan, first FirstView, through, newest time.Time, recorded []Record) *Schedule {
	s := &Schedule{
		FirstView: first, last: ceilDay(newest), newest: newest, through: through, rules: p.Rules.LookRules,
	}
	s.wait = p.ConversionWindow.Maturity()
	if r := returnsOf(p, recorded); r != nil {
		s.wait = p.ConversionWindow.To + max(p.ConversionWindow.Settle, r.Settle)
	}
	s.rules.Maturity += s.wait
	if first.Time.IsZero() {
		return s
	}
	start := first.Start()
	written := time.Time{}
	for _, r := range recorded {
		if r.Kind.FixesClock() {
			start = r.FirstDay
		}
		if r.Kind == OfLook && r.isAbout(p) {
			written = schema.LaterTime(written, r.End)
		}
	}
	data := schema.LaterTime(through, written)
	s.setDays(p, start, data)
	if stop, ended := p.EndedAt(); ended {
		s.ended = !data.Before(stop.Add(s.rules.Maturity))
		s.stop = stop
	}
	s.setLooks(p, data, written)
	if len(s.days) == 0 && p.Running {
		s.Next = ceilDay(start).Add(week)
	}
	if n := len(s.Looks); n > 0 {
		s.last = schema.LaterTime(s.last, s.Looks[n-1].End)
	}
	return s
}

// setDays sets the full days without a break. The subject ran from the start of the clock on. The first run of imported
// data begins there, too, unless a date of start is declared.
func (s *Schedule) setDays(p *plan.Plan, start, through time.Time) {
	runs := slices.Clone(p.Runs)
	if len(runs) == 0 {
		runs = []catalogue.Run{{From: start}}
	}
	for i, r := range runs {
		run := Window{From: r.From, To: through}
		isImported := i == 0 && s.FirstView.Imported && !r.Declared
		if isImported || run.From.Before(start) {
			run.From = start
		}
		if r.To != nil {
			run.To = minTime(*r.To, through)
		}
		full := Window{ceilDay(run.From), run.To.Truncate(day)}
		if full.From.Before(full.To) {
			s.days = append(s.days, full)
		}
	}
}

// setLooks sets the looks that have ended, and the end of the next one. written is the end of the last recorded look.
func (s *Schedule) setLooks(p *plan.Plan, through, written time.Time) {
	days := 0
	for i, run := range s.days {
		end := run.From.Add(week)
		for ; s.hasLook(p, run, end, through, written); end = end.Add(week) {
			days += int(week / day)
			s.Looks = append(s.Looks, Look{Number: len(s.Looks) + 1, End: end, Days: days})
		}
		waits := s.waits() && !s.FirstView.OnTime.IsZero() && !end.After(run.To)
		if i == len(s.days)-1 && (p.Running || waits) {
			s.Next = end
		}
	}
}

// hasLook reports whether there is a look at the end of a week of full days of a run.
func (s *Schedule) hasLook(p *plan.Plan, run Window, end, through, written time.Time) bool {
	if end.After(run.To) { // the week is not full
		return false
	}
	isRecorded := !end.After(written)
	hasVisitors := !end.Add(-week).After(s.newest)
	return isRecorded || hasVisitors && s.isMature(p, end, through)
}

// isMature reports whether the visitors of a look are mature, with data up to a time. Of imported data, no conversion
// after the newest event is known.
func (s *Schedule) isMature(p *plan.Plan, end, through time.Time) bool {
	if p.Ended && !s.waits() {
		return true
	}
	isComplete := !s.waits() || !s.FirstView.OnTime.IsZero() || !s.newest.Before(end.Add(s.wait))
	return isComplete && !through.Before(end.Add(s.rules.Maturity))
}

// about returns the schedule of the looks at another question about the subject, such as a guardrail with another
// conversion window.
func (s *Schedule) about(p *plan.Plan, recorded []Record) *Schedule {
	return NewSchedule(p, s.FirstView, s.through, s.newest, recorded)
}

// questionsOf returns the plans of the primary question, and of the guardrails, of the plan of the declared question.
func questionsOf(p *plan.Plan) []*plan.Plan {
	all := []*plan.Plan{p}
	for _, g := range p.Declared.Guardrails {
		all = append(all, p.AboutMeasure(g.Measure).WithMetric(g.Metric))
	}
	return all
}

// IsDue reports whether a look at the declared question or a guardrail has ended, or the subject has, or a window of
// the follow-up, and it is not recorded. What ended before the first view was accepted is of imported data, and is not
// recorded.
func (s *Schedule) IsDue(declared *plan.Plan, recorded []Record) bool {
	isMissing := func(p *plan.Plan, kind Kind, l Look) bool {
		return l.End.After(s.FirstView.Accepted) && !slices.ContainsFunc(recorded, func(r Record) bool {
			return r.isAbout(p) && r.Kind == kind && r.Number == l.Number
		})
	}
	for _, p := range questionsOf(declared) {
		isDue := func(l Look) bool { return isMissing(p, OfLook, l) }
		if slices.ContainsFunc(s.about(p, recorded).Looks, isDue) {
			return true
		}
	}
	isEndDue := s.HasEnd() && isMissing(declared, OfEnd, s.LastFullDay())
	return isEndDue || s.isFollowUpDue(declared, recorded)
}

// firstShares returns the shares at the first full day, which decide the error budget of each comparison.
func (s *Schedule) firstShares(p *plan.Plan) []float64 {
	return p.SharePeriods[plan.PeriodAt(p.SharePeriods, s.days[0].From)].Shares
}

// NextAfter returns the number and the end of the first look that is published after a time. Weeks without any event
// are no looks. It returns the zero time if none follows.
func (s *Schedule) NextAfter(now time.Time) (number int, end time.Time) {
	number = len(s.Looks) + 1
	end = s.Next
	for ; !end.IsZero(); end = end.Add(week) {
		if !s.stop.IsZero() && end.After(s.stop) {
			return number, time.Time{}
		}
		hasEvents := s.newest.After(end.Add(-week))
		switch isOver := !end.After(now); {
		case isOver && hasEvents && !end.Add(s.rules.Maturity).After(now):
			number++ // it is due
		case !isOver || hasEvents:
			return number, end
		}
	}
	return number, end
}

// ceilDay returns the first midnight in UTC that is not before a time.
func ceilDay(t time.Time) time.Time {
	start := t.UTC().Truncate(day)
	if start.Before(t) {
		return start.Add(day)
	}
	return start
}

// LookWindows returns the periods of first views in the look at a time: whole weeks. Broken weeks divide them.
func (s *Schedule) LookWindows(end time.Time) []Window {
	var found []Window
	for _, run := range s.days {
		to := minTime(run.To, end)
		if whole := to.Sub(run.From) / week * week; whole > 0 {
			found = append(found, Window{run.From, run.From.Add(whole)})
		}
	}
	return found
}

// sinceLooks returns the periods of LookWindows, and the full days from the last look up to a time.
func (s *Schedule) sinceLooks(end time.Time) []Window {
	found := s.LookWindows(end)
	last := s.days[len(s.days)-1]
	for i := len(s.days) - 1; i >= 0 && last.From.After(end); i-- {
		last = s.days[i]
	}
	if !last.From.Before(end) {
		return found
	}
	current := Window{last.From, minTime(last.To, end)}
	if n := len(found); n > 0 && found[n-1].From.Equal(current.From) {
		found[n-1] = current
		return found
	}
	return append(found, current)
}

// fullDays returns the ends of all full days, up to the day of the newest event or the last look.
func (s *Schedule) fullDays() []time.Time {
	var ends []time.Time
	for _, run := range s.days {
		for end := run.From.Add(day); !end.After(run.To) && !end.After(s.last); end = end.Add(day) {
			ends = append(ends, end)
		}
	}
	return ends
}

// EndOfDay returns the end of the n-th full day, which must exist.
func (s *Schedule) EndOfDay(n int) time.Time { return s.fullDays()[n-1] }

// FullDays returns the number of full days, up to the day of the newest event or the last look.
func (s *Schedule) FullDays() int { return len(s.fullDays()) }

// HasEnd reports whether the subject has ended after a full day, and this day is mature.
func (s *Schedule) HasEnd() bool { return s.ended && s.FullDays() > 0 }

// LastFullDay returns the state at the end of the last full day, whose number is that of the full days. It returns the
// zero Look if there is none.
func (s *Schedule) LastFullDay() (last Look) {
	if ends := s.fullDays(); len(ends) > 0 {
		last = Look{Number: len(ends), End: ends[len(ends)-1], Days: len(ends)}
	}
	return last
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
