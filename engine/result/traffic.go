package result

import (
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
)

// FullWeeks reports whether the full days of a report are whole weeks. Behaviour depends on the
// day of the week, so results of whole weeks are typical.
type FullWeeks struct {
	Days     int  `json:"days"`     // full days in UTC since the first visitor
	Weeks    int  `json:"weeks"`    // full weeks in them
	Complete bool `json:"complete"` // true if the days are whole weeks
}

func newFullWeeks(days int) *FullWeeks {
	const week = 7
	return &FullWeeks{Days: days, Weeks: days / week, Complete: days > 0 && days%week == 0}
}

const (
	// leastExpected is the smallest expected number of visitors of a day, or of a variation on a day, at which a count of
	// 0 is a warning. With 20 expected visitors, the probability of 0 is 2·10⁻⁹ (Poisson).
	leastExpected = 20
	// usualDays is the number of days with visitors before a day whose mean is expected on it.
	usualDays = 7
	// shownDays is the number of days in a warning.
	shownDays = 5
)

// checkDays warns of full days without visitors between days with many, of variations without visitors on a day, and of
// imported views that are dated long before the others.
func (j *sliceResult) checkDays(p *plan.Plan, a *looks.Analysis) {
	if a == nil || !p.OfAllVisitors() {
		return
	}
	warn := func(code WarningCode, format string, args ...any) {
		j.Checks.Warnings = append(j.Checks.Warnings, Warning{code, fmt.Sprintf(format, args...)})
	}
	if first := a.FirstView; first.Imported && first.Start().Sub(first.Time) > 24*time.Hour {
		warn(warningEarlyViews, "the first views are dated %s, long before the others; the looks count from %s on",
			first.Time.Format(time.DateOnly), first.Start().Format(time.DateOnly))
	}
	var empty, pending []time.Time // days
	var usual []int64
	without := map[int64][]time.Time{}
	for _, d := range a.Days {
		var total, sum int64
		for _, n := range d.Visitors {
			total += n
		}
		for _, n := range usual {
			sum += n
		}
		switch {
		case total == 0 && sum >= leastExpected*int64(max(len(usual), 1)):
			pending = append(pending, d.Start)
		case total >= leastExpected:
			empty, pending = append(empty, pending...), nil
		}
		if total > 0 {
			usual = append(usual[max(len(usual)-usualDays+1, 0):], total)
		}
		from, to := plan.PeriodAt(p.SharePeriods, d.Start), plan.PeriodAt(p.SharePeriods, d.Start.AddDate(0, 0, 1))
		for i, v := range p.Variations {
			if from == to && d.Visitors[v.ID] == 0 && p.SharePeriods[from].Shares[i]*float64(total) >= leastExpected {
				without[v.ID] = append(without[v.ID], d.Start)
			}
		}
	}
	if len(empty) > 0 {
		warn(warningEmptyDays, "no visitors on %s, between days with many; check that tracking worked", datesInWords(empty))
	}
	for _, v := range p.Variations {
		if days := without[v.ID]; len(days) > 0 {
			warn(warningEmptyVariation, "%s had no visitors on %s, although the other variations had many; check that it was shown", v.Name, datesInWords(days))
		}
	}
}

// datesInWords returns the dates of days, and the number of those that it leaves out.
func datesInWords(days []time.Time) string {
	var dates []string
	for _, day := range days[:min(len(days), shownDays)] {
		dates = append(dates, day.Format(time.DateOnly))
	}
	text := strings.Join(dates, ", ")
	if more := len(days) - shownDays; more > 0 {
		text += fmt.Sprintf(" and %d more days", more)
	}
	return text
}

// A running subject is silent if it has had no event for many times its usual gap, and for at
// least an hour.
const (
	silentGaps  = 10
	silentLeast = time.Hour
)

// SilenceDuration returns how long a subject with events since first has been silent at a time,
// or 0 if it is not silent. The usual gap is the mean gap.
func SilenceDuration(first, newest time.Time, views int64, now time.Time) time.Duration {
	if first.IsZero() || newest.IsZero() || views < 2 {
		return 0
	}
	usual := newest.Sub(first) / time.Duration(views-1)
	silent := now.Sub(newest)
	if silent < max(silentGaps*usual, silentLeast) {
		return 0
	}
	return silent
}

// checkTraffic adds the checks of a scorecard.
func (r *Report) checkTraffic(running bool, a *looks.Analysis, now time.Time) {
	if a == nil {
		return
	}
	r.Checks.FullWeeks = newFullWeeks(a.FullDays())
	if !running || r.NewestEvent == nil || r.Window.To != nil {
		return
	}
	if silent := SilenceDuration(a.FirstView.Start(), *r.NewestEvent, r.Totals.Views, now); silent > 0 {
		r.Checks.Warnings = append(r.Checks.Warnings, Warning{
			Code:    warningSilent,
			Message: fmt.Sprintf("no event for %s, although the subject is active; check that tracking still works", roughDuration(silent)),
		})
	}
}

// roughDuration returns a duration in hours or days.
func roughDuration(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
