package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/result"
)

// LastingReport is what of a report does not depend on the time at which it is shown.
type LastingReport struct {
	ComputedAt time.Time

	members Document
	quiet   *result.Report // its checks and its pulse
	hasData bool           // the subject has events
}

// NewLastingReport returns what lasts of a report. It returns an error if JSON cannot express a value.
func NewLastingReport(report *result.Report) (*LastingReport, error) {
	members, err := NewDocument(report)
	return &LastingReport{
		ComputedAt: report.GeneratedAt, members: members,
		quiet:   &result.Report{Slice: result.Slice{Checks: report.Checks}, Pulse: report.Pulse},
		hasData: report.DataThrough != nil,
	}, err
}

// DecodeReport returns the report from its JSON, without what the JSON does not have. Tables read it: keeping the
// report itself would keep its plans and sums, which are several times as large.
func (r *LastingReport) DecodeReport() (*result.Report, error) {
	report := &result.Report{}
	if err := json.Unmarshal(r.members.JSON(), report); err != nil {
		return nil, fmt.Errorf("decode a kept report: %w", err)
	}
	return report, nil
}

// Size returns the approximate size, in bytes.
func (r *LastingReport) Size() int { return r.members.Size() }

// Clock is what a report says about the time at which it is shown.
type Clock struct {
	Now      time.Time
	Accepted time.Time // acceptance time up to which the data have all events; zero: as the report says
	Stale    bool      // the data do not have all accepted events, or the store failed
}

// DocumentAt returns the report as it is shown at a time.
func (r *LastingReport) DocumentAt(c Clock) (Document, error) {
	members := slices.Clone(r.members)
	replaced := []struct {
		name  string
		value any
	}{{"generatedAt", c.Now.UTC().Truncate(time.Millisecond)}, {"stale", c.Stale}}
	for _, of := range replaced {
		if err := members.ReplaceMember(of.name, of.value); err != nil {
			return nil, err
		}
	}
	if r.hasData && c.Accepted.Unix() > 0 {
		if err := members.ReplaceMember("dataThrough", c.Accepted); err != nil {
			return nil, err
		}
	}
	checks := r.quiet.ChecksAt(c.Now)
	if len(checks.Warnings) > len(r.quiet.Checks.Warnings) {
		if err := members.ReplaceMember("checks", checks); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// EncodeValue returns the JSON of a member.
func EncodeValue(value any) (json.RawMessage, error) {
	encoded, err := JSON(value)
	return bytes.TrimSuffix(encoded, []byte("\n")), err
}
