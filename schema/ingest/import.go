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

	"lifthouse/schema"
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
		readNames = func(ctx context.Context) (*Names, error) { return openNames(ctx, w.conn) }
		o.Journal = nil
	}
	names, err := readNames(ctx)
	if err != nil {
		return Report{}, err
	}
	name := filepath.Base(path)
	i := importer{
		options: o, name: name, first: true,
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

func (i *importer) importFile(ctx context.Context, w *Writer, path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	i.report.TotalBytes = info.Size()
	i.digest = sync.OnceValues(func() (uint64, error) {
		return contentDigest(ctx, io.NewSectionReader(file, 0, info.Size()), "")
	})
	i.read = &contextReader{ctx: ctx, r: file}
	if i.lines, err = i.options.openReader(ctx, path, file, i.read); err != nil {
		return err
	}
	return i.importLines(ctx, w)
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
		if compiled, err = newMapper(o.Mapping, o.WebsiteID, open); err != nil {
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
	name    string // file name
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
	bytes    int64 // bytes of the file up to the last line
	err      error // why no further lines can be read; io.EOF at the end of the file
}

// importLines reads lines, parses them in parallel, and writes the events in the order of the file. The three steps run
// concurrently.
func (i *importer) importLines(ctx context.Context, w *Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan chan batch, partsAhead)
	go i.readAll(ctx, parts)
	pending := batch{events: make([]schema.Event, 0, batchSize+batchSize/8)}
	for part := range parts {
		next := <-part
		pending.events = append(pending.events, next.events...)
		pending.rejected = append(pending.rejected, next.rejected...)
		pending.lines, pending.bytes, pending.err = pending.lines+next.lines, next.bytes, next.err
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
	i.reportRejected(context.WithoutCancel(ctx), b.rejected)
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
	i.report.Bytes = b.bytes
	if i.options.Progress != nil {
		i.options.Progress(i.report)
	}
	if errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}

// reportRejected reports and stores rejected lines. It returns no error of the journal, because Options.Reject has
// received the lines.
func (i *importer) reportRejected(ctx context.Context, lines []Reject) {
	if i.options.Reject != nil {
		for _, r := range lines {
			i.options.Reject(r.Line, r.Reason)
		}
	}
	if i.options.Journal == nil {
		return
	}
	i.options.Journal.BufferRejects(lines...)
	if err := i.options.Journal.FlushRejects(ctx); err != nil {
		slog.WarnContext(ctx, "write journal of events failed", "err", err)
	}
}

// parseBatch parses and validates the lines of a part.
func (i *importer) parseBatch(parse parse, read int64, err error) batch {
	b := batch{events: make([]schema.Event, 0, partRows), bytes: read, err: err}
	parse(func(line origin, events []fields, err error) {
		b.lines++
		before := len(b.events)
		for n := range events {
			if err == nil {
				err = i.appendEvent(&b, line.number, n, &events[n])
			}
		}
		if err != nil {
			b.events = b.events[:before]
			i.rejectLine(&b, line, events, err)
		}
	})
	return b
}

func (i *importer) rejectLine(b *batch, line origin, events []fields, err error) {
	r := Reject{Channel: ChannelImport, File: i.name, Line: line.number, Reason: err.Error()}
	if len(b.rejected) < maxRejects {
		r.Text = line.rejectText()
	}
	if len(events) > 0 {
		r.WebsiteID, _ = strconv.ParseInt(events[0].values[fieldWebsiteID], 10, 64) // 0 if missing or invalid
	}
	b.rejected = append(b.rejected, r)
}

// appendEvent validates the event of a line with the index n, and appends its rows.
func (i *importer) appendEvent(b *batch, line int64, n int, event *fields) (err error) {
	fallback := ""
	if event.values[fieldEventID] == "" {
		digest, err := i.digest()
		if err != nil {
			b.err = err
			return err
		}
		fallback = fmt.Sprintf("%x:%d:%d", digest, line, n)
	}
	b.events, err = i.rules.validate(b.events, event, fallback)
	return err
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

// openSource opens the file to import. The file must be read twice, so for anything but a regular file openSource
// returns a copy.
func (o *Options) openSource(ctx context.Context, path string) (*os.File, error) {
	if path == StandardInput {
		if o.Input == nil {
			return nil, errors.New("there is no standard input")
		}
		return spoolStream(ctx, func() (io.ReadCloser, error) { return io.NopCloser(o.Input), nil })
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
		return OpenFile(path)
	}
	return spoolStream(ctx, func() (io.ReadCloser, error) { return OpenFile(path) })
}

// spoolStream copies a stream into an unlinked temporary file. Opening or reading a pipe may block forever. So
// spoolStream returns when the context ends, even if the copying goroutine is still blocked.
func spoolStream(ctx context.Context, open func() (io.ReadCloser, error)) (*os.File, error) {
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

// Read implements io.Reader.
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
