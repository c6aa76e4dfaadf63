package calibration

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes a table with a line for each rate.
func (d *Decisions) WriteTable(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	part := ""
	for _, r := range d.Rows {
		if r.Part != part {
			part = r.Part
			_, _ = fmt.Fprintf(table, "\n%s\n  scenario\tmethodology\tplan\tmeasure\texperiments\tlimit\trate\tband\t\n", part)
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%d\t%s\t%.4f ± %.4f\t%s\t%s\n", r.Scenario, r.Methodology, r.PlanText(), r.Measure, r.Experiments, r.LimitText(), r.Rate, r.Error, r.BandText(), r.Verdict())
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(to, "\n%d experiments per scenario, seed %d, %.0f s.\n%d rates, %d outside their bands. A band is the limit and two standard errors.\n",
		d.Experiments, d.Seed, d.Seconds, len(d.Rows), d.Outside)
}

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
