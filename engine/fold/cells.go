package fold

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/schema"
)

// CellKey identifies a cell: sums over the visitors of a variation of a subject. Goal 0 has the sums of visitors, and
// the sums of the events of all goals. In cells of the grain OfDay, a visitor counts on the day of the first view, and
// an event changes the sums on its own day. So the sums over all days up to a day are the sums as of that day. Cells of
// the goal Returns are of the grain OfDay, too.
type CellKey struct {
	Subject   schema.Subject
	Grain     Grain
	Goal      int64
	Variation string
	First     int64 // day of the first view, in days since 1970
	Day       int64 // day of the event, in days after First
}

// Returns is the goal of cells that count the visitors who had events on the day First and next on the day Day. In a
// window of days, each visitor first exposed before the window returns exactly once from a day before it.
const Returns = -1

// Cell has the sums over the visitors of a cell, or the amounts that changes add to them.
type Cell struct {
	CellSums
	Extent
}

// Extent is the time range of the events in a cell of the grain OfAll and goal 0. It never shrinks, because erasing the
// first visitor must not move the schedule of the looks.
type Extent struct {
	FirstView      int64 // time of the first view, in milliseconds since 1970, as all times; 0: none
	FirstOnTime    int64 // time of the first view that was accepted on time, see onTime
	AcceptedOnTime int64 // when the first of these was accepted
	AcceptedLate   int64 // when the first other view was accepted
	Newest         int64 // time of the latest event
}

// onTime is the largest difference, in milliseconds, between the time of a view and its acceptance if the view is on
// time. Other views come from a wrong clock, or from a file.
const onTime = int64(24 * time.Hour / time.Millisecond)

// extendByView extends the extent to include a view.
func (e *Extent) extendByView(at, accepted int64) {
	view := Extent{FirstView: at, AcceptedLate: accepted}
	if accepted-at <= onTime && at-accepted <= onTime {
		view = Extent{FirstView: at, FirstOnTime: at, AcceptedOnTime: accepted}
	}
	e.ExtendBy(&view)
}

// FirstAccepted returns when the first view was accepted; 0: there is none.
func (e *Extent) FirstAccepted() int64 { return earlierTime(e.AcceptedOnTime, e.AcceptedLate) }

