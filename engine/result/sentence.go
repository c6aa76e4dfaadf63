package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lifthouse/stats"
)

// Statement has the inputs for the text of a conclusion.
type Statement struct {
	Conclusion  *Conclusion
	Control     string      // name
	Decides     string      // name of the winner or loser, or of the variation that was ahead or behind at the planned look
	Comparison  *Comparison // of that variation, when it was decided
	metric      string      // name in the text; empty: omitted
	Rate        bool        // the metric is a share of the visitors
	Level       int
	MDE         float64 // per cent
	SampleRatio *SampleRatio
	Remaining   *int64 // visitors

	Planned         int64     // declared number of visitors of the planned look; 0: none, or the look was reached
	PlannedLook     time.Time // zero: not reached, or not known
	PlannedVisitors int64     // at the planned look
}

// Sentence returns the text of the conclusion.
func (s *Statement) Sentence() string {
	switch s.Conclusion.Status {
	case stats.StatusWinner:
		return s.decided("better")
	case stats.StatusLoser:
		return s.decided("worse")
	case stats.StatusInvalid:
		return fmt.Sprintf("The results are not valid: the split of the visitors does not match the configured shares (sample ratio mismatch, p = %s).",
			Probability(*s.SampleRatio.PValue))
	case stats.StatusInsufficientData:
		if slices.Contains(s.Conclusion.Reasons, reasonNothingToCompare) {
			return "There is nothing to compare: there is only one variation."
		}
		return "Not enough data for a verdict: " + explainAll(s.Conclusion.Reasons) + "."
	case stats.StatusInconclusive:
	}
	switch reasons := s.Conclusion.Reasons; {
	case slices.Contains(reasons, stats.ReasonDayNotOver):
		return "The effect is significant at repeated looks. A conclusion follows at the end of the day in UTC if it still is."
	case slices.Contains(reasons, stats.ReasonSharesChanged) && len(reasons) == 1:
		return "There is no conclusion yet about the visitors since the shares changed. The report also has earlier visitors, who are not comparable."
	case slices.Contains(reasons, stats.ReasonNotDeclared):
		return s.notDeclared()
	case s.Decides != "":
		return s.ahead()
	case slices.Contains(reasons, stats.ReasonPlannedLookInconclusive):
		return "The planned look had no conclusion, and since then the effect is not significant at repeated looks."
	case slices.Contains(reasons, stats.ReasonNoPlannedSample):
		return "There is no conclusion yet: the effect is not significant at repeated looks. There is no planned look, because the campaign does not declare plannedVisitors."
	case slices.Contains(reasons, stats.ReasonTooEarly):
		return "It is too early for a conclusion: the effect is not significant at repeated looks" + s.stillNeeded() + "."
	case slices.Contains(reasons, stats.ReasonLevel100):
		return "No conclusion is possible: " + Explain(stats.ReasonLevel100) + "."
	}
	return fmt.Sprintf("No variation differs significantly from %s at the %d %% level%s.", s.Control, s.Level, s.stillNeeded())
}

// decided returns the text about the winner or loser.
func (s *Statement) decided(verdict string) string {
	text := fmt.Sprintf("%s is %s than %s: ", s.Decides, verdict, s.Control)
	if s.metric != "" {
		text += s.metric + " has "
	}
	c := s.Comparison
	lift, difference, kind := c.carrying()
	if lift.Value != nil && lift.Interval != nil {
		text += articleOf(lift, "lift") + withInterval(lift, s.Level, kind, PercentDecimals, func(x float64, decimals int) string {
			return Percent(x, decimals, true)
		})
	} else {
		decimals, unit, scale := Decimals, "", 1.0
		if s.Rate {
			decimals, unit, scale = PercentDecimals, " percentage points", 100
		}
		text += articleOf(difference, "difference") + withInterval(difference, s.Level, kind, decimals, func(x float64, decimals int) string {
			return Signed(scale*x, decimals) + unit
		})
	}
	at := s.Conclusion.DecidedAt
	if c.Sequential.PlannedLook {
		text += " at the planned look"
		if at != nil {
			text += fmt.Sprintf(" on %s with %s visitors", lastDay(*at), Grouped(s.PlannedVisitors))
		}
	}
	if c.Bayesian != nil {
		text += fmt.Sprintf(", with a chance of %s to beat %s", Chance(*c.Bayesian.ChanceToBeatControl), s.Control)
	}
	switch {
	case c.Sequential.PlannedLook:
	case at != nil:
		text += fmt.Sprintf(", which is valid at every look; decided on %s", lastDay(*at))
	default:
		text += ", which is valid at every look"
	}
	return text + "."
}

