package ingest

import (
	"context"
	_ "embed"
	"fmt"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/subjects.sql
var subjectsStored string

//go:embed sql/drop_events.sql
var dropEvents string

//go:embed sql/experiments.sql
var experimentsStored string

// CountSubjects returns the number of stored events of each subject. Subjects
// without stored events are not in the map.
func (w *Writer) CountSubjects(ctx context.Context, subjects []schema.Subject) (map[schema.Subject]uint64, error) {
	counts := map[schema.Subject]uint64{}
	err := schema.EachRow(ctx, w.conn, subjectsStored, func(row driver.Rows) error {
		var s schema.Subject
		var events uint64
		err := row.Scan(&s.WebsiteID, (*string)(&s.Kind), &s.ID, &events)
		counts[s] = events
		return err
	}, namedSubjects(subjects)...)
	if err != nil {
		return nil, fmt.Errorf("count events of subjects: %w", err)
	}
	return counts, nil
}

// DropSubjects deletes all events of the subjects, and then their facts. Unattributed goals remain, because they belong
// to the website. Writes wait until DropSubjects returns. To finish an interrupted deletion, call it again.
func (w *Writer) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	return w.PauseWrites(ctx, func() error {
		ctx := context.WithoutCancel(ctx)
		defer w.facts.HoldScrubs()()
		all, err := schema.QueryRows(ctx, w.conn, experimentsStored, func(row driver.Rows, s *schema.Subject) error {
			return row.Scan(&s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID)
		}, namedSubjects(subjects)...)
		if err != nil {
			return fmt.Errorf("list the experiments of subjects: %w", err)
		}
		all = append(all, subjects...) // even if the events were deleted before
		if err := schema.DeleteEvents(ctx, w.conn, dropEvents, namedSubjects(subjects)...); err != nil {
			return fmt.Errorf("drop subjects: %w", err)
		}
		return w.facts.DropSubjects(ctx, all)
	})
}

// namedSubjects returns the parameters of campaigns and widgets. A widget includes its experiments.
func namedSubjects(subjects []schema.Subject) []any {
	websites, kinds, ids := make([]int64, len(subjects)), make([]string, len(subjects)), make([]int64, len(subjects))
	for i, s := range subjects {
		websites[i], kinds[i], ids[i] = s.WebsiteID, string(s.Kind), s.ID
	}
	return []any{clickhouse.Named("website_ids", websites), clickhouse.Named("subjects", kinds), clickhouse.Named("subject_ids", ids)}
}
