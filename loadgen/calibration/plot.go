package calibration

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	bandColor    = color.RGBA{R: 0x9e, G: 0xb8, B: 0xd6, A: 0xff}
	insideColor  = color.RGBA{R: 0x1c, G: 0x4e, B: 0x80, A: 0xff}
	outsideColor = color.RGBA{R: 0xc0, A: 0xff}
)

const rowHeight = 0.4 * vg.Centimeter

// Plot draws the judged cells, a row each: how far the observed rate is from
// the nominal one, within its band. It is an SVG file.
func (r *Result) Plot() ([]byte, error) {
	p := plot.New()
	p.X.Label.Text = "observed minus nominal"
	var inside, outside plotter.XYs
	var names []string
	row := float64(r.Judged)
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Sense == Shown {
			continue
		}
		row--
		names = append(names, fmt.Sprintf("%s, %s %d, %s, %s", c.Measure, c.Methodology, c.Level, c.Metric, c.Shape))
		band, err := plotter.NewLine(plotter.XYs{{X: c.Lower - c.Nominal, Y: row}, {X: c.Upper - c.Nominal, Y: row}})
		if err != nil {
			return nil, err
		}
		band.Color, band.Width = bandColor, vg.Points(4)
		p.Add(band)
		at := plotter.XY{X: c.Observed - c.Nominal, Y: row}
		if c.Outside {
			outside = append(outside, at)
		} else {
			inside = append(inside, at)
		}
	}
	for _, group := range []struct {
		points plotter.XYs
		color  color.Color
	}{{inside, insideColor}, {outside, outsideColor}} {
		if len(group.points) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(group.points)
		if err != nil {
			return nil, err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: group.color, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	ticks := make([]plot.Tick, len(names))
	for i, name := range names {
		ticks[i] = plot.Tick{Value: float64(len(names) - 1 - i), Label: name}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Add(plotter.NewGrid())
	canvas := vgsvg.New(28*vg.Centimeter, 2*vg.Centimeter+vg.Length(len(names))*rowHeight)
	p.Draw(draw.New(canvas))
	var text bytes.Buffer
	_, err := canvas.WriteTo(&text)
	return text.Bytes(), err
}
