package ingest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed sql/visitor_events.sql
var visitorEvents string

//go:embed sql/forget.sql
var forget string

//go:embed sql/forget_copies.sql
var forgetCopies string

//go:embed sql/forget_inbox.sql
var forgetInbox string

//go:embed sql/forget_rejects.sql
var forgetRejects string

//go:embed sql/forget_repeats.sql
var forgetRepeats string

// Erased counts the stored data of visitors.
type Erased struct {
	Events   uint64 // number of rows
	Subjects uint64 // number of campaigns, widgets and experiments with such rows
}

// CountVisitors counts the stored data of visitors. visitors are their ids as
// sent. If websites is empty, all websites are included.
func (w *Writer) CountVisitors(ctx context.Context, visitors []string, websites []int64) (Erased, error) {
	found, err := w.eventsOf(ctx, visitors, websites)
	return erasedOf(found), err
}

func erasedOf(events map[Subject]uint64) Erased {
	erased := Erased{Subjects: uint64(len(events))}
	for _, n := range events {
		erased.Events += n
	}
	return erased
}

// eventsOf returns the number of the visitors' events by subject.
func (w *Writer) eventsOf(ctx context.Context, visitors []string, websites []int64) (map[Subject]uint64, error) {
	rows, err := w.conn.Query(ctx, visitorEvents, namedVisitors(visitors, websites)...)
	if err != nil {
		return nil, fmt.Errorf("look up visitors: %w", err)
	}
	defer func() { _ = rows.Close() }()
	events := map[Subject]uint64{}
	for rows.Next() {
		var s Subject
		var subjectName string
		var n uint64
		if err := rows.Scan(&s.WebsiteID, &subjectName, &s.ID, &s.ExperimentID, &n); err != nil {
			return nil, fmt.Errorf("look up visitors: %w", err)
		}
		s.Kind = schema.Subject(subjectName)
		events[s] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look up visitors: %w", err)
	}
	return events, nil
}

// Forget deletes all data of the visitors. When it returns, their rows are
// removed from disk and the counters are corrected. Writes and refreshes wait
// meanwhile. An interrupted deletion is finished when the store opens, or by
// calling Forget again.
func (w *Writer) Forget(ctx context.Context, visitors []string, websites []int64) (Erased, error) {
	var found map[Subject]uint64
	err := w.remove(ctx, func(ctx context.Context) (err error) {
		if found, err = w.eventsOf(ctx, visitors, websites); err != nil {
			return err
		}
		return w.forget(ctx, found, visitors, websites)
	})
	return erasedOf(found), err
}

func (w *Writer) forget(ctx context.Context, found map[Subject]uint64, visitors []string, websites []int64) error {
	if err := w.erase(ctx, forgetInbox, namedVisitors(visitors, websites)...); err != nil {
		return fmt.Errorf("erase visitors: %w", err)
	}
	if err := w.erase(ctx, forgetRejects, clickhouse.Named("visitors", spellings(visitors)), clickhouse.Named("website_ids", websites)); err != nil {
		return fmt.Errorf("erase rejected lines: %w", err)
	}
	if err := w.erase(ctx, forgetRepeats, namedVisitors(visitors, websites)...); err != nil {
		return fmt.Errorf("erase duplicates: %w", err)
	}
	if len(found) > 0 {
		if err := w.retireRollups(ctx, func(s Subject) bool { return found[s] > 0 }); err != nil {
			return err
		}
		if err := w.erase(ctx, forget, append(namedVisitors(visitors, websites), subjectParams(found)...)...); err != nil {
			return fmt.Errorf("erase visitors: %w", err)
		}
	}
	if w.name != "" {
		if err := w.erase(ctx, forgetCopies, namedVisitors(visitors, websites)...); err != nil {
			return fmt.Errorf("erase visitors: %w", err)
		}
		if _, err := w.finishRemovals(ctx, time.UnixMilli(0)); err != nil { // otherwise a copy would be subtracted from the counters twice
			return err
		}
	}
	_, err := schema.RepairStats(ctx, w.conn)
	return err
}

// erase executes a DELETE mutation and waits until all active replicas have
// executed it.
func (w *Writer) erase(ctx context.Context, statement string, params ...any) error {
	if err := w.conn.Exec(ctx, statement, params...); err != nil {
		return err
	}
	return schema.AwaitDeletions(ctx, w.conn)
}

// retireRollups drops the rollups of subjects that are about to lose events.
func (w *Writer) retireRollups(ctx context.Context, of func(Subject) bool) error {
	if w.rollups == nil {
		return errors.New("the writer does not know the rollups that include the events")
	}
	changed, err := w.rollups.Retire(ctx, of)
	if changed {
		w.afterWrite(nil)
	}
	return err
}

// spellings returns the ids as they were sent and as JSON may encode them.
func spellings(visitors []string) []string {
	var all []string
	for _, visitor := range visitors {
		var escaped bytes.Buffer
		encoder := json.NewEncoder(&escaped)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(visitor); err != nil || visitor == "" {
			continue
		}
		quoted := strings.TrimSpace(escaped.String())
		all = append(all, visitor, quoted[1:len(quoted)-1])
	}
	return all
}

// subjectParams returns the parameters with the subjects of some events.
func subjectParams(found map[Subject]uint64) []any {
	var websites, ids, experiments []int64
	var kinds []string
	for s := range found {
		websites, kinds, ids, experiments = append(websites, s.WebsiteID), append(kinds, string(s.Kind)), append(ids, s.ID), append(experiments, s.ExperimentID)
	}
	return []any{
		clickhouse.Named("websites", websites), clickhouse.Named("subjects", kinds),
		clickhouse.Named("subject_ids", ids), clickhouse.Named("experiment_ids", experiments),
	}
}

func namedVisitors(visitors []string, websites []int64) []any {
	hashes := make([]uint64, len(visitors))
	for i, visitor := range visitors {
		hashes[i] = schema.Hash(visitor)
	}
	return []any{clickhouse.Named("visitor_ids", hashes), clickhouse.Named("website_ids", websites)}
}
