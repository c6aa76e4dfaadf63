package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

// batchSize is the number of rows per insert. It is large enough for a small cost per row, and small enough for
// frequent progress reports and low memory.
const batchSize = 100_000

// partsAhead is the number of parsed parts that may wait to be written, about one batch. With it, parsing continues
// while the store merges.
const partsAhead = batchSize / partRows

// Options are the options of ImportFile.
type Options struct {
	Format  string   // csv, ndjson or parquet; empty: the format of the mapping or of the file name
	Mapping *Mapping // nil: the file has Lifthouse's field names
	Dir     string   // directory of the mapping's look-up files
	// WebsiteID is the website of events without websiteId; 0: each event has one.
	WebsiteID int64
	Input     io.Reader // the file for the path -
	Times     Times     // accepted times
	// Owns reports whether events of the website are accepted. If nil, all are.
	Owns func(websiteID int64) bool
	// DryRun stores nothing. Report.Rows counts the valid rows.
	DryRun bool
	// Accepted, if not nil, is called with the valid rows of every batch, before they are written.
	Accepted func([]schema.Event)
	// Progress, if not nil, is called after every batch.
	Progress func(Report)
	// Journal, if not nil, stores the first rejected lines of each batch.
	Journal *Journal
	// Reject, if not nil, is called for every rejected line.
	Reject func(line int64, reason string)
}

// Report is the progress of an import.
type Report struct {
	Rows       int64 // rows that were accepted: an event has one per exposure
	Lines      int64 // lines that were parsed, without empty lines
	Rejected   int64 // rejected lines
	NoVisitor  int64 // events that were left out, because the mapping is shipped and they have no visitor
	Bytes      int64 // bytes read of the file, before decompression
	TotalBytes int64 // size of the file
}

// ImportFile writes the events of a file, or of Options.Input for the path -. A line with any invalid value is rejected
// as a whole and reported; the other lines are written.
//
// The id of an event without eventId is derived from the digest of the file's decompressed content and the line number.
// So repeating an import changes nothing, and an interrupted import is resumed by repeating it. A file that was changed
// or appended to is a new file: set eventId if files grow.
func ImportFile(ctx context.Context, w *Writer, path string, o Options) (Report, error) {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }()
	readNames := w.Names
	if o.DryRun { // its names and rejected lines must not be stored
		readNames = func(ctx context.Context) (*Names, error) {
			options := w.nameOptions
			options.SaltOf = func(int64) ([]byte, error) { return nil, nil } // customers are not stored
			return openNames(ctx, w.conn, options)
		}
		o.Journal = nil
	}
	names, err := readNames(ctx)
	if err != nil {
		return Report{}, err
	}
	name := filepath.Base(path)
	i := importer{
		options: o, name: name, first: true, hidden: o.Mapping.customerColumns(),
		rules: rules{times: o.Times, owns: o.Owns, names: names, source: name},
	}
	err = i.importFile(ctx, w, path, file)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file is truncated: %w", err)
	}
	switch {
	case err == nil:
		return i.report, nil
	case i.report.Rows > 0:
		return i.report, fmt.Errorf("%s: %w (%d rows were accepted before)", path, err, i.report.Rows)
	}
	return i.report, fmt.Errorf("%s: %w", path, err)
}

