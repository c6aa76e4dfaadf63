package rollup

import (
	"time"

	"lifthouse/engine/plan"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// backlog is a subject with events that are not in its rollup.
type backlog struct {
	subject     plan.Subject
	stored      uint64    // events
	ingested    time.Time // last acceptance time
	state       *State    // nil: no rollup
	sharesSince int64
}

func (d *backlog) mustRebuild() bool {
	return d.state == nil || d.state.SharesSince != d.sharesSince
}

// size returns the number of events that are not in the rollup.
func (d *backlog) size() uint64 {
	if d.state == nil {
		return d.stored
	}
	return d.stored - min(d.stored, d.state.Events)
}

// untilParams returns the parameters for the events of the subject accepted up
// to through. sinceParams restricts them to those accepted after since.
func (d *backlog) untilParams(through time.Time) []any {
	return []any{
		clickhouse.Named("website_id", d.subject.WebsiteID), clickhouse.Named("subject", string(d.subject.Kind)),
		clickhouse.Named("subject_id", d.subject.ID), clickhouse.Named("experiment_id", d.subject.ExperimentID),
		clickhouse.DateNamed("through", through, clickhouse.MilliSeconds),
	}
}

func (d *backlog) sinceParams(since, through time.Time) []any {
	return append(d.untilParams(through), clickhouse.DateNamed("since", since, clickhouse.MilliSeconds))
}
