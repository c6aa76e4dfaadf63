package chart

import (
	"fmt"
	"math"
	"strconv"
)

// Axis describes an axis. Without ticks the axis has ticks at round numbers.
type Axis struct {
	Label string
	Log   bool    // logarithmic; all values must be positive
	Zero  bool    // the axis starts at 0; ignored if Log is set
	Ticks []Tick  // must be in increasing order
	Max   float64 // the axis extends to at least Max; 0: to the largest value
}

// Tick is a labeled position on an axis.
type Tick struct {
	Value float64
	Label string
}

// scale maps values to pixels.
type scale struct {
	log      bool
	low      float64 // value at the start
	high     float64 // value at the end
	from, to float64 // pixels of the start and the end
	ticks    []Tick
}

// targetTicks is the approximate number of generated ticks.
const targetTicks = 6

// newScale returns a scale that contains all values, from pixel from to pixel
// to.
func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{log: a.Log, low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, v := range values {
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	if a.Max > 0 {
		s.high = max(s.high, a.Max)
	}
	switch {
	case s.low > s.high: // no values
		s.low, s.high = 1, 10
	case a.Log && s.low == s.high:
		s.low, s.high = s.low/2, s.high*2
	case a.Zero && !a.Log:
		s.low = min(s.low, 0)
	}
	if s.low == s.high {
		s.low, s.high = s.low-1, s.high+1
	}
	switch {
	case a.Ticks != nil:
		for _, tick := range a.Ticks {
			if tick.Value >= s.low && tick.Value <= s.high {
				s.ticks = append(s.ticks, tick)
			}
		}
	case a.Log:
		s.logTicks()
	default:
		s.linearTicks()
	}
	return s
}

// linearTicks extends the scale to round numbers and adds ticks at multiples of
// 1, 2 or 5 times a power of 10.
func (s *scale) linearTicks() {
	step := roundStep((s.high - s.low) / targetTicks)
	first, last := math.Floor(s.low/step), math.Ceil(s.high/step)
	s.low, s.high = first*step, last*step
	decimals := max(0, int(-math.Floor(math.Log10(step))))
	for k := first; k <= last; k++ {
		s.ticks = append(s.ticks, Tick{k * step, strconv.FormatFloat(k*step+0, 'f', decimals, 64)})
	}
}

// roundStep returns the smallest 1, 2 or 5 times a power of 10 that is at least
// x.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= x*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// logTicks adds ticks at powers of 10, and at 2 and 5 times the powers if the
// scale is short. It extends the scale to the ticks around it.
func (s *scale) logTicks() {
	factors := []float64{1}
	if s.high/s.low < 2000 {
		factors = []float64{1, 2, 5}
	}
	var values []float64
	for exponent := math.Floor(math.Log10(s.low)); exponent <= math.Ceil(math.Log10(s.high)); exponent++ {
		for _, factor := range factors {
			values = append(values, factor*math.Pow(10, exponent))
		}
	}
	const tolerance = 1 + 1e-9
	for len(values) > 1 && values[1] <= s.low*tolerance {
		values = values[1:]
	}
	for len(values) > 1 && values[len(values)-2] >= s.high/tolerance {
		values = values[:len(values)-1]
	}
	s.low, s.high = min(s.low, values[0]), max(s.high, values[len(values)-1])
	for _, v := range values {
		s.ticks = append(s.ticks, Tick{v, strconv.FormatFloat(v, 'g', 3, 64)})
	}
	for i := range s.ticks {
		if v := s.ticks[i].Value; v >= 1000 {
			s.ticks[i].Label = fmt.Sprintf("%.0f", v)
		}
	}
}

// pixelOf returns the pixel of a value.
func (s *scale) pixelOf(value float64) float64 {
	low, high := s.low, s.high
	if s.log {
		value, low, high = math.Log(value), math.Log(low), math.Log(high)
	}
	return s.from + (value-low)/(high-low)*(s.to-s.from)
}

// placedTick is a tick with its pixel.
type placedTick struct {
	At    float64
	Label string
}

func (s *scale) placedTicks() []placedTick {
	var ticks []placedTick
	for _, tick := range s.ticks {
		ticks = append(ticks, placedTick{s.pixelOf(tick.Value), tick.Label})
	}
	return ticks
}
