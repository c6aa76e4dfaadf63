package bench

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

//go:embed report.html
var reportPage string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"failures": func(f Figures) int64 { return failures(&f) },
	"name": func(f Figures) Kind {
		if f.Kind == "" {
			return "all"
		}
		return f.Kind
	},
	"kinds": func(s Step) []Figures { return append(slices.Clone(s.Kinds), s.All) },
	"mib":   func(bytes float64) string { return fmt.Sprintf("%.0f", bytes/(1<<20)) },
}).Parse(reportPage))

// Report is a page for people that needs nothing but itself.
func (r *Result) Report() ([]byte, error) {
	curves, err := r.curves()
	if err != nil {
		return nil, err
	}
	page := struct {
		*Result
		Curves, Ladder template.HTML
	}{Result: r, Curves: curves}
	if r.ladder() {
		if page.Ladder, err = r.ladderPlot(); err != nil {
			return nil, err
		}
	}
	var text bytes.Buffer
	err = reportTemplate.Execute(&text, page)
	return text.Bytes(), err
}

// curves shows the latency of each step at shares ever closer to all, by their
// distance from it, and both on logarithmic scales: the tail is what matters.
func (r *Result) curves() (template.HTML, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "share of the answers", "latency, ms"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(nines), plot.LogTicks{Prec: -1}
	steps := r.drawn()
	for i, s := range steps {
		points := make(plotter.XYs, len(s.Curve))
		for at, q := range s.Curve {
			points[at] = plotter.XY{X: 1 / (1 - q.Share), Y: max(q.Milliseconds, 0.001)}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return "", err
		}
		line.Color = between(i, len(steps))
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%.4g/s", s.Rate), line)
	}
	if len(steps) == 0 {
		return "", nil
	}
	return svg(p)
}

// drawn are the steps that have answers, by their rates.
func (r *Result) drawn() []Step {
	steps := slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.All.Answered == 0 })
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Rate, b.Rate) })
	return steps
}

// between is the color of one of several rates: from blue for the least to red
// for the greatest.
func between(i, of int) color.Color {
	share := float64(i) / float64(max(of-1, 1))
	return color.RGBA{R: uint8(40 + 170*share), G: 90, B: uint8(200 - 160*share), A: 255}
}

// nines are the shares that people speak of.
var nines = []plot.Tick{{Value: 1, Label: "0"}, {Value: 2, Label: "50 %"}, {Value: 10, Label: "90 %"}, {Value: 100, Label: "99 %"}, {Value: 1e3, Label: "99.9 %"}, {Value: 1e4, Label: "99.99 %"}, {Value: 1e5, Label: "99.999 %"}}

// ladderPlot shows p50 and p99 against the rate.
func (r *Result) ladderPlot() (template.HTML, error) {
	steps := r.drawn()
	if len(steps) == 0 {
		return "", nil
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "requests a second", "latency, ms"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	var p50, p99, target plotter.XYs
	for _, s := range steps {
		p50 = append(p50, plotter.XY{X: s.Rate, Y: max(s.All.Latency.P50, 0.001)})
		p99 = append(p99, plotter.XY{X: s.Rate, Y: max(s.All.Latency.P99, 0.001)})
		target = append(target, plotter.XY{X: s.Rate, Y: r.TargetP99})
	}
	if err := plotutil.AddLinePoints(p, "p50", p50, "p99", p99); err != nil {
		return "", err
	}
	line, err := plotter.NewLine(target)
	if err != nil {
		return "", err
	}
	line.Color, line.Dashes = color.Gray{128}, []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(line)
	p.Legend.Add("target of p99", line)
	p.Y.Max *= 3 // room for the legend
	p.Legend.Left, p.Legend.Top = true, true
	return svg(p)
}

// svg draws a plot as an element of a page.
func svg(p *plot.Plot) (template.HTML, error) {
	p.Add(plotter.NewGrid())
	canvas := vgsvg.New(18*vg.Centimeter, 10*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", err
	}
	at := bytes.Index(text.Bytes(), []byte("<svg"))
	return template.HTML(text.Bytes()[at:]), nil //nolint:gosec // it is our own
}
