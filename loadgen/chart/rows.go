package chart

// Rows is a chart with one labeled row per bar or point.
type Rows struct {
	Title     string
	X         Axis
	Legend    []LegendEntry
	Reference *float64 // value of a vertical reference line; nil: none
	Rows      []Row
}

// LegendEntry explains a color.
type LegendEntry struct{ Name, Color string }

// Row is one row. A row without bar and point is a heading.
type Row struct {
	Label string
	Bar   *Bar
	Point *Dot
	Value string // text after the bar
}

// Bar is a horizontal bar between two values.
type Bar struct {
	From, To float64
	Color    string
}

// Dot is a dot at a value.
type Dot struct {
	At    float64
	Color string
}

// Sizes of a row chart, in pixels.
const (
	rowHeight   = 17
	rowsWidth   = 440 // of the plot area
	valueMargin = 50  // to the right of the plot area
)

// rowsView has the data of the template. All coordinates are pixels.
type rowsView struct {
	Title                    string
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XLabel                   string
	XTicks                   []placedTick
	Legend                   []legendEntry
	Rows                     []rowView
	HasReference             bool
	Reference                float64
}

type rowView struct {
	Label, Value         string
	Heading              bool
	Y                    float64
	HasBar, HasPoint     bool
	From, To, Point      float64
	BarColor, PointColor string
}

// SVG draws the chart.
func (c *Rows) SVG() ([]byte, error) {
	labelWidth := 0.0
	for _, row := range c.Rows {
		labelWidth = max(labelWidth, textWidth(row.Label))
	}
	v := rowsView{Title: c.Title, XLabel: c.X.Label, Left: margin + labelWidth + 10}
	v.Right = v.Left + rowsWidth
	v.Width = v.Right + valueMargin + margin
	for _, entry := range c.Legend {
		v.Legend = append(v.Legend, legendEntry{Name: entry.Name, Color: entry.Color})
	}
	v.Top = placeLegend(v.Legend, margin, margin+titleHeight, v.Width-2*margin)
	v.Bottom = v.Top + float64(len(c.Rows))*rowHeight + 4
	v.Height = v.Bottom + 50
	x := newScale(c.X, c.xValues(), v.Left, v.Right)
	v.XTicks = x.placedTicks()
	if c.Reference != nil {
		v.HasReference, v.Reference = true, x.pixelOf(*c.Reference)
	}
	for i, row := range c.Rows {
		view := rowView{Label: row.Label, Value: row.Value, Heading: row.Bar == nil && row.Point == nil, Y: v.Top + (float64(i)+0.5)*rowHeight + 2}
		if row.Bar != nil {
			view.HasBar, view.From, view.To, view.BarColor = true, x.pixelOf(row.Bar.From), x.pixelOf(row.Bar.To), row.Bar.Color
		}
		if row.Point != nil {
			view.HasPoint, view.Point, view.PointColor = true, x.pixelOf(row.Point.At), row.Point.Color
		}
		v.Rows = append(v.Rows, view)
	}
	return executeTemplate("rows.svg.tmpl", v)
}

// xValues returns all values on the x axis.
func (c *Rows) xValues() []float64 {
	var values []float64
	if c.Reference != nil {
		values = append(values, *c.Reference)
	}
	for _, row := range c.Rows {
		if row.Bar != nil {
			values = append(values, row.Bar.From, row.Bar.To)
		}
		if row.Point != nil {
			values = append(values, row.Point.At)
		}
	}
	return values
}
