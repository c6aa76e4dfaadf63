package report

import (
	"slices"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/competitors"
)

// Question has the competitors' CPU time ratios for one question. A figure is 0 if it was
// not measured.
type Question struct {
	Question competitors.Question
	Ratios   []float64 // of the cheapest computation of each group in competitors.Groups, to the report of Lifthouse
	CPUMS    float64   // CPU time of the report of Lifthouse
}

// Groups returns the groups of the competitors' computations that were measured.
func (b *Benchmarks) Groups() []string {
	var measured []string
	for _, group := range competitors.Groups {
		if slices.ContainsFunc(b.Competitors.Rows, func(row competitors.MedianCost) bool { return !row.Lifthouse() && row.GroupName() == group }) {
			measured = append(measured, group)
		}
	}
	return measured
}

// Questions returns the questions of the comparison with the competitors.
func (b *Benchmarks) Questions() []Question {
	var questions []Question
	groups := b.Groups()
	for _, row := range b.Competitors.Rows {
		if len(questions) == 0 || questions[len(questions)-1].Question != row.Question {
			questions = append(questions, Question{Question: row.Question, Ratios: make([]float64, len(groups))})
		}
		q := &questions[len(questions)-1]
		if row.Lifthouse() {
			q.CPUMS = row.Cost.CPUMS
			continue
		}
		keepLeast(&q.Ratios[slices.Index(groups, row.GroupName())], row.CPURatio)
	}
	return questions
}

// keepLeast replaces *least by a figure if *least is unknown or greater.
func keepLeast(least *float64, figure float64) {
	if figure > 0 && (*least == 0 || figure < *least) {
		*least = figure
	}
}

// Best returns the step at the saturation rate, or nil if no rate met the
// target.
func (l *Load) Best() *bench.Step {
	for i := range l.Result.Steps {
		if s := &l.Result.Steps[i]; s.Met && s.Rate == l.Result.Saturation {
			return s
		}
	}
	return nil
}

// Group has the observed rates of one measure, of one part of the table, or of one measure in one part.
type Group[R any] struct {
	Part, Measure   string
	Rows            []R
	Tested, Outside int     // rates with a band, and rates outside it
	Lowest, Highest float64 // rates
}

// observedRate is what groupRates needs of a row.
type observedRate struct {
	part, measure   string // of the group
	tested, outside bool
	rate            float64
}

func groupRates[R any](rows []R, observe func(*R) observedRate) []Group[R] {
	var groups []Group[R]
	for i := range rows {
		o := observe(&rows[i])
		at := slices.IndexFunc(groups, func(g Group[R]) bool { return g.Part == o.part && g.Measure == o.measure })
		if at < 0 {
			at = len(groups)
			groups = append(groups, Group[R]{Part: o.part, Measure: o.measure, Lowest: o.rate, Highest: o.rate})
		}
		g := &groups[at]
		g.Rows = append(g.Rows, rows[i])
		g.Lowest = min(g.Lowest, o.rate)
		g.Highest = max(g.Highest, o.rate)
		if o.tested {
			g.Tested++
		}
		if o.outside {
			g.Outside++
		}
	}
	return groups
}

// CellGroups returns the calibration cells grouped by measure.
func (b *Benchmarks) CellGroups() []Group[calibration.Cell] {
	return groupRates(b.Calibration.Cells, func(c *calibration.Cell) observedRate {
		return observedRate{measure: c.Measure, tested: c.Sense != calibration.Untested, outside: c.Outside, rate: c.Observed}
	})
}

// DecisionParts returns the rates of decisions grouped by part.
func (b *Benchmarks) DecisionParts() []Group[calibration.DecisionRow] {
	return groupRates(b.Decisions.Rows, func(r *calibration.DecisionRow) observedRate { return observedRate{part: r.Part} })
}

// DecisionMeasures returns the rates of decisions grouped by part and measure.
func (b *Benchmarks) DecisionMeasures() []Group[calibration.DecisionRow] {
	return groupRates(b.Decisions.Rows, func(r *calibration.DecisionRow) observedRate {
		return observedRate{part: r.Part, measure: r.Measure, tested: true, outside: r.Outside, rate: r.Rate}
	})
}
