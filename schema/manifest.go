package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

// Manifest lists the parts of an embedded store's tables in a file. ClickHouse
// does not notice that the folder of a part is missing; a comparison with this
// list does.
//
// A merge replaces parts by one part that contains their block numbers. A listed
// part therefore exists as long as active parts contain its first and its last
// block. The manifest needs an update only after inserts and deletions.
//
// A nil Manifest belongs to a store on a server, and its methods do nothing.
type Manifest struct {
	conn driver.Conn
	dir  string
	sync bool // flush the file to disk

	mu      sync.Mutex
	tables  map[string][]listedPart
	folders map[string]string // of the tables; nil: not known yet
}

// listedPart is a line of the manifest.
type listedPart struct {
	Table string `ch:"table"`
	Name  string `ch:"name"`
	Rows  uint64 `ch:"rows"`
}

const (
	manifestFile = "lifthouse.parts"
	// removalFile exists while events are being deleted. If it exists when the
	// store opens, the deletion is finished before the counters and the manifest
	// are used.
	removalFile = "lifthouse.removal"
)

// transient are tables whose parts disappear without a deletion: their rows
// expire, or whole parts are processed and dropped.
var transient = []string{"deliveries", "events_inbox", "rejects", "repeats", "rollup_claims", "unstored"}

// NewManifest returns the manifest of the embedded store in dir. If sync is true,
// every update is flushed to disk.
func NewManifest(conn driver.Conn, dir string, sync bool) *Manifest {
	return &Manifest{conn: conn, dir: dir, sync: sync, tables: map[string][]listedPart{}}
}

const partsOfAllTables = `
SELECT table, name, rows
FROM system.parts
WHERE database = currentDatabase() AND active AND rows > 0 AND table NOT IN {transient:Array(String)}`

// Update writes the active parts of the given tables, or of all tables if none is
// given. If the file cannot be written, Update logs a warning and the file keeps
// the earlier list.
func (m *Manifest) Update(ctx context.Context, tables ...string) {
	if m == nil {
		return
	}
	if err := m.update(ctx, tables); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "update manifest failed", "file", manifestFile, "err", err)
	}
}

func (m *Manifest) update(ctx context.Context, tables []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tables) == 0 { // the first update lists all tables
		tables = nil
	}
	parts, err := m.parts(ctx, tables)
	if err != nil {
		return err
	}
	slices.SortFunc(parts, func(a, b listedPart) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Name, b.Name))
	})
	next := map[string][]listedPart{}
	if len(tables) > 0 {
		next = maps.Clone(m.tables)
		maps.DeleteFunc(next, func(table string, _ []listedPart) bool { return slices.Contains(tables, table) })
	}
	for _, p := range parts {
		next[p.Table] = append(next[p.Table], p)
	}
	if err := replaceFile(filepath.Join(m.dir, manifestFile), encodeManifest(next), m.sync); err != nil {
		return err
	}
	m.tables = next
	return nil
}

// parts returns the active parts of the given tables, or of all tables if none is given. It
// reads the folders of given tables: a statement after each insert would take 2.5 to 7 ms of
// CPU time.
func (m *Manifest) parts(ctx context.Context, tables []string) (parts []listedPart, err error) {
	if len(tables) == 0 {
		return parts, m.conn.Select(ctx, &parts, partsOfAllTables, clickhouse.Named("transient", transient))
	}
	known := m.tables
	for range 3 {
		if m.folders == nil {
			if m.folders, err = foldersOfTables(ctx, m.conn); err != nil {
				return nil, err
			}
		}
		if parts, err = m.partsInFolders(tables, known); !errors.Is(err, fs.ErrNotExist) {
			return parts, err
		}
		m.folders, known = nil, nil // perhaps a table was created again, with parts of the same names
	}
	return nil, err
}

func (m *Manifest) partsInFolders(tables []string, known map[string][]listedPart) (parts []listedPart, err error) {
	for _, table := range tables {
		folder, has := m.folders[table]
		if !has {
			continue
		}
		found, err := partsIn(folder, table, known[table])
		if err != nil {
			return nil, fmt.Errorf("list the parts of %s: %w", table, err)
		}
		parts = append(parts, found...)
	}
	return parts, nil
}

