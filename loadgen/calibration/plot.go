package calibration

import (
	"fmt"

	"lifthouse/loadgen/chart"
)

// PlotSVG draws the difference between the observed and the nominal rate of each
// tested cell, with its acceptance band. It returns an SVG file.
func (r *Result) PlotSVG() ([]byte, error) {
	nominal := 0.0
	c := chart.Rows{
		Title:     "Observed minus nominal rate, with acceptance bands",
		X:         chart.Axis{Label: "observed minus nominal"},
		Reference: &nominal,
		Legend: []chart.LegendEntry{
			{Name: "acceptance band", Color: chart.Pale}, {Name: "inside", Color: chart.Blue}, {Name: "outside", Color: chart.Red},
		},
	}
	measure := ""
	for i := range r.Cells {
		cell := &r.Cells[i]
		if cell.Sense == Untested {
			continue
		}
		if cell.Measure != measure {
			measure = cell.Measure
			c.Rows = append(c.Rows, chart.Row{Label: measure})
		}
		color := chart.Blue
		if cell.Outside {
			color = chart.Red
		}
		c.Rows = append(c.Rows, chart.Row{
			Label: fmt.Sprintf("%s %d, %s, %s", cell.Methodology, cell.Level, cell.Metric, cell.Shape),
			Bar:   &chart.Bar{From: cell.Lower - cell.Nominal, To: cell.Upper - cell.Nominal, Color: chart.Pale},
			Point: &chart.Dot{At: cell.Observed - cell.Nominal, Color: color},
		})
	}
	return c.SVG()
}
