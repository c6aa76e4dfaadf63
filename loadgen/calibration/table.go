package calibration

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable writes a table with a line for each cell.
func (r *Result) WriteTable(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	measure := ""
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Measure != measure {
			measure = c.Measure
			_, _ = fmt.Fprintf(table, "\n%s\n  methodology\tlevel\tmetric\tshape\texperiments\tnominal\tobserved\tband\t\n", measure)
		}
		_, _ = fmt.Fprintf(table, "  %s\t%d\t%s\t%s\t%d\t%s\t%.4f\t%s\t%s\n", c.Methodology, c.Level, c.Metric, c.Shape, c.Experiments, c.NominalText(), c.Observed, c.BandText(), c.Verdict())
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(to, "\n%d experiments without an effect, %d experiments with an effect, %d reports, %.0f s.\n%d cells tested, %d outside their acceptance bands. The bands hold simultaneously with %g %% confidence.\n",
		r.Null, r.Effect, r.Reports, r.Seconds, r.Tested, r.Outside, 100*confidence)
}

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
