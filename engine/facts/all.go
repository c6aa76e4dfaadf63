package facts

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/schema"
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
	cells := fold.Cells{}
	err := schema.EachRow(ctx, conn, statement("cells.sql", "grain IN ('all', 'day')"), func(row driver.Rows) error {
		key, sums, copies, err := scanCell(row)
		if err == nil && (copies != 1 || cells[key] != nil) {
			err = fmt.Errorf("a cell of %s is stored %d times", key.Subject, copies)
		}
		cells[key] = sums
		return err
	})
	return cells, err
}
