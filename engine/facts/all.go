package facts

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
)

// ReadAll returns all stored rows of visitors and goal events, in the order of fold.Rows for each visitor.
func ReadAll(ctx context.Context, conn driver.Conn) (rows []fold.Row, err error) {
	s := &server{conn, ofServer}
	err = s.readRows(ctx, s.allRows, func(r *fold.Row) error {
		rows = append(rows, *r)
		return nil
	})
	return rows, err
}

// ReadAllCells returns all stored cells.
func ReadAllCells(ctx context.Context, conn driver.Conn) (fold.Cells, error) {
	all, s := fold.Cells{}, &server{conn, ofServer}
	return all, s.readCells(ctx, s.statement("cells.sql", "grain IN ('all', 'day')"), func(key fold.CellKey, cell *fold.Cell) { all[key] = cell })
}