// notDeclared returns the text about a conclusive difference of another goal or metric
// than the declared ones.
func (s *Statement) notDeclared() string {
	word := "better"
	if s.Comparison.Verdict == stats.VerdictWorse {
		word = "worse"
	}
	of := ""
	if s.metric != "" {
		of = " in " + s.metric
	}
	return fmt.Sprintf("%s is %s than %s%s at every look (p = %s), but only the declared goal, metric and cap have a conclusion.",
		s.Decides, word, s.Control, of, Probability(*s.Comparison.Sequential.PValue))
}

// lastDay returns the date of the day that ends at a time.
func lastDay(end time.Time) string { return end.Add(-time.Millisecond).UTC().Format(time.DateOnly) }

// ahead returns the text about the variation that was ahead or behind at the planned
// look.
func (s *Statement) ahead() string {
	where := "ahead of"
	if s.Comparison.Verdict == stats.VerdictWorse {
		where = "behind"
	}
	return AheadOnly(fmt.Sprintf("%s was %s %s", s.Decides, where, s.Control), *s.Comparison.Frequentist.AdjustedPValue, s.Level)
}

// AheadOnly returns the text about a variation whose p-value at the planned look is
// below alpha, but not below the part of alpha that the look has.
func AheadOnly(what string, p float64, level int) string {
	alpha := 100 - level
	return fmt.Sprintf("%s at the planned look (p = %s), not conclusive: that look has %v %% of the %d %%.",
		what, Probability(p), math.Round(stats.PlannedLookShare*100*float64(alpha))/100, alpha)
}

// articleOf returns the words before the value of an effect.
func articleOf(e Effect, name string) string {
	if e.Observed != nil {
		return "an observed " + name + " of "
	}
	return "a " + name + " of "
}

// carrying returns the lift and the difference with the intervals that support
// the verdict, those of the sequence, and the name of these intervals.
func (c *Comparison) carrying() (lift, difference Effect, kind string) {
	lift, difference = c.Improvement, c.Difference
	if lift.Observed != nil || difference.Observed != nil {
		lift.Value, difference.Value = lift.Observed, difference.Observed
	}
	lift.Interval, difference.Interval = c.Sequential.Improvement, c.Sequential.Difference
	if c.Sequential.PlannedLook {
		return lift, difference, "interval"
	}
	return lift, difference, "always-valid interval"
}

// withInterval formats an effect and its interval: 5 (95 % interval 2 to 8).
func withInterval(e Effect, level int, kind string, precision func(spread float64) int, write func(x float64, decimals int) string) string {
	decimals := precision(HalfWidth(e.Value, e.Interval))
	text := write(*e.Value, decimals)
	if e.Interval == nil {
		return text
	}
	switch lower, upper := e.Interval[0], e.Interval[1]; {
	case lower != nil && upper != nil:
		return text + fmt.Sprintf(" (%d %% %s %s to %s)", level, kind, write(*lower, decimals), write(*upper, decimals))
	case lower != nil:
		return text + fmt.Sprintf(" (%d %% %s from %s upward)", level, kind, write(*lower, decimals))
	case upper != nil:
		return text + fmt.Sprintf(" (%d %% %s up to %s)", level, kind, write(*upper, decimals))
	}
	return text
}

// stillNeeded returns the text about the planned look or the missing visitors of the
// required sample.
func (s *Statement) stillNeeded() string {
	switch {
	case s.Planned > 0:
		return fmt.Sprintf("; the planned look is at %s visitors", Grouped(s.Planned))
	case s.Remaining == nil || !s.PlannedLook.IsZero():
		return ""
	case *s.Remaining == 0:
		return fmt.Sprintf("; the sample is large enough to detect a lift of %v %%", s.MDE)
	default:
		return fmt.Sprintf("; %s more visitors are needed to detect a lift of %v %%", Grouped(*s.Remaining), s.MDE)
	}
}

func explainAll(reasons []stats.Reason) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = Explain(r)
	}
	return strings.Join(texts, "; ")
}
