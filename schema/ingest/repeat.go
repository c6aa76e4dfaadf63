package ingest

import (
	"context"
	"fmt"
	"time"

	"lifthouse/schema"
)

// Repeat is a row that was not stored, because one with the same identity was stored
// before.
type Repeat struct {
	ArrivedAt time.Time
	Conflict  bool // the content differs from the stored row
	Way       Way
	File      string // name of the imported file
	Line      int64  // line number from 1; 0: unknown
	schema.Event
}

// maxRepeats is the maximum number of repeats that are stored per write.
const maxRepeats = 100

// Repeated counts the rows that were not stored according to their verdicts, and
// buffers the first ones, conflicts first. line returns the line of a row, if it is
// known.
func (r *Journal) Repeated(way Way, file string, rows []schema.Event, verdicts []Verdict, line func(row int) int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, wanted := range []Verdict{Conflict, Duplicate} {
		for i, verdict := range verdicts {
			if verdict != wanted {
				continue
			}
			r.counts[unstored{minute: now.Truncate(time.Minute).Unix(), website: rows[i].WebsiteID, way: way, verdict: verdict.name()}]++
			if len(r.repeats) < maxRepeats {
				r.repeats = append(r.repeats, Repeat{ArrivedAt: now, Conflict: wanted == Conflict, Way: way, File: file, Line: line(i), Event: rows[i]})
			}
		}
	}
}

// name returns the verdict as the table unstored has it.
func (v Verdict) name() string {
	if v == Conflict {
		return "conflict"
	}
	return "duplicate"
}

const insertRepeats = `INSERT INTO repeats (arrived_at, website_id, subject, subject_id, experiment_id, visitor_id, event_id, conflict, time, event,
	goal_id, variation_id, value, way, file, line)`

func (r *Journal) writeRepeats(ctx context.Context, repeats []Repeat) error {
	err := schema.InsertRows(ctx, r.conn, insertRepeats, repeats, func(p *Repeat) []any {
		return []any{
			p.ArrivedAt.UTC(), p.WebsiteID, string(p.Subject), p.SubjectID, p.ExperimentID, p.VisitorID, p.EventID, p.Conflict, p.Time, string(p.Kind),
			p.GoalID, p.VariationID, p.Value, string(p.Way), p.File, p.Line,
		}
	})
	if err != nil {
		return fmt.Errorf("store duplicates: %w", err)
	}
	return nil
}
