package schema

import (
	"context"
	"errors"
	"fmt"
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

// Manifest lists the parts of an embedded store's tables in a file beside
// them. ClickHouse takes the parts that it finds for all there are, so a part
// whose folder vanished is noticed only by comparing with this list.
//
// A merge replaces parts by one that covers their block numbers. So a listed
// part is there as long as active parts cover its first and its last block,
// and the list needs to be written after inserts and removals only.
//
// A nil Manifest is that of a store on a server and does nothing.
type Manifest struct {
	conn driver.Conn
	dir  string
	sync bool // write through to the disk

	mu     sync.Mutex
	tables map[string][]listedPart
}

// listedPart is a line of the manifest.
type listedPart struct {
	Table string `ch:"table"`
	Name  string `ch:"name"`
	Rows  uint64 `ch:"rows"`
}

const (
	manifestFile = "lifthouse.parts"
	// removalFile exists while events are being removed. A process that starts
	// with it finishes the removal before it trusts counters and manifest.
	removalFile = "lifthouse.removal"
)

// passing are tables whose parts disappear by themselves: their rows expire, or
// are moved on by whole parts.
var passing = []string{"deliveries", "events_inbox", "rejects"}

// NewManifest returns the manifest of the embedded store in dir. If sync is
// set, it is written through to the disk before a write returns.
func NewManifest(conn driver.Conn, dir string, sync bool) *Manifest {
	return &Manifest{conn: conn, dir: dir, sync: sync, tables: map[string][]listedPart{}}
}

const partsOfTables = `
SELECT table, name, rows
FROM system.parts
WHERE database = currentDatabase()
    AND active
    AND rows > 0
    AND (empty({tables:Array(String)}) OR table IN {tables:Array(String)})
    AND table NOT IN {passing:Array(String)}
ORDER BY table, name`

// Update lists the parts that the tables have now, of all tables if none is
// named. A list that cannot be written is logged and stays as it was: it
// then names no part that vanished since.
func (m *Manifest) Update(ctx context.Context, tables ...string) {
	if m == nil {
		return
	}
	if err := m.update(ctx, tables); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "list of parts not written", "file", manifestFile, "error", err)
	}
}

func (m *Manifest) update(ctx context.Context, tables []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tables) == 0 { // the first list is of all tables
		tables = nil
	}
	var parts []listedPart
	if err := m.conn.Select(ctx, &parts, partsOfTables, clickhouse.Named("tables", slices.Concat([]string{}, tables)), clickhouse.Named("passing", passing)); err != nil {
		return err
	}
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

// encodeManifest writes a line for each part and a last one with a checksum,
// without which the list was cut off.
func encodeManifest(tables map[string][]listedPart) []byte {
	var text []byte
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, p := range tables[table] {
			text = fmt.Appendf(text, "%s %s %d\n", table, p.Name, p.Rows)
		}
	}
	return fmt.Appendf(text, "end %016x\n", xxhash.Sum64(text))
}

// errManifest is a manifest that was cut off or altered.
var errManifest = errors.New("the list of its parts, " + manifestFile + ", is damaged, so that nobody knows whether some are missing")

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

// replaceFile puts a file with the content in the place of the one that is
// there, whole or not at all.
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

// missing returns the listed parts that the tables lack: of all tables, or
// while a removal is unfinished, which takes parts away, of those that it
// leaves alone. A store without a list is one of an earlier release.
func (m *Manifest) missing(ctx context.Context) ([]DamagedPart, error) {
	if m == nil {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(m.dir, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of parts: %w", err)
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
		if m.removing() && slices.Contains(tablesOfRemovals, p.Table) || active.cover(p.Table, blocks) {
			continue
		}
		missing = append(missing, DamagedPart{
			Table: p.Table, Name: p.Name, Partition: blocks.partition, First: blocks.first, Last: blocks.last, Rows: p.Rows, Missing: true,
		})
	}
	return missing, nil
}

// blocks are the numbers of the inserts that a part has, from first to last.
type blocks struct {
	partition   string
	first, last int64
}

// parsePart reads the name of a part, PARTITION_FIRST_LAST_LEVEL or
// PARTITION_FIRST_LAST_LEVEL_MUTATION.
func parsePart(name string) (blocks, bool) {
	fields := strings.Split(name, "_")
	if len(fields) != 4 && len(fields) != 5 {
		return blocks{}, false
	}
	first, err1 := strconv.ParseInt(fields[1], 10, 64)
	last, err2 := strconv.ParseInt(fields[2], 10, 64)
	return blocks{fields[0], first, last}, errors.Join(err1, err2) == nil
}

// partition names a partition of a table.
type partition struct{ table, id string }

// coverage has the blocks of active parts.
type coverage map[partition][]blocks

func (c coverage) cover(table string, b blocks) bool {
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
