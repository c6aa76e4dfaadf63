package calibration

import (
	"fmt"
)

// NominalText formats the nominal rate with its sense.
func (c Cell) NominalText() string {
	switch c.Sense {
	case Exact:
		return fmt.Sprintf("= %.3g", c.Nominal)
	case AtMost:
		return fmt.Sprintf("≤ %.3g", c.Nominal)
	case AtLeast:
		return fmt.Sprintf("≥ %.3g", c.Nominal)
	default:
		if c.Measure == powerVerdicts { // has no nominal value
			return ""
		}
		return fmt.Sprintf("≈ %.3g", c.Nominal)
	}
}

// BandText formats the acceptance band, or returns "" for an untested cell.
func (c Cell) BandText() string {
	if c.Sense == Untested {
		return ""
	}
	return fmt.Sprintf("%.4f–%.4f", c.Lower, c.Upper)
}

// Verdict returns "ok", "OUTSIDE" or "not tested".
func (c Cell) Verdict() string {
	switch {
	case c.Sense == Untested:
		return "not tested"
	case c.Outside:
		return "OUTSIDE"
	}
	return "ok"
}
