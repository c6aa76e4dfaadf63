package report

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/chart"
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

// competitorsChart draws the CPU time ratio of the cheapest computation of each group.
func (b *Benchmarks) competitorsChart() *chart.Rows {
	one := 1.0
	kinds := []struct{ name, suffix, color string }{
		{"cheapest tool that counts events", ", events", chart.Orange},
		{"cheapest tool with precomputed tables", ", precomputed", chart.Blue},
		{"DuckDB, a row per visitor", ", a row per visitor", chart.Green},
	}
	c := &chart.Rows{
		Title: "CPU time of other tools relative to a report of Lifthouse (1 = Lifthouse)",
		X:     chart.Axis{Label: "times the CPU time of Lifthouse", Log: true}, Reference: &one,
	}
	for _, kind := range kinds {
		c.Legend = append(c.Legend, chart.LegendEntry{Name: kind.name, Color: kind.color})
	}
	groups := b.Groups()
	for n, q := range b.Questions() {
		if n > 0 {
			c.Rows = append(c.Rows, chart.Row{}) // space between the questions
		}
		label := string(q.Question)
		for _, kind := range kinds {
			ratio := 0.0
			for i, group := range groups {
				if strings.HasSuffix(group, kind.suffix) {
					keepLeast(&ratio, q.Ratios[i])
				}
			}
			if ratio == 0 {
				continue
			}
			c.Rows = append(c.Rows, chart.Row{Label: label, Bar: &chart.Bar{From: 1, To: ratio, Color: kind.color}, Value: fmt.Sprintf("%.1f ×", ratio)})
			label = ""
		}
	}
	return c
}

// growthChart draws the wall times of the fastest and of the slowest report by campaign size.
func (b *Benchmarks) growthChart() *chart.Lines {
	g := b.Growth
	c := &chart.Lines{
		Title: "Report time by campaign size",
		X:     chart.Axis{Label: "visitors", Log: true},
		Y:     chart.Axis{Label: "wall time in ms", Log: true},
	}
	add := func(name, color string, wall func(size int) float64) {
		line := chart.Line{Name: name, Color: color, Dots: true}
		for size, visitors := range g.Visitors {
			line.Points = append(line.Points, chart.Point{X: float64(visitors), Y: wall(size)})
		}
		c.Lines = append(c.Lines, line)
	}
	if len(g.Rows) > 0 {
		wallTimes := func(size int) []float64 {
			var times []float64
			for _, row := range g.Rows {
				times = append(times, row.WallMS[size])
			}
			return times
		}
		add("slowest report", chart.Blue, func(size int) float64 { return slices.Max(wallTimes(size)) })
		add("fastest report", chart.Green, func(size int) float64 { return slices.Min(wallTimes(size)) })
	}
	return c
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

// loadChart draws the p99 latencies of all load tests by rate.
func (b *Benchmarks) loadChart() *chart.Lines {
	colors := []string{chart.Blue, chart.Orange, chart.Green, chart.Purple}
	c := &chart.Lines{
		Title: "p99 latency by request rate",
		X:     chart.Axis{Label: "requests per second", Log: true},
		Y:     chart.Axis{Label: "p99 latency in ms", Log: true},
	}
	for i := range b.Loads {
		for _, line := range b.Loads[i].Result.LadderChart("").Lines {
			line.Color = colors[i%len(colors)]
			switch line.Name {
			case bench.P99Line:
				line.Name = b.Loads[i].Title
			case bench.TargetLine:
				line.Name = fmt.Sprintf("target %g ms", b.Loads[i].Result.TargetP99)
			default:
				continue
			}
			c.Lines = append(c.Lines, line)
		}
	}
	return c
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
