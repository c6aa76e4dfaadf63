package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// CheckData verifies the checksums of every part of the events and the facts on the connected server. It returns a
// sentence for each part that cannot be read.
func CheckData(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	for _, table := range []string{TableEvents, TableFacts} {
		found, err := CheckTable(ctx, conn, table)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// The tables that CheckTable checks.
const (
	TableEvents = "events"
	TableFacts  = "facts"
)

// CheckTable verifies the checksums of every part of a table on the connected server. It returns a sentence for each
// part that cannot be read.
func CheckTable(ctx context.Context, conn driver.Conn, table string) (faults []string, err error) {
	if cluster, _ := ClusterOf(conn); cluster != "" {
		table = LocalTable(table)
	}
	err = EachRow(ctx, conn, "CHECK TABLE "+quoteIdentifier(table)+" SETTINGS check_query_single_value_result = 0",
		func(row driver.Rows) error {
			var part, message string
			var passed bool
			err := row.Scan(&part, &passed, &message)
			if !passed {
				faults = append(faults, fmt.Sprintf("part %s of %s: %s", part, table, message))
			}
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("check the data of %s: %w", table, err)
	}
	return faults, nil
}

// DetachedPart is a part of a table that ClickHouse has set aside, for example because it cannot read it. No query
// reads its rows.
type DetachedPart struct{ Table, Reason, Path string }

// ReadDetachedParts returns the parts that ClickHouse has set aside on the connected server, or in the embedded engine.
func ReadDetachedParts(ctx context.Context, conn driver.Conn) ([]DetachedPart, error) {
	const query = `SELECT table, ifNull(reason, ''), path
		FROM system.detached_parts
		WHERE database = currentDatabase()
		ORDER BY table, name`
	parts, err := QueryRows(ctx, conn, query, func(row driver.Rows, p *DetachedPart) error {
		return row.Scan(&p.Table, &p.Reason, &p.Path)
	})
	return parts, WrapError(err, "read the parts that are set aside")
}

// CheckFiles returns an error if files of the embedded store in dir cannot be read. It runs before the engine opens the
// store. The engine reports unreadable files less clearly, and creates a new database if the database definition is
// missing. A missing or empty folder is a new store.
func CheckFiles(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, "store", "*", "*", "*_*_*_*"))
	if err != nil {
		return err
	}
	wrong := []error{checkDefinitions(dir, len(parts) > 0)}
	for _, part := range parts {
		if _, err := os.ReadDir(part); err != nil {
			wrong = append(wrong, unreadableError("a part of a table", part, err))
		}
	}
	return errors.Join(wrong...)
}

// EmbeddedDatabase is the database of an embedded store. It is not the engine's database "default", which treats the
// names of missing tables as files.
const EmbeddedDatabase = "lifthouse"

// metadataDir contains the definition of the database, DATABASE.sql, and the definitions of its tables,
// DATABASE/TABLE.sql. For a table with rows, the engine writes the definition and then creates a link
// data/DATABASE/TABLE. So the links show which definitions must exist. This also holds for a store of an older
// release, or one whose creation was interrupted.
const metadataDir = "metadata"

// checkDefinitions reads the definitions of the database and its tables. The database definition must exist if there
// are tables or parts of tables.
func checkDefinitions(dir string, parts bool) error {
	of := func(table string) string { return filepath.Join(dir, metadataDir, EmbeddedDatabase, table) + ".sql" }
	paths, err := filepath.Glob(of("*"))
	if err != nil {
		return err
	}
	links, err := filepath.Glob(filepath.Join(dir, "data", EmbeddedDatabase, "*"))
	if err != nil {
		return err
	}
	for _, link := range links {
		paths = append(paths, of(filepath.Base(link)))
	}
	database := filepath.Join(dir, metadataDir, EmbeddedDatabase+".sql")
	if _, err := os.Lstat(database); err == nil || parts || len(paths) > 0 {
		paths = append(paths, database)
	}
	slices.Sort(paths)
	var wrong []error
	for _, path := range slices.Compact(paths) {
		what := "the definition of a table"
		if path == database {
			what = "the definition of the database"
		}
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			wrong = append(wrong, unreadableError(what, path, err))
		case !bytes.HasPrefix(text, []byte("ATTACH ")):
			wrong = append(wrong, fmt.Errorf("%s, %s, is damaged: restore a backup (lifthouse restore)", what, path))
		}
	}
	return errors.Join(wrong...)
}

func unreadableError(what, path string, err error) error {
	if cause, is := errors.AsType[*fs.PathError](err); is {
		err = cause.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s, %s, cannot be read (%w): give the user who runs lifthouse access to it", what, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s, %s, is missing: put it back, or restore a backup (lifthouse restore)", what, path)
	}
	return fmt.Errorf("%s, %s, cannot be read (%w): restore a backup (lifthouse restore)", what, path, err)
}
