package ingest

import (
	"context"
	"io"
	"strconv"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

// FileDigest returns a hash of the decompressed content of a file and of what its lines are read with, which is the
// text of the mapping, or its name. A file with the same digest has the same events.
func FileDigest(ctx context.Context, path, mapping string, website int64) (uint64, error) {
	file, err := OpenFile(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	return contentDigest(ctx, file, strconv.FormatInt(website, 10)+"\x00"+mapping+"\x00")
}

// contentDigest returns a hash of a text and the decompressed content of a file.
func contentDigest(ctx context.Context, file io.Reader, before string) (uint64, error) {
	plain, err := decompressFile(&contextReader{ctx: ctx, r: file})
	if err != nil {
		return 0, err
	}
	hash := xxhash.New()
	_, _ = hash.WriteString(before) // never fails
	_, err = io.Copy(hash, plain)
	return hash.Sum64(), err
}

// IsImported reports whether a file with this digest was imported.
func IsImported(ctx context.Context, conn driver.Conn, digest uint64) (bool, error) {
	var files uint64
	err := conn.QueryRow(ctx, "SELECT count() FROM files WHERE digest = {digest:UInt64}",
		clickhouse.Named("digest", digest)).Scan(&files)
	return files > 0, schema.WrapError(err, "read the imported files")
}

// RecordFile records that a file was imported.
func RecordFile(ctx context.Context, conn driver.Conn, digest uint64, path string, rows int64) error {
	err := schema.InsertRows(ctx, conn, "INSERT INTO files (digest, path, rows, imported_at)", []int64{rows},
		func(rows *int64) []any {
			return []any{digest, path, uint64(*rows), time.Now().UTC()} //nolint:gosec // not negative
		})
	return schema.WrapError(err, "record an imported file")
}

// GoalsHaveIDs reports whether every event of the mapping that may be a goal has an eventId. Then a line counts once,
// also if it is in several files.
func (m *Mapping) GoalsHaveIDs() bool {
	for i := range m.Events {
		fields := m.fieldsOf(&m.Events[i])
		_, hasID := fields[fieldNames[fieldEventID]]
		if !hasID && fields[fieldNames[fieldEvent]].Value != text(schema.KindView) {
			return false
		}
	}
	return true
}
