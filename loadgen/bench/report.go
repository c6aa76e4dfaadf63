package bench

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"

	"lifthouse/loadgen/chart"
)

//go:embed report.html
var reportPage string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"failures": func(f Figures) int64 { return f.Failures() },
	"name":     func(f Figures) string { return f.kindName() },
	"figures":  func(s Step) []Figures { return append(slices.Clone(s.Kinds), s.All) },
	"mib":      func(bytes float64) string { return fmt.Sprintf("%.0f", bytes/(1<<20)) },
}).Parse(reportPage))

// RenderHTML returns an HTML page with the figures and charts. The page has no
// external references.
func (r *Result) RenderHTML() ([]byte, error) {
	page := struct {
		*Result
		Curves, Ladder template.HTML
	}{Result: r}
	steps := r.stepsByRate()
	if len(steps) > 0 {
		svg, err := latencyCurves(steps).SVG()
		if err != nil {
			return nil, err
		}
		page.Curves = template.HTML(svg) //nolint:gosec // chart escapes texts
		if r.isLadder() {
			if svg, err = r.LadderChart("Latency by request rate").SVG(); err != nil {
				return nil, err
			}
			page.Ladder = template.HTML(svg) //nolint:gosec // chart escapes texts
		}
	}
	var text bytes.Buffer
	err := reportTemplate.Execute(&text, page)
	return text.Bytes(), err
}

// stepsByRate returns the steps with successful requests in the order of their
// rates.
func (r *Result) stepsByRate() []Step {
	steps := slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.All.Succeeded == 0 })
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Rate, b.Rate) })
	return steps
}

// minMilliseconds replaces smaller latencies on logarithmic axes.
const minMilliseconds = 0.001

// percentileTicks label the axis 1/(1-share).
var percentileTicks = []chart.Tick{
	{Value: 1, Label: "0"},
	{Value: 2, Label: "50 %"},
	{Value: 10, Label: "90 %"},
	{Value: 100, Label: "99 %"},
	{Value: 1e3, Label: "99.9 %"},
	{Value: 1e4, Label: "99.99 %"},
	{Value: 1e5, Label: "99.999 %"},
}

// latencyCurves draws the latency of each step by percentile. The axis of the
// percentiles is logarithmic in 1/(1-share), so that the tail is visible.
func latencyCurves(steps []Step) *chart.Lines {
	c := &chart.Lines{
		Title: "Latency by percentile",
		X:     chart.Axis{Label: "share of successful requests", Log: true, Ticks: percentileTicks},
		Y:     chart.Axis{Label: "latency in ms", Log: true},
	}
	for i, s := range steps {
		line := chart.Line{Name: fmt.Sprintf("%.4g/s", s.Rate), Color: gradientColor(i, len(steps))}
		for _, q := range s.Curve {
			line.Points = append(line.Points, chart.Point{X: 1 / (1 - q.Share), Y: max(q.Milliseconds, minMilliseconds)})
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// gradientColor returns color i of n, from blue to red.
func gradientColor(i, n int) string {
	share := float64(i) / float64(max(n-1, 1))
	return fmt.Sprintf("#%02x%02x%02x", uint8(40+170*share), 90, uint8(200-160*share))
}

// Names of lines in LadderChart.
const (
	P99Line    = "p99"
	TargetLine = "target p99"
)

// LadderChart draws the p50 and p99 latencies of the steps of a ladder by rate.
func (r *Result) LadderChart(title string) *chart.Lines {
	var p50, p99, target []chart.Point
	for _, s := range r.stepsByRate() {
		p50 = append(p50, chart.Point{X: s.Rate, Y: max(s.All.Latency.P50, minMilliseconds)})
		p99 = append(p99, chart.Point{X: s.Rate, Y: max(s.All.Latency.P99, minMilliseconds)})
		target = append(target, chart.Point{X: s.Rate, Y: r.TargetP99})
	}
	return &chart.Lines{
		Title: title,
		X:     chart.Axis{Label: "requests per second", Zero: true},
		Y:     chart.Axis{Label: "latency in ms", Log: true},
		Lines: []chart.Line{
			{Name: "p50", Color: chart.Blue, Dots: true, Points: p50},
			{Name: P99Line, Color: chart.Orange, Dots: true, Points: p99},
			{Name: TargetLine, Color: chart.Gray, Dashed: true, Points: target},
		},
	}
}
