package engine

import (
	"context"
	"io"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"

	"github.com/parquet-go/parquet-go"
)

// rowGroup is the number of visitors of a row group. The writer keeps one group in memory.
const rowGroup = 50_000

// WriteVisitors writes a Parquet file with the visitors of a report. It writes nothing before it has read the first
// visitors. The error is an InvalidError, a StoreError, or the error of the context or of the writer. A file that
// is not complete has no footer, so it cannot be read.
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
