package schema

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// QueryRows returns the rows of a query. scan reads the current row.
func QueryRows[R any](ctx context.Context, conn driver.Conn, query string, scan func(driver.Rows, *R) error, params ...any) ([]R, error) {
	var rows []R
	err := EachRow(ctx, conn, query, func(found driver.Rows) error {
		var row R
		err := scan(found, &row)
		rows = append(rows, row)
		return err
	}, params...)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// EachRow calls each for the rows of a query, until it returns an error. each reads the
// current row.
func EachRow(ctx context.Context, conn driver.Conn, query string, each func(driver.Rows) error, params ...any) error {
	found, err := conn.Query(ctx, query, params...)
	if err != nil {
		return err
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		if err := each(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// InsertRows inserts rows in one block, which is atomic. values returns the values of a
// row in the order of the statement's columns. Without rows, it does nothing.
func InsertRows[R any](ctx context.Context, conn driver.Conn, statement string, rows []R, values func(*R) []any) error {
	if len(rows) == 0 {
		return nil
	}
	batch, err := conn.PrepareBatch(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	for i := range rows {
		if err := batch.Append(values(&rows[i])...); err != nil {
			return err
		}
	}
	return batch.Send()
}
