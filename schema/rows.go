package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// QueryRows returns the rows of a query. scan reads the current row.
func QueryRows[R any](ctx context.Context, conn driver.Conn, query string, scan func(driver.Rows, *R) error,
	params ...any,
) ([]R, error) {
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

// EachRow calls each for each row of a query and stops at the first error. each reads the current row.
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

// insertedColumns has the columns of each INSERT so far. They are constant, because the tables of a store change only
// before it is opened.
var insertedColumns sync.Map

// prepareBatch returns a batch for a statement. For an embedded store, the driver would read the columns of the table
// before each batch, which takes as much CPU time as a small INSERT. It does so only once for each statement. Later
// batches have plain strings: ClickHouse makes the dictionaries of LowCardinality in less time than the driver.
func prepareBatch(ctx context.Context, conn driver.Conn, statement string) (driver.Batch, error) {
	columns, known := insertedColumns.Load(statement)
	if known {
		ctx = clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes(columns.([]clickhouse.ColumnNameAndType)))
	}
	batch, err := conn.PrepareBatch(ctx, statement)
	if err == nil && !known {
		var described []clickhouse.ColumnNameAndType
		for _, c := range batch.Columns() {
			kind := strings.Replace(string(c.Type()), "LowCardinality(String)", "String", 1)
			described = append(described, clickhouse.ColumnNameAndType{Name: c.Name(), Type: kind})
		}
		insertedColumns.Store(statement, described)
	}
	return batch, err
}

// InsertRows inserts rows in one block, which is atomic. values returns the values of a row in the order of the
// statement's columns. If there are no rows, InsertRows does nothing.
func InsertRows[R any](ctx context.Context, conn driver.Conn, statement string, rows []R, values func(*R) []any) error {
	if len(rows) == 0 {
		return nil
	}
	batch, err := prepareBatch(ctx, conn, statement)
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

// ColumnValues returns a function that returns one column: a value of each row.
func ColumnValues[R, T any](rows []R, value func(*R) T) func() any {
	return func() any {
		values := make([]T, len(rows))
		for i := range rows {
			values[i] = value(&rows[i])
		}
		return values
	}
}

// InsertColumns sends columns as one block, see PrepareColumns.
func InsertColumns(ctx context.Context, conn driver.Conn, settings clickhouse.Settings, statement string,
	columns []func() any,
) error {
	batch, err := PrepareColumns(ctx, conn, settings, statement, columns)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	return batch.Send()
}

// PrepareColumns returns a batch with columns, which Send stores as one block. Their values are computed concurrently.
// The caller must close the batch.
func PrepareColumns(ctx context.Context, conn driver.Conn, settings clickhouse.Settings, statement string,
	columns []func() any,
) (driver.Batch, error) {
	batch, err := prepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), conn, statement)
	if err != nil {
		return nil, err
	}
	var appending errgroup.Group // appends to different columns are independent
	appending.SetLimit(runtime.GOMAXPROCS(0))
	for i, values := range columns {
		appending.Go(func() error {
			if err := batch.Column(i).Append(values()); err != nil {
				return fmt.Errorf("column %d: %w", i, err)
			}
			return nil
		})
	}
	if err := appending.Wait(); err != nil {
		return nil, errors.Join(err, batch.Close())
	}
	return batch, nil
}

// WrapError returns an error that says what failed, or nil if nothing did.
func WrapError(err error, task string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", task, err)
}

// ReadStatements returns the texts of embedded files, sql/NAME.sql, by their names.
func ReadStatements(files embed.FS) map[string]string {
	texts := map[string]string{}
	names, _ := fs.Glob(files, "sql/*.sql") // the pattern is valid
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the files are embedded
		}
		texts[strings.TrimSuffix(path.Base(name), ".sql")] = string(text)
	}
	return texts
}