// importFile reads lines, parses them in parallel, and writes the events in the order of the file. The three steps run
// concurrently.
func (i *importer) importFile(ctx context.Context, w *Writer, path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	i.report.TotalBytes = info.Size()
	i.digest = sync.OnceValues(func() (uint64, error) {
		return contentDigest(ctx, io.NewSectionReader(file, 0, info.Size()), "")
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.read = &contextReader{ctx: ctx, r: file}
	i.lines, err = i.options.openReader(ctx, path, file, i.read)
	if err != nil {
		return err
	}
	parts := make(chan chan batch, partsAhead)
	go i.readAll(ctx, parts)
	pending := batch{events: make([]schema.Event, 0, batchSize+batchSize/8)}
	for part := range parts {
		next := <-part
		pending.events = append(pending.events, next.events...)
		pending.rejected = append(pending.rejected, next.rejected...)
		pending.lines += next.lines
		pending.bytes = next.bytes
		pending.err = next.err
		if len(pending.events)+len(pending.rejected) < batchSize && pending.err == nil {
			continue
		}
		if err := i.writeBatch(ctx, w, pending); err != nil {
			return err
		}
		pending = batch{events: pending.events[:0]}
	}
	return ctx.Err()
}

// openReader returns a reader of the file, positioned at its start. counted reads the same file.
func (o *Options) openReader(ctx context.Context, path string, file *os.File, counted *contextReader) (lines, error) {
	kind := cmp.Or(o.Format, formatOf(path))
	var compiled *mapper
	if o.Mapping != nil {
		kind = cmp.Or(o.Format, o.Mapping.Format, formatOf(path))
		var err error
		open := func(name string) (io.ReadCloser, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(o.Dir, name)
			}
			return OpenFile(name)
		}
		compiled, err = newMapper(o.Mapping, o.WebsiteID, open)
		if err != nil {
			return nil, err
		}
	}
	if kind == formatParquet {
		return newParquetLines(ctx, file, counted, compiled)
	}
	return openLines(counted, kind, o.Mapping, compiled)
}

type importer struct {
	options Options
	rules   rules
	name    string          // file name
	hidden  map[string]bool // columns that name customers
	read    *contextReader
	lines   lines
	digest  func() (uint64, error) // digest of the decompressed content of the file
	first   bool                   // no batch was written yet
	report  Report
}

// batch is the result of parsing some lines.
type batch struct {
	events   []schema.Event
	lines    int64
	rejected []Reject
	// events that are left out, see Report.NoVisitor
	noVisitor int64
	bytes     int64 // bytes of the file up to the last line
	err       error // why no further lines can be read; io.EOF at the end of the file
}

// readAll reads the file and parses its parts concurrently, as many as the channel holds.
func (i *importer) readAll(ctx context.Context, parts chan<- chan batch) {
	defer close(parts)
	for {
		parse, err := i.lines.readPart()
		read := i.read.n.Load()
		part := make(chan batch, 1)
		select {
		case parts <- part:
		case <-ctx.Done():
			return
		}
		go func() { part <- i.parseBatch(parse, read, err) }()
		if err != nil {
			return
		}
	}
}

// writeBatch writes a batch and adds it to the report.
func (i *importer) writeBatch(ctx context.Context, w *Writer, b batch) error {
	if l, is := i.lines.(*jsonLines); is && i.first {
		if err := l.missingColumns(); err != nil {
			return err
		}
	}
	i.first = false
	// Report and store the rejected lines. An error of the journal is only logged.
	if i.options.Reject != nil {
		for _, r := range b.rejected {
			i.options.Reject(r.Line, r.Reason)
		}
	}
	if i.options.Journal != nil {
		i.options.Journal.BufferRejects(b.rejected...)
		if err := i.options.Journal.FlushRejects(context.WithoutCancel(ctx)); err != nil {
			slog.WarnContext(ctx, "write journal of events failed", "err", err)
		}
	}
	if i.options.Accepted != nil {
		i.options.Accepted(b.events)
	}
	if !i.options.DryRun {
		if err := w.WriteEvents(ctx, b.events); err != nil {
			return err
		}
	}
	i.report.Rows += int64(len(b.events))
	i.report.Lines += b.lines
	i.report.Rejected += int64(len(b.rejected))
	i.report.NoVisitor += b.noVisitor
	i.report.Bytes = b.bytes
	if i.options.Progress != nil {
		i.options.Progress(i.report)
	}
	if errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}

// parseBatch parses and validates the lines of a part.
func (i *importer) parseBatch(parse parse, read int64, err error) batch {
	b := batch{events: make([]schema.Event, 0, partRows), bytes: read, err: err}
	parse(func(line origin, events []fields, err error) {
		b.lines++
		before := len(b.events)
		for n := 0; n < len(events) && err == nil; n++ {
			if i.isLeftOut(&events[n]) {
				b.noVisitor++
				continue
			}
			fallback := ""
			if events[n].values[fieldEventID] == "" {
				var digest uint64
				digest, err = i.digest()
				if err != nil {
					b.err = err
					break
				}
				fallback = fmt.Sprintf("%x:%d:%d", digest, line.number, n)
			}
			b.events, err = i.rules.validate(b.events, &events[n], fallback)
		}
		if err == nil {
			return
		}
		b.events = b.events[:before]
		r := Reject{Channel: ChannelImport, File: i.name, Line: line.number, Reason: hideEmails(err.Error())}
		if len(b.rejected) < maxRejects {
			r.Text = withoutCustomers(line.rejectText(i.hidden), events)
		}
		if len(events) > 0 {
			r.WebsiteID, _ = strconv.ParseInt(events[0].values[fieldWebsiteID], 10, 64) // 0 if missing or invalid
		}
		b.rejected = append(b.rejected, r)
	})
	return b
}

// isLeftOut reports whether an event is nobody's, and of no customer: the mapping says so, or it is a shipped one, and
// shops also have orders without a visitor.
func (i *importer) isLeftOut(event *fields) bool {
	isShipped := i.options.Mapping != nil && i.options.Mapping.anyColumns
	if event.values[fieldCustomer] != "" {
		return false
	}
	return event.ofNobody || isShipped && event.values[fieldVisitor] == ""
}

// StandardInput is the path of Options.Input.
const StandardInput = "-"

// OpenFile opens a file. The path must not be a directory, nor that of an open file of a process, below /dev or /proc:
// a server that executes a forwarded command would open its own files instead. Shared memory, /dev/shm, is allowed.
func OpenFile(path string) (*os.File, error) {
	clean := filepath.Clean(path)
	for _, root := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(clean, root) && !strings.HasPrefix(clean, "/dev/shm/") {
			return nil, fmt.Errorf("%s: paths below %s belong to the process that executes the command: use a file, "+
				"or - for standard input", clean, root)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: must be a file", path)
	}
	return os.Open(path)
}

// openSource opens the file to import. The file must be read twice, so for anything but a regular file, openSource
// returns a copy in an unlinked temporary file. Opening or reading a pipe may block forever. So it returns when the
// context ends, even if the copying goroutine is still blocked.
func (o *Options) openSource(ctx context.Context, path string) (*os.File, error) {
	open := func() (io.ReadCloser, error) { return OpenFile(path) }
	if path == StandardInput {
		if o.Input == nil {
			return nil, errors.New("there is no standard input")
		}
		open = func() (io.ReadCloser, error) { return io.NopCloser(o.Input), nil } //nolint:unparam // as OpenFile
	} else if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
		return OpenFile(path)
	}
	file, err := os.CreateTemp("", "lifthouse-import-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	copied := make(chan error, 1)
	go func() {
		in, err := open()
		if err == nil {
			_, err = io.Copy(file, &contextReader{ctx: ctx, r: in})
			_ = in.Close()
		}
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func formatOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch {
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"):
		return formatCSV
	case strings.HasSuffix(name, ".parquet"):
		return formatParquet
	}
	return formatNDJSON
}

// contextReader returns an error after its context has ended, and counts the bytes that it reads.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	n   atomic.Int64
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Order is a goal event that a line of a file yields, or a line that cannot be read.
type Order struct {
	FileLine             int64
	ID                   string // as sent
	Event, Visitor       uint64 // hashes
	Revision             uint64
	At                   int64 // milliseconds since 1970
	WebsiteID, GoalID    int64
	Value, Profit        int64 // in 1/schema.MoneyScale; of a line that cannot be read, what can be read
	Currency             string
	Cancelled, NoVisitor bool   // NoVisitor: the line names none
	Customer             string // as sent, see schema.HashCustomer; empty: none
	Fault                string
}

// ReadOrders calls take for each goal event of a file, in the order of the file. It stores nothing.
func ReadOrders(ctx context.Context, path string, o Options, take func(*Order)) error {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader, err := o.openReader(ctx, path, file, &contextReader{ctx: ctx, r: file})
	for err == nil {
		var parse parse
		parse, err = reader.readPart()
		if parse == nil {
			break
		}
		parse(func(line origin, events []fields, fault error) {
			if fault != nil {
				take(&Order{FileLine: line.number, Fault: fault.Error()})
				return
			}
			for i := range events {
				event := &events[i]
				if kind := event.values[fieldEvent]; kind != string(schema.KindGoal) && kind != "" {
					continue
				}
				noVisitor := event.values[fieldVisitor] == ""
				if noVisitor {
					event.values[fieldVisitor] = "none"
				}
				b := builder{given: event}
				e := b.buildEvent("")
				take(&Order{
					FileLine: line.number, ID: strings.Clone(event.values[fieldEventID]), Event: e.EventID,
					Visitor: e.VisitorID, Revision: e.Revision, At: e.Time.UnixMilli(), WebsiteID: e.WebsiteID,
					GoalID: e.GoalID, Value: e.Value, Profit: e.Profit, Currency: e.Currency, Cancelled: e.Cancelled,
					NoVisitor: noVisitor, Customer: strings.Clone(event.values[fieldCustomer]),
					Fault: b.List.Join("; "),
				})
			}
		})
	}
	if l, is := reader.(*jsonLines); is && errors.Is(err, io.EOF) {
		if missing := l.missingColumns(); missing != nil {
			err = missing
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

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
