package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed sql/subjects.sql
var subjectsStored string

//go:embed sql/drop_events.sql
var dropEvents string

//go:embed sql/drop_copies.sql
var dropCopies string

// SubjectID identifies a campaign, or a widget including its experiments.
type SubjectID struct {
	WebsiteID int64
	Subject   schema.Subject
	ID        int64
}

// CountSubjects returns the number of stored events of each subject. Subjects
// without stored events and counters are not in the map.
func (w *Writer) CountSubjects(ctx context.Context, subjects []SubjectID) (map[SubjectID]uint64, error) {
	rows, err := w.conn.Query(ctx, subjectsStored, namedSubjects(subjects)...)
	if err != nil {
		return nil, fmt.Errorf("count events of subjects: %w", err)
	}
	defer func() { _ = rows.Close() }()
	counts := map[SubjectID]uint64{}
	for rows.Next() {
		var s SubjectID
		var subjectName string
		var events uint64
		if err := rows.Scan(&s.WebsiteID, &subjectName, &s.ID, &events); err != nil {
			return nil, fmt.Errorf("count events of subjects: %w", err)
		}
		s.Subject = schema.Subject(subjectName)
		counts[s] = events
	}
	return counts, rows.Err()
}

// DropSubjects deletes all events of the subjects, and their counters.
// Unattributed goals remain, because they belong to the website. Writes and
// refreshes wait meanwhile. An interrupted deletion is finished when the store
// opens, or by calling DropSubjects again.
func (w *Writer) DropSubjects(ctx context.Context, subjects []SubjectID) error {
	return w.remove(ctx, func(ctx context.Context) error {
		if err := w.retireRollups(ctx, func(s Subject) bool {
			return slices.Contains(subjects, SubjectID{s.WebsiteID, s.Kind, s.ID})
		}); err != nil {
			return err
		}
		statements := []string{dropEvents, schema.DeleteCounters}
		if w.name != "" {
			statements = append(statements, dropCopies)
		}
		for _, statement := range statements {
			if err := w.erase(ctx, statement, namedSubjects(subjects)...); err != nil {
				return fmt.Errorf("drop subjects: %w", err)
			}
		}
		return nil
	})
}

func namedSubjects(subjects []SubjectID) []any {
	websites, kinds, ids := make([]int64, len(subjects)), make([]string, len(subjects)), make([]int64, len(subjects))
	for i, s := range subjects {
		websites[i], kinds[i], ids[i] = s.WebsiteID, string(s.Subject), s.ID
	}
	return []any{clickhouse.Named("website_ids", websites), clickhouse.Named("subjects", kinds), clickhouse.Named("subject_ids", ids)}
}
