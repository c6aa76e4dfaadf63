package chart

// Lines is a line chart.
type Lines struct {
	Title string
	X, Y  Axis
	Lines []Line
}

// Line is one line of a chart.
type Line struct {
	Name   string
	Color  string
	Dashed bool
	Dots   bool // draw a dot at each point
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Size of the plot area of a line chart, in pixels.
const (
	plotWidth  = 560
	plotHeight = 300
)

// linesView has the data of the template. All coordinates are pixels.
type linesView struct {
	Title                    string
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XLabel, YLabel           string
	XTicks, YTicks           []placedTick
	Lines                    []lineView
	Legend                   []legendEntry
}

type lineView struct {
	Color        string
	Dashed, Dots bool
	Points       [][2]float64
}

// SVG draws the chart.
func (c *Lines) SVG() ([]byte, error) {
	const left = margin + 60
	v := linesView{Title: c.Title, Left: left, Right: left + plotWidth, Width: left + plotWidth + 2*margin, XLabel: c.X.Label, YLabel: c.Y.Label}
	for _, line := range c.Lines {
		v.Legend = append(v.Legend, legendEntry{Name: line.Name, Color: line.Color, Dashed: line.Dashed})
	}
	v.Top = placeLegend(v.Legend, margin, margin+titleHeight, v.Width-2*margin) + 4
	v.Bottom = v.Top + plotHeight
	v.Height = v.Bottom + 52
	var xs, ys []float64
	for _, line := range c.Lines {
		for _, p := range line.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, y := newScale(c.X, xs, v.Left, v.Right), newScale(c.Y, ys, v.Bottom, v.Top)
	v.XTicks, v.YTicks = x.placedTicks(), y.placedTicks()
	for _, line := range c.Lines {
		view := lineView{Color: line.Color, Dashed: line.Dashed, Dots: line.Dots}
		for _, p := range line.Points {
			view.Points = append(view.Points, [2]float64{x.pixelOf(p.X), y.pixelOf(p.Y)})
		}
		v.Lines = append(v.Lines, view)
	}
	return executeTemplate("lines.svg.tmpl", v)
}