// encodeManifest returns a line per part, and a last line with a checksum that
// detects a truncated file.
func encodeManifest(tables map[string][]listedPart) []byte {
	var text []byte
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, p := range tables[table] {
			text = fmt.Appendf(text, "%s %s %d\n", table, p.Name, p.Rows)
		}
	}
	return fmt.Appendf(text, "end %016x\n", xxhash.Sum64(text))
}

// errManifest means that the manifest is truncated or altered.
var errManifest = errors.New("the manifest, " + manifestFile + ", is damaged, so missing parts cannot be detected")

func decodeManifest(text []byte) ([]listedPart, error) {
	body := text[:strings.LastIndexByte(strings.TrimSuffix(string(text), "\n"), '\n')+1]
	if string(text[len(body):]) != fmt.Sprintf("end %016x\n", xxhash.Sum64(body)) {
		return nil, errManifest
	}
	var parts []listedPart
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, errManifest
		}
		rows, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			return nil, errManifest
		}
		parts = append(parts, listedPart{fields[0], fields[1], rows})
	}
	return parts, nil
}

// replaceFile replaces a file atomically.
func replaceFile(path string, content []byte, sync bool) (err error) {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil && sync {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// missing returns the listed parts that the store lacks. While a deletion is
// unfinished, parts of the tables that lose rows are not reported. A store
// without a manifest was created by an earlier release.
func (m *Manifest) missing(ctx context.Context) ([]DamagedPart, error) {
	if m == nil {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(m.dir, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	listed, err := decodeManifest(text)
	if err != nil {
		return nil, err
	}
	active, err := activeBlocks(ctx, m.conn)
	if err != nil {
		return nil, err
	}
	var missing []DamagedPart
	for _, p := range listed {
		blocks, ok := parsePart(p.Name)
		if !ok {
			return nil, errManifest
		}
		if m.removalPending() && slices.Contains(removalTables, p.Table) || active.covers(p.Table, blocks) {
			continue
		}
		missing = append(missing, DamagedPart{
			Table: p.Table, Name: p.Name, Partition: blocks.partition, First: blocks.first, Last: blocks.last, Rows: p.Rows, Missing: true,
		})
	}
	return missing, nil
}

// blocks are the partition and the range of block numbers of a part, how often it was merged, and
// the number of its last mutation.
type blocks struct {
	partition       string
	first, last     int64
	level, mutation int64
}

// parsePart parses the name of a part, PARTITION_FIRST_LAST_LEVEL or
// PARTITION_FIRST_LAST_LEVEL_MUTATION. It returns false if the name has another
// form.
func parsePart(name string) (b blocks, ok bool) {
	fields := strings.Split(name, "_")
	if len(fields) != 4 && len(fields) != 5 {
		return blocks{}, false
	}
	b.partition = fields[0]
	for i, to := range []*int64{&b.first, &b.last, &b.level, &b.mutation}[:len(fields)-1] {
		var err error
		if *to, err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return blocks{}, false
		}
	}
	return b, true
}

// partition identifies a partition of a table.
type partition struct{ table, id string }

// coverage are the blocks of the active parts.
type coverage map[partition][]blocks

// covers reports whether active parts contain the first and the last block.
func (c coverage) covers(table string, b blocks) bool {
	has := func(block int64) bool {
		return slices.ContainsFunc(c[partition{table, b.partition}], func(a blocks) bool { return a.first <= block && block <= a.last })
	}
	return has(b.first) && has(b.last)
}

const activeParts = `
SELECT table, partition_id, min_block_number, max_block_number
FROM system.parts
WHERE database = currentDatabase() AND active`

func activeBlocks(ctx context.Context, conn driver.Conn) (coverage, error) {
	rows, err := conn.Query(ctx, activeParts)
	if err != nil {
		return nil, fmt.Errorf("list active parts: %w", err)
	}
	defer func() { _ = rows.Close() }()
	active := coverage{}
	for rows.Next() {
		var table string
		var b blocks
		if err := rows.Scan(&table, &b.partition, &b.first, &b.last); err != nil {
			return nil, fmt.Errorf("list active parts: %w", err)
		}
		of := partition{table, b.partition}
		active[of] = append(active[of], b)
	}
	return active, rows.Err()
}