// TimeOf returns a time of an extent; zero: none.
func TimeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// earlierTime returns the earlier of two times; 0 is none.
func earlierTime(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ExtendBy extends the extent to include another one.
func (e *Extent) ExtendBy(o *Extent) {
	e.FirstView = earlierTime(e.FirstView, o.FirstView)
	e.FirstOnTime = earlierTime(e.FirstOnTime, o.FirstOnTime)
	e.AcceptedOnTime = earlierTime(e.AcceptedOnTime, o.AcceptedOnTime)
	e.AcceptedLate = earlierTime(e.AcceptedLate, o.AcceptedLate)
	e.Newest = max(e.Newest, o.Newest)
}

// Cells has cells by their keys, or the amounts that changes add to them.
type Cells map[CellKey]*Cell

// AddRows adds all rows of a visitor of a subject, or subtracts them if sign is -1. The rows of each variation must be
// in the order of AppendVisitorRows. If byDay is true, AddRows also adds them to the cells by day.
func (c Cells) AddRows(rows []FactRow, sign int64, byDay bool) {
	for own := range splitBySubject(rows) {
		c.addVisitor(&own[0], own[1:], sign)
		if byDay && IsCounted(own[0].Variation) {
			c.addDays(&own[0], own[1:], sign)
		}
	}
}

func (c Cells) findOrAdd(key CellKey) *Cell {
	cell := c[key]
	if cell == nil {
		cell = &Cell{}
		c[key] = cell
	}
	return cell
}

// addVisitor adds a visitor to the cells of the grain OfAll.
func (c Cells) addVisitor(v *FactRow, goals []FactRow, sign int64) {
	var own CellSums
	own.addAt(Visitors, 1)
	for i, n := range v.Counts {
		own.addAt(Views+i, int64(n))
	}
	own.addAt(Completed, oneIf(v.Counts[moments.Completion-moments.View] > 0))
	own.addAt(Conversed, oneIf(v.Counts[moments.Conversion-moments.View] > 0))
	var all totals
	key := CellKey{Subject: v.Subject, Grain: OfAll, Variation: v.Variation}
	cell := c.findOrAdd(key)
	for rows := range SplitRuns(goals, func(a, b *FactRow) bool { return a.Goal == b.Goal }) {
		var of CellSums
		var total totals
		for i := range rows {
			total = of.addGoal(total, &rows[i])
			all = own.addGoal(all, &rows[i])
		}
		key.Goal = rows[0].Goal
		c.findOrAdd(key).AddSigned(&of, sign)
	}
	cell.AddSigned(&own, sign)
	if sign > 0 {
		if IsCounted(v.Variation) {
			cell.ExtendBy(&v.Views)
		}
		cell.ExtendBy(&Extent{Newest: v.First + int64(v.Since)}) //nolint:gosec // milliseconds
	}
}

// addDays adds a visitor to the cells of the grain OfDay.
func (c Cells) addDays(v *FactRow, goals []FactRow, sign int64) {
	key := CellKey{Subject: v.Subject, Grain: OfDay, Variation: v.Variation, First: DayOf(v.First)}
	days := daySums{}
	days.addVisitor(v)
	days.addGoals(goals)
	for day, sums := range days {
		of := key
		of.Day = day
		c.findOrAdd(of).AddSigned(sums, sign)
	}
	c.addGoalDays(key, goals, sign)
	c.addReturns(key, v, sign)
}

// daySums are what a visitor adds to the sums of each day, in days after the first view.
type daySums map[int64]*CellSums

func (d daySums) on(day int64) *CellSums {
	if d[day] == nil {
		d[day] = &CellSums{}
	}
	return d[day]
}

// dayAfterFirst returns the day of an event of a row, in days after that of the first view.
func (r *FactRow) dayAfterFirst(since uint64) int64 {
	return DayOf(r.First+int64(since)) - DayOf(r.First) //nolint:gosec // milliseconds
}

// addVisitor adds the visitor, and the events other than goals.
func (d daySums) addVisitor(v *FactRow) {
	d.on(0).addAt(Visitors, 1)
	d.on(0).addAt(Views, 1)
	var seen [moments.Goal + 1]bool
	for i, later := range v.Later {
		kind := moments.Kind(v.LaterKinds[i])
		if kind == moments.Goal {
			continue
		}
		sums := d.on(v.dayAfterFirst(later))
		sums.addAt(Views+int(kind-moments.View), 1)
		switch {
		case seen[kind]:
		case kind == moments.Completion:
			sums.addAt(Completed, 1)
		case kind == moments.Conversion:
			sums.addAt(Conversed, 1)
		}
		seen[kind] = true
	}
}

// addGoals adds the goal events, in order of time, to the sums of all goals.
func (d daySums) addGoals(goals []FactRow) {
	inTime := make([]*FactRow, len(goals))
	for i := range goals {
		inTime[i] = &goals[i]
	}
	slices.SortStableFunc(inTime, func(a, b *FactRow) int { return cmp.Compare(a.Since, b.Since) })
	var total totals
	for _, r := range inTime {
		total = d.on(r.dayAfterFirst(r.Since)).addGoal(total, r)
	}
}

// addGoalDays adds the goal events of a visitor, which are in order of goal and time, to the cells of their goals. key
// is that of the visitor's cells.
func (c Cells) addGoalDays(key CellKey, goals []FactRow, sign int64) {
	var total totals
	for i := range goals {
		r := &goals[i]
		if i == 0 || goals[i-1].Goal != r.Goal {
			total = totals{}
		}
		var sums CellSums
		total = sums.addGoal(total, r)
		key.Goal = r.Goal
		key.Day = r.dayAfterFirst(r.Since)
		c.findOrAdd(key).AddSigned(&sums, sign)
	}
}

// addReturns adds the days of a visitor with events, after the first one, to the cells of returns. key is that of the
// visitor's cells.
func (c Cells) addReturns(key CellKey, v *FactRow, sign int64) {
	var one CellSums
	one.addAt(Visitors, 1)
	key.Goal = Returns
	for _, later := range v.Later {
		today := DayOf(v.First + int64(later)) //nolint:gosec // milliseconds
		key.Day = today - key.First
		if key.Day > 0 {
			c.findOrAdd(key).AddSigned(&one, sign)
			key.First = today
		}
	}
}
