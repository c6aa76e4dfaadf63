package report

import (
	"slices"
	"strings"

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
		if slices.ContainsFunc(b.Competitors.Rows, func(row competitors.Row) bool { return !row.Lifthouse() && row.GroupName() == group }) {
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

// CellGroup has the calibration cells of one measure.
type CellGroup struct {
	Measure string
	Cells   []calibration.Cell
}

// CellGroups returns the calibration cells grouped by measure.
func (b *Benchmarks) CellGroups() []CellGroup {
	var groups []CellGroup
	for _, c := range b.Calibration.Cells {
		if len(groups) == 0 || groups[len(groups)-1].Measure != c.Measure {
			groups = append(groups, CellGroup{Measure: c.Measure})
		}
		g := &groups[len(groups)-1]
		g.Cells = append(g.Cells, c)
	}
	return groups
}

// Tested returns the number of tested cells.
func (g *CellGroup) Tested() int {
	n := 0
	for i := range g.Cells {
		if g.Cells[i].Sense != calibration.Untested {
			n++
		}
	}
	return n
}

// Outside returns the number of cells outside their acceptance bands.
func (g *CellGroup) Outside() int {
	n := 0
	for i := range g.Cells {
		if g.Cells[i].Outside {
			n++
		}
	}
	return n
}

// Title returns the measure with an initial capital.
func (g *CellGroup) Title() string { return strings.ToUpper(g.Measure[:1]) + g.Measure[1:] }
