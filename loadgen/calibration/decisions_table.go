package calibration

import (
	"fmt"
	"strings"
)

// PlanText formats the planned sample.
func (r DecisionRow) PlanText() string {
	if r.Planned == 0 {
		return "–"
	}
	return fmt.Sprint(r.Planned)
}

// LimitText formats the limits of the rate.
func (r DecisionRow) LimitText() string {
	number := func(rate float64) string { return strings.TrimRight(fmt.Sprintf("%.4f", rate), "0") }
	switch {
	case r.Least <= 0:
		return "≤ " + number(r.Most)
	case r.Most >= 1:
		return "≥ " + number(r.Least)
	}
	return number(r.Least) + "–" + number(r.Most)
}

// BandText formats the band of the rate.
func (r DecisionRow) BandText() string { return fmt.Sprintf("%.4f–%.4f", r.Lower, r.Upper) }

// Verdict returns "ok" or "OUTSIDE".
func (r DecisionRow) Verdict() string {
	if r.Outside {
		return "OUTSIDE"
	}
	return "ok"
}
