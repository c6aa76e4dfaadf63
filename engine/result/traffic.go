package result

import (
	"fmt"
	"time"

	"lifthouse/engine/looks"
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
	if silent := SilenceDuration(a.FirstView.Time, *r.NewestEvent, r.Totals.Views, now); silent > 0 {
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
