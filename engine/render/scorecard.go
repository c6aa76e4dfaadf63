package render

import (
	"fmt"
	"slices"

	"lifthouse/engine/calculator"
	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// writeScorecard writes a table with a row for each goal, metric and variation.
func (t *reportTable) writeScorecard() {
	if t.results.Scorecard == nil {
		return
	}
	t.writeLine("")
	t.writeParagraph(bold, "Scorecard")
	t.writeParagraph("", fmt.Sprintf("Lifts with their %d %% intervals, of the last look where a row has looks. * marks a change in the good direction.", t.results.SignificanceLevel))
	t.writeLine("")
	var rows []scorecardRow
	empty := 0
	for _, row := range t.results.Scorecard {
		if row.IsEmpty() {
			empty++
			continue
		}
		for i := range row.Variations {
			if v := &row.Variations[i]; !v.Control {
				rows = append(rows, scorecardRow{row, &row.Variations[0], v})
			}
		}
	}
	several := slices.ContainsFunc(t.results.Scorecard, func(r *result.ScorecardRow) bool { return len(r.Variations) > 2 })
	t.rowTitle, t.labels = "metric", nil
	t.answer = &calculator.Answer{Variations: make([]calculator.AnswerVariation, len(rows))}
	for _, r := range rows {
		label := ShortenText(PrintableText(r.MetricInWords()), t.maxLabelWidth()+10)
		if several {
			label += " · " + ShortenText(PrintableText(r.treatment.Name), t.maxLabelWidth())
		}
		t.labels = append(t.labels, label)
	}
	t.writeGrids(scorecardColumns(rows), allRows)
	t.rowTitle = ""
	if empty > 0 {
		t.writeLine("")
		t.writeParagraph("", fmt.Sprintf("Without metrics whose values are all 0 (%d); --csv and --json print them.", empty))
	}
}

// scorecardRow is a variation in a row of the scorecard.
type scorecardRow struct {
	*result.ScorecardRow
	control, treatment *result.ScorecardVariation
}

// scorecardColumns returns the columns of the scorecard.
func scorecardColumns(rows []scorecardRow) []column {
	role, control, value := column{title: "role", left: true}, column{title: "control"}, column{title: "value"}
	lift, interval, p := column{title: "lift"}, column{title: "interval"}, column{title: "p"}
	says, month := column{title: "verdict", left: true}, column{title: "per month"}
	for _, r := range rows {
		role.cells = append(role.cells, string(r.Role))
		write := r.valueFormatter()
		control.cells = append(control.cells, formatOptional(r.control.Estimate.Value, write))
		value.cells = append(value.cells, formatOptional(r.treatment.Estimate.Value, write))
		liftCell, intervalCell, pCell, word, colour := none, none, none, "", ""
		if c := r.treatment.Comparison; c != nil {
			claim := c.Improvement.Interval
			switch {
			case c.Sequential != nil && c.Sequential.Look != nil:
				claim, pCell = c.Sequential.Improvement, formatOptional(c.Sequential.PValue, result.FormatPValue)
			case c.Frequentist != nil:
				pCell = formatOptional(c.Frequentist.AdjustedPValue, result.FormatPValue)
			}
			inPercent := func(x float64) string {
				return result.FormatPercent(x, result.PercentDecimals(result.HalfWidth(c.Improvement.Value, claim)), true)
			}
			liftCell, intervalCell = formatOptional(c.Improvement.Value, inPercent), result.RangeInWords(claim, inPercent)
			word, colour = r.verdictWords(c)
		}
		lift.cells, interval.cells, p.cells = append(lift.cells, liftCell), append(interval.cells, intervalCell), append(p.cells, pCell)
		says.cells, says.colours = append(says.cells, word), append(says.colours, colour)
		month.cells = append(month.cells, r.perMonth())
	}
	return []column{role, control, value, lift, interval, p, says, month}
}

// valueFormatter returns a function that formats values of the metric.
func (r *scorecardRow) valueFormatter() func(float64) string {
	spread := result.HalfWidth(r.control.Estimate.Value, r.control.Estimate.Interval)
	if result.IsRate(r.Metric) {
		return func(x float64) string { return result.FormatPercent(x, result.PercentDecimals(spread), false) }
	}
	return func(x float64) string { return result.FormatNumber(x, result.SpreadDecimals(spread)) }
}

// verdictWords returns the verdict of the row in words, and its colour. Only conclusive
// verdicts are coloured, by whether the effect is good.
func (r *scorecardRow) verdictWords(c *result.Comparison) (words, colour string) {
	if g := r.treatment.Guardrail; g != nil {
		switch g.Status {
		case looks.Safe:
			return "safe", green
		case looks.Harmed:
			return "harmed", red
		}
		return "not yet known", ""
	}
	words = c.VerdictInWords()
	judged := c.ConclusiveVerdict()
	if judged == stats.VerdictBetter || judged == stats.VerdictWorse {
		words, colour = "higher", red
		if judged == stats.VerdictWorse {
			words = "lower"
		}
		if (judged == stats.VerdictBetter) == (r.Direction == "up") {
			words, colour = words+" *", green
		}
	}
	if r.treatment.QValue != nil {
		words += fmt.Sprintf(" (q %s)", result.FormatPValue(*r.treatment.QValue))
	}
	return words, colour
}

// perMonth returns the impact of the variation.
func (r *scorecardRow) perMonth() string {
	if r.treatment.Impact == nil || r.treatment.Impact.PerMonth == nil || r.treatment.Impact.PerMonth.Value == nil {
		return none
	}
	e := r.treatment.Impact.PerMonth
	return result.FormatSigned(*e.Value, result.SpreadDecimals(result.HalfWidth(e.Value, e.Interval)))
}
