package facts

import (
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
)

// factSource is where sums of a question are read.
type factSource string

// The sources, the cheapest first.
const (
	ofCells      factSource = "cells"                  // the cells of all visitors, which are in memory
	ofDays       factSource = "cells by day"           // hundreds of rows
	ofComplement factSource = "cells minus immature"   // the cells, minus the visitors whose window has not ended
	ofCrossers   factSource = "cells by day, crossers" // the cells by day, and the rows of multi-exposed visitors
	ofRows       factSource = "rows"                   // of visitors, or of goal events with the sums before each
	byVisitor    factSource = "rows by visitor"        // the rows of goal events, summed for each visitor first
	ofActions    factSource = "actions"                // the events in the rows of visitors
	ofNumbered   factSource = "numbered rows"          // the rows of goal events, numbered again for each visitor
)

// factSources says where the sums of a question are read on a server.
type factSources struct {
	visitors factSource
	goals    factSource
	// ofCap says that the sums of goal events are without the cap, and that rows of events above it have what it
	// removes.
	ofCap bool
}

// asked is what decides the sources of a question.
type asked struct {
	*plan.Question
	isOfGoals   bool // of events of one goal or of several goals, which are summed apart
	hasOutliers bool // goal events are selected by bounds of their value
	isCapped    bool // total values of visitors are limited
	hasDays     bool // the subject has cells by day
	hasCrossers bool // the crossings of multi-exposed visitors are read, and the subject has some
}

// newAsked returns what decides the sources of an answer on a server.
func newAsked(x *answer, on *state) asked {
	a := asked{
		Question: &x.Question, isOfGoals: x.GoalID != 0 || len(x.goals) > 0, hasOutliers: x.outliers != nil,
		isCapped: x.isCapped(), hasDays: on.days,
	}
	if x.Crossings && x.Interval != "" {
		for of := range on.all {
			a.hasCrossers = a.hasCrossers || fold.IsMultiExposed(of.Variation)
		}
	}
	return a
}

// countsAll reports whether every event of a goal counts. Then the sums before each event in the rows are those of the
// report.
func (a *asked) countsAll() bool {
	selectsEvents := a.Filters.GoalValue != nil || a.hasOutliers || a.ConversionWindow.From > 0
	return a.isOfGoals && !selectsEvents
}

// hasTimes reports whether only visitors and events of a window of times count.
func (a *asked) hasTimes() bool { return !a.Filters.From.IsZero() || !a.Filters.To.IsZero() }

// isWhole reports whether no visitor is left out, and all of a variation are summed together, apart from time.
func (a *asked) isWhole() bool { return !a.dividesVisitors() && a.Dimension == "" }

// dividesVisitors reports whether visitors are left out, or are divided by the period of their first view.
func (a *asked) dividesVisitors() bool { return a.Filters.SelectsVisitors() || len(a.SharePeriods) > 1 }

// dividesRecent reports whether some visitors of the recent days are left out, or are divided by more than the
// variation.
func (a *asked) dividesRecent() bool {
	return a.hasTimes() || a.dividesVisitors() || isOfMature(a.Question)
}

// fitsDays reports whether cells by day have the sums of the window of times. Subjects with few visitors have none.
func (a *asked) fitsDays() bool {
	return a.hasDays && isWholeDay(a.Filters.From) && isWholeDay(a.Filters.To)
}

// isWholeDay reports whether an end of a window is open or at midnight UTC.
func isWholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// haveGoals reports whether cells with the sums of visitors also have those of goal events, apart from what a cap
// removes. Filters of goal events do not change the sums of visitors.
func (a *asked) haveGoals() bool {
	isFiltered := a.Filters.GoalValue != nil || a.Filters.ZScore != 0
	return !isFiltered && (!a.isCapped || a.countsAll())
}

// ofTotals returns the sources of a question without its series.
func (a *asked) ofTotals() factSources {
	visitors := a.visitorsOfTotals()
	switch hasCells := visitors == ofCells || visitors == ofDays; {
	case hasCells && a.haveGoals():
		return factSources{visitors: visitors, goals: visitors, ofCap: a.isCapped}
	case a.countsAll():
		return factSources{visitors: visitors, goals: ofRows}
	default:
		return factSources{visitors: visitors, goals: byVisitor}
	}
}

// visitorsOfTotals returns the source of the sums of visitors. Cells are hundreds of rows in place of millions. A
// campaign has no events of visitors but views, so those of the mature visitors are what the few others leave of the
// cells.
func (a *asked) visitorsOfTotals() factSource {
	switch {
	case !a.isWhole():
		return ofRows
	case a.ConversionWindow.IsSet():
		if isOfAll := !isOfWidget(a.Subject) && !a.hasTimes(); isOfAll && isOfMature(a.Question) {
			return ofComplement
		}
		return ofRows
	case !a.hasTimes():
		return ofCells
	case a.fitsDays():
		return ofDays
	default:
		return ofRows
	}
}

// isOfMature reports whether only visitors count whose conversion window has ended.
func isOfMature(q *plan.Question) bool {
	return q.ConversionWindow.IsSet() && (q.Timing == plan.WhenMature || q.Timing == plan.ByAge)
}

// ofSeries returns the sources of a series.
func (a *asked) ofSeries() factSources {
	if a.hasSeriesByDay() {
		if a.hasCrossers {
			return factSources{visitors: ofCrossers, goals: ofCrossers}
		}
		return factSources{visitors: ofDays, goals: ofDays}
	}
	from := factSources{visitors: ofActions, goals: ofRows}
	if a.ConversionWindow.IsSet() && a.Timing == plan.ByAge && !isOfWidget(a.Subject) {
		from.visitors = a.visitorsOfTotals() // no metric of a campaign needs the ages of views
	}
	if !a.countsAll() {
		from.goals = ofNumbered
	}
	return from
}

// hasSeriesByDay reports whether cells by day have the series.
func (a *asked) hasSeriesByDay() bool {
	isDaily := a.Interval != query.Hourly && a.fitsDays()
	hasSums := a.isWhole() && a.haveGoals() && !a.isCapped
	return isDaily && hasSums && !a.ConversionWindow.IsSet()
}
