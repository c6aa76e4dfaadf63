package calibration

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Write writes the table: a line for each cell, those outside marked.
func (r *Result) Write(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	measure := ""
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Measure != measure {
			measure = c.Measure
			_, _ = fmt.Fprintf(table, "\n%s\n  methodology\tlevel\tmetric\tshape\tof\tnominal\tobserved\tband\t\n", measure)
		}
		_, _ = fmt.Fprintf(table, "  %s\t%d\t%s\t%s\t%d\t%s\t%.4f\t%s\t%s\n", c.Methodology, c.Level, c.Metric, c.Shape, c.Experiments, c.nominal(), c.Observed, c.band(), c.verdict())
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(to, "\n%d experiments without and %d with an effect, %d reports, %.0f s. %d cells judged, %d outside their bands\n(%g %% over the whole table; at random one table in a thousand has one).\n",
		r.Null, r.Effect, r.Reports, r.Seconds, r.Judged, r.Outside, 100*confidence)
}

func (c *Cell) nominal() string {
	switch c.Sense {
	case Exact:
		return fmt.Sprintf("= %.3g", c.Nominal)
	case AtMost:
		return fmt.Sprintf("≤ %.3g", c.Nominal)
	case AtLeast:
		return fmt.Sprintf("≥ %.3g", c.Nominal)
	default:
		if c.Measure == powerVerdicts { // no theory has it
			return ""
		}
		return fmt.Sprintf("≈ %.3g", c.Nominal)
	}
}

func (c *Cell) band() string {
	if c.Sense == Shown {
		return ""
	}
	return fmt.Sprintf("%.4f–%.4f", c.Lower, c.Upper)
}

func (c *Cell) verdict() string {
	switch {
	case c.Sense == Shown:
		return "shown"
	case c.Outside:
		return "OUTSIDE"
	}
	return "ok"
}
