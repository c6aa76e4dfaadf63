package report

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/chart"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/peers"
)

// Question has the wall time ratios of all systems for one question.
type Question struct {
	Question peers.Question
	Ratios   []float64 // by column of PeerColumns; 0: not measured
	EventsMS float64   // wall time of the Lifthouse report from the events
	RollupMS float64   // wall time of the Lifthouse report from the rollups; 0: not measured
}

// PeerColumns returns the peers' systems and tables, in the order of their
// first row.
func (b *Benchmarks) PeerColumns() []string {
	var columns []string
	for _, row := range b.Peers.Rows {
		if name := columnName(&row); !row.Lifthouse() && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	return columns
}

func columnName(row *peers.Row) string { return row.System + ", " + row.Table }

// Questions returns the questions of the comparison with the peers.
func (b *Benchmarks) Questions() []Question {
	var questions []Question
	columns := b.PeerColumns()
	for _, row := range b.Peers.Rows {
		if len(questions) == 0 || questions[len(questions)-1].Question != row.Question {
			questions = append(questions, Question{Question: row.Question, Ratios: make([]float64, len(columns))})
		}
		q := &questions[len(questions)-1]
		switch {
		case !row.Lifthouse():
			q.Ratios[slices.Index(columns, columnName(&row))] = row.WallRatio
		case row.FromRollup():
			q.RollupMS = row.Cost.WallMS
		default:
			q.EventsMS = row.Cost.WallMS
		}
	}
	return questions
}

// peersChart draws the wall time ratios of the peers.
func (b *Benchmarks) peersChart() *chart.Rows {
	one := 1.0
	colors := []string{chart.Orange, chart.Blue, "#eeb48c", "#8cbfdf"}
	c := &chart.Rows{
		Title: "Query time relative to Lifthouse (1 = Lifthouse, computed from the events)",
		X:     chart.Axis{Label: "times the wall time of Lifthouse", Zero: true}, Reference: &one,
	}
	columns := b.PeerColumns()
	for i, name := range columns {
		c.Legend = append(c.Legend, chart.LegendEntry{Name: name, Color: colors[i%len(colors)]})
	}
	for n, q := range b.Questions() {
		if n > 0 {
			c.Rows = append(c.Rows, chart.Row{}) // space between the questions
		}
		for i, ratio := range q.Ratios {
			if ratio == 0 {
				continue
			}
			label := ""
			if firstRatio(q.Ratios) == i {
				label = string(q.Question)
			}
			c.Rows = append(c.Rows, chart.Row{Label: label, Bar: &chart.Bar{To: ratio, Color: colors[i%len(colors)]}, Value: fmt.Sprintf("%.1f ×", ratio)})
		}
	}
	return c
}

// firstRatio returns the index of the first ratio that is not 0.
func firstRatio(ratios []float64) int {
	return slices.IndexFunc(ratios, func(ratio float64) bool { return ratio != 0 })
}

// RollupRows returns the rows of the reports from rollups: all rows except the
// first.
func (b *Benchmarks) RollupRows() []measure.GrowthRow {
	return b.Growth.Rows[min(1, len(b.Growth.Rows)):]
}

// growthChart draws the wall times by campaign size: the report from the
// events, and the fastest and slowest report from the rollups.
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
		add("computed from the events", chart.Orange, func(size int) float64 { return g.Rows[0].WallMS[size] })
	}
	if rollups := b.RollupRows(); len(rollups) > 0 {
		wallTimes := func(size int) []float64 {
			var times []float64
			for _, row := range rollups {
				times = append(times, row.WallMS[size])
			}
			return times
		}
		add("from rollups, slowest report", chart.Blue, func(size int) float64 { return slices.Max(wallTimes(size)) })
		add("from rollups, fastest report", chart.Green, func(size int) float64 { return slices.Min(wallTimes(size)) })
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
