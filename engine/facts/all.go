package facts

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
)

// ReadAll returns all stored rows of visitors and goal events, in the order of fold.Rows for each visitor.
func ReadAll(ctx context.Context, conn driver.Conn) (rows []fold.Row, err error) {
	err = readRows(ctx, conn, statement("rows.sql", "grain IN ('visitor', 'goal')"), func(r *fold.Row) error {
		rows = append(rows, *r)
		return nil
	})
	return rows, err
}

// ReadAllCells returns all stored cells.
func ReadAllCells(ctx context.Context, conn driver.Conn) (fold.Cells, error) {
	all := fold.Cells{}
	return all, readCells(ctx, conn, statement("cells.sql", "grain IN ('all', 'day')"), func(key fold.CellKey, cell *fold.Cell) { all[key] = cell })
}
