package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const tableFolders = `
SELECT name, data_paths[1]
FROM system.tables
WHERE database = currentDatabase() AND notEmpty(data_paths)`

// foldersOfTables returns the folder of each table.
func foldersOfTables(ctx context.Context, conn driver.Conn) (map[string]string, error) {
	folders := map[string]string{}
	err := EachRow(ctx, conn, tableFolders, func(row driver.Rows) error {
		var table, folder string
		err := row.Scan(&table, &folder)
		folders[table] = folder
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the folders of the tables: %w", err)
	}
	return folders, nil
}

// partsIn returns the active parts with rows in the folder of a table. known are those of an
// earlier list: a part never changes. The error is fs.ErrNotExist if a part was deleted
// meanwhile, because a merge has replaced it.
func partsIn(folder, table string, known []listedPart) ([]listedPart, error) {
	dir, err := os.Open(folder) //nolint:gosec // of the store
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	rows := make(map[string]uint64, len(known))
	for _, p := range known {
		rows[p.Name] = p.Rows
	}
	var parts []listedPart
	for _, name := range withoutReplaced(names) {
		n, is := rows[name]
		if !is {
			if n, err = rowsOf(filepath.Join(folder, name)); err != nil {
				return nil, err
			}
		}
		if n > 0 {
			parts = append(parts, listedPart{table, name, n})
		}
	}
	return parts, nil
}

// rowsOf returns the number of rows of the part in a folder.
func rowsOf(folder string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(folder, "count.txt")) //nolint:gosec // of the store
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// withoutReplaced returns the names of parts, without other names and without those of parts
// that were replaced: by a merge or a deletion, into a part with all their blocks, or by a
// mutation, into a part of the same blocks. ClickHouse deletes the folders of such parts some
// minutes later.
func withoutReplaced(names []string) []string {
	type part struct {
		blocks
		name string
	}
	var parts []part
	for _, name := range names {
		if b, is := parsePart(name); is {
			parts = append(parts, part{b, name})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(
			strings.Compare(a.partition, b.partition), cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last),
			cmp.Compare(b.mutation, a.mutation), cmp.Compare(b.level, a.level),
		)
	})
	var active []string
	var last part
	for i, p := range parts {
		if i == 0 || p.partition != last.partition || p.last > last.last {
			active, last = append(active, p.name), p
		}
	}
	return active
}
