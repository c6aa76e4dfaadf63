package results

import (
	"slices"
	"sync/atomic"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// kept is what is kept of an answer: a body, or a report, which depends on the data and the catalogue only. The rest is
// added when an answer is written: the clock, and what the treatments are worth.
type kept struct {
	at   time.Time // when it was computed
	body []byte    // nil: it is a report

	members     render.Document // of the report
	quiet       *result.Report  // its checks and its pulse
	hasData     bool            // the subject has events
	plan        *plan.Plan      // in force, if the report says what its treatments are worth; nil: it does not
	worthReason stats.Reason
	lastWorth   atomic.Pointer[[]byte] // JSON of what they were worth in the last answer; nil: there was none
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
	members, err := render.NewDocument(report)
	return &kept{
		at: report.GeneratedAt, members: members,
		quiet:   &result.Report{Slice: result.Slice{Checks: report.Checks}, Pulse: report.Pulse},
		hasData: report.DataThrough != nil,
		plan:    p, worthReason: report.WorthReason,
	}, err
}

// isYoungerThan reports whether what is kept may be used with a maximum age. A report has no clock, so it stays as long
// as its version; but with the age 0, nothing is used twice.
func (k *kept) isYoungerThan(age time.Duration) bool {
	return age > 0 && (k.body == nil || time.Since(k.at) < age)
}

// size returns the approximate size, in bytes.
func (k *kept) size() int { return len(k.body) + k.members.Size() }

// clock has what an answer says about the time at which it is written.
type clock struct {
	now      time.Time
	accepted time.Time // acceptance time up to which the data have all events; zero: as the report says
	stale    bool      // the data do not have all accepted events, or the store failed
}

// worthAtLast returns the JSON of what the treatments were worth in the last answer, or nil.
func (k *kept) worthAtLast() []byte {
	if last := k.lastWorth.Load(); last != nil {
		return *last
	}
	return nil
}

// writeBody returns the body of an answer. worth is the JSON of what the treatments are worth, or nil.
func (k *kept) writeBody(c clock, worth []byte) ([]byte, error) {
	if k.body != nil {
		return k.body, nil
	}
	members := slices.Clone(k.members)
	replaced := []struct {
		name  string
		value any
	}{{"generatedAt", c.now.UTC().Truncate(time.Millisecond)}, {"stale", c.stale}}
	for _, of := range replaced {
		if err := members.ReplaceMember(of.name, of.value); err != nil {
			return nil, err
		}
	}
	if k.hasData && c.accepted.Unix() > 0 {
		if err := members.ReplaceMember("dataThrough", c.accepted); err != nil {
			return nil, err
		}
	}
	checks := k.quiet.ChecksAt(c.now)
	if len(checks.Warnings) > len(k.quiet.Checks.Warnings) {
		if err := members.ReplaceMember("checks", checks); err != nil {
			return nil, err
		}
	}
	if worth != nil {
		members = append(members, render.Member{Name: "worth", Value: worth})
	}
	return members.JSON(), nil
}
