package engine

import (
	"context"
	"io"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/parquet-go/parquet-go"
)

// Values has the observed values of an attribute, the most frequent first. Visitors counts all visitors of the subject,
// including those that a report excludes, by the attribute of their first view.
type Values struct {
	schema.SubjectIDs
	Dimension      string        `json:"dimension"`
	DataThrough    *time.Time    `json:"dataThrough"` // null: the subject has no events
	Visitors       int64         `json:"visitors"`
	DistinctValues int64         `json:"distinctValues"`
	Values         []facts.Value `json:"values"`
}

// ReadValues returns the most frequent values of an attribute for the subject of the plan, at most the given number. It
// ignores the filters of the plan.
func (e *Engine) ReadValues(ctx context.Context, plan *plan.Plan, attribute string, most int) (*Values, error) {
	stored, err := e.facts.StoredEvents(ctx, plan.Subject)
	if err != nil {
		return nil, err
	}
	found := &Values{SubjectIDs: plan.Subject.IDs(), Dimension: attribute, Values: []facts.Value{}}
	if through := stored.Ingested; !through.IsZero() {
		found.DataThrough = &through
	}
	values, err := e.facts.ReadValues(ctx, plan.Question, attribute)
	for i, v := range values {
		if found.Visitors += v.Visitors; i < most {
			found.Values = append(found.Values, v)
		}
	}
	found.DistinctValues = int64(len(values))
	return found, source.StoreFailure(ctx, err)
}

// rowGroup is the number of visitors of a row group. The writer keeps one group in memory.
const rowGroup = 50_000

// WriteVisitors writes a Parquet file with the visitors of a report. It writes nothing before it has read the first
// visitors. The error is an InvalidError, a StoreError, or the error of the context or of the writer. A file that is
// not complete has no footer, so it cannot be read.
func (e *Engine) WriteVisitors(ctx context.Context, p *plan.Plan, to io.Writer) error {
	if _, err := e.facts.AwaitNoted(ctx); err != nil {
		return err
	}
	return e.writeVisitors(ctx, e.AsOfFirstView(p).Question, to)
}

func (e *Engine) writeVisitors(ctx context.Context, q plan.Question, to io.Writer) error {
	rows := make([]facts.Visitor, 0, 1000)
	file := parquet.NewGenericWriter[facts.Visitor](to,
		parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Zstd))
	var failed error // not an error of the store
	write := func() error {
		_, failed = file.Write(rows)
		rows = rows[:0]
		return failed
	}
	err := e.facts.EachVisitor(ctx, q, func(v *facts.Visitor) error {
		if rows = append(rows, *v); len(rows) < cap(rows) {
			return nil
		}
		return write()
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return file.Close()
}
