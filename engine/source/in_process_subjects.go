package source

import (
	"context"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Events are the views and goal events of a subject, which were read beforehand.
type Events struct{ rows []eventRow }

// MaxEventsAtOnce is the maximum number of events of all subjects that are read in one
// statement. They are in memory, about 120 bytes each.
const MaxEventsAtOnce = 200_000

// ReadSubjects reads the events of several campaigns of one website in one statement, and
// sets them in the executions. One statement costs as much as some thousand events.
func ReadSubjects(ctx context.Context, store *Store, all []*Execution) error {
	known := map[int64]*Events{}
	ids := make([]int64, len(all))
	var events uint64
	for i, x := range all {
		ids[i], known[x.Subject.ID] = x.Subject.ID, &Events{}
		events += x.Stored.Events
	}
	query := &Query{Events: events, Params: []Param{{"website_id", all[0].Subject.WebsiteID}, {"subject_ids", ids}}}
	if err := query.Render("in_process_subjects.sql", nil); err != nil {
		return err
	}
	e := eventRow{shows: true}
	var subject int64
	err := store.Each(ctx, query, func(found driver.Rows) error {
		err := found.Scan(&subject, &e.visitor, &e.At, &e.Variation, (*uint8)(&e.Kind), &e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &e.goal)
		if of := known[subject]; of != nil {
			of.rows = append(of.rows, e)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, x := range all {
		x.Known = known[x.Subject.ID]
	}
	return nil
}

// known returns the events that were read beforehand, and whether they are all that the
// report needs.
func (x *Execution) known() ([]eventRow, bool) {
	usable := x.Known != nil && x.Subject.Kind == schema.SubjectCampaign && x.Filters.From.IsZero() &&
		x.Filters.GoalValue == nil && x.Filters.ZScore == 0 && !needsAttributes(x.Plan)
	if !usable {
		return nil, false
	}
	return x.Known.rows, true
}
