package readout

import (
	"math"
	"slices"
	"strconv"

	"lifthouse/stats"
)

// Bar is an estimate with its interval on the scale of the page, in units of its drawing.
type Bar struct {
	Label               string // in words
	Zero, From, To      string
	Point, Margin       string // empty: there is none
	OpenLeft, OpenRight bool   // the interval is unbounded, or ends beyond the scale
	Tone                string
	lift, margin        *float64
	interval            *stats.Interval
}

// The dimensions of a drawing.
const (
	barWidth = 300
	barEdge  = 10
)

// maxLift is the largest lift of a scale. Intervals of few visitors may be much wider.
const maxLift = 2

// setBars sets the positions of bars on one scale, which covers 0, all estimates, margins and ends.
func setBars(effects []Effect) {
	numbers := []float64{0}
	for i := range effects {
		if bar := effects[i].Bar; bar != nil {
			numbers = append(numbers, bar.scaleNumbers()...)
		}
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	if low == high {
		low, high = -maxLift, maxLift
	}
	place := func(x float64) string {
		share := (min(max(x, low), high) - low) / (high - low)
		return strconv.FormatFloat(barEdge+share*(barWidth-2*barEdge), 'f', 1, 64)
	}
	for i := range effects {
		if bar := effects[i].Bar; bar != nil {
			bar.setPlaces(place, low, high)
		}
	}
}

// scaleNumbers returns what the scale must cover.
func (b *Bar) scaleNumbers() (all []float64) {
	for _, x := range b.scaleEnds() {
		isDrawn := x != nil && !math.IsInf(*x, 0) && !math.IsNaN(*x)
		if isDrawn {
			all = append(all, min(max(*x, -1), maxLift))
		}
	}
	return all
}

// scaleEnds returns the estimate, the margin and the ends of the interval.
func (b *Bar) scaleEnds() []*float64 {
	all := []*float64{b.lift, b.margin}
	if b.interval != nil {
		all = append(all, b.interval[:]...)
	}
	return all
}

// setPlaces sets the positions.
func (b *Bar) setPlaces(place func(float64) string, low, high float64) {
	b.Zero = place(0)
	if b.lift != nil {
		b.Point = place(*b.lift)
	}
	if b.margin != nil {
		b.Margin = place(*b.margin)
	}
	if b.interval == nil {
		return
	}
	b.From = place(low)
	b.To = place(high)
	b.OpenLeft, b.OpenRight = true, true
	if from := b.interval[0]; from != nil && *from >= low {
		b.From = place(*from)
		b.OpenLeft = false
	}
	if to := b.interval[1]; to != nil && *to <= high {
		b.To = place(*to)
		b.OpenRight = false
	}
}
