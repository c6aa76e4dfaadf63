package results

import (
	"sync/atomic"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/watch"
	"lifthouse/stats"
)

// kept is what is kept of an answer: a body, or a report, which depends on the data and the catalogue only. The rest is
// added when an answer is written: the clock, and what the treatments are worth.
type kept struct {
	at   time.Time // when it was computed
	body []byte    // nil: it is a report

	report      *render.LastingReport
	plan        *plan.Plan // in force, if the report says what its treatments are worth; nil: it does not
	worthReason stats.Reason
	lastWorth   *atomic.Pointer[[]byte] // JSON of what they were worth in the last answer; nil: there was none
}

// keepBody returns what is kept of a body.
func keepBody(body []byte, err error) (*kept, error) {
	return &kept{at: time.Now(), body: body}, err
}

// keepReport returns what is kept of the report of a plan in force.
func keepReport(p *plan.Plan, report *result.Report) (*kept, error) {
	if report.Scorecard == nil {
		p = nil
	}
	lasting, err := render.NewLastingReport(report)
	return &kept{
		at: report.GeneratedAt, report: lasting, plan: p, worthReason: report.WorthReason,
		lastWorth: new(atomic.Pointer[[]byte]),
	}, err
}

// keptSummary returns what is kept of the answer with a summary.
func keptSummary(of *watch.Summary) *kept {
	return &kept{
		at: of.ComputedAt, report: of.LastingReport, plan: of.Plan, worthReason: of.WorthReason,
		lastWorth: &of.LastWorth,
	}
}

// isYoungerThan reports whether what is kept may be used with a maximum age. A report has no clock, so it stays as long
// as its version; but with the age 0, nothing is used twice.
func (k *kept) isYoungerThan(age time.Duration) bool {
	return age > 0 && (k.body == nil || time.Since(k.at) < age)
}

// size returns the approximate size, in bytes.
func (k *kept) size() int {
	if k.body != nil {
		return len(k.body)
	}
	return k.report.Size()
}

// worthAtLast returns the JSON of what the treatments were worth in the last answer, or nil.
func (k *kept) worthAtLast() []byte {
	if k.lastWorth == nil {
		return nil
	}
	if last := k.lastWorth.Load(); last != nil {
		return *last
	}
	return nil
}

// writeBody returns the body of an answer. worth is the JSON of what the treatments are worth, or nil.
func (k *kept) writeBody(c render.Clock, worth []byte) ([]byte, error) {
	if k.body != nil {
		return k.body, nil
	}
	members, err := k.report.DocumentAt(c)
	if err != nil {
		return nil, err
	}
	if worth != nil {
		members = append(members, render.Member{Name: "worth", Value: worth})
	}
	return members.JSON(), nil
}
