package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"lifthouse/schema"
)

// batchSize is how many rows are written with one insert: large enough that a
// part costs little per row, small enough to report progress and hold few rows
// in memory.
const batchSize = 100_000

// batchesAhead is how many batches wait to be written: the store merges from
// time to time, and parsing goes on meanwhile.
const batchesAhead = 1

// Options of an import.
type Options struct {
	Format  string    // csv, ndjson or parquet; empty: the mapping's, else by the file's name
	Mapping *Mapping  // nil: the file is in our own fields
	Dir     string    // where the mapping's look-up files are
	Input   io.Reader // what the path - means
	Times   Times     // that are taken
	// Owns says whether events of the website may come in; nil takes every one.
	Owns func(websiteID int64) bool
	// DryRun stores nothing: Inserted then counts the rows that are right.
	DryRun bool
	// MaxErrors is how many rejected lines end the import; 0: none do.
	MaxErrors int64
	// Progress, if set, is called after every batch.
	Progress func(Report)
	// Rejects, if set, keeps the first lines of each batch that are not taken.
	Rejects *Rejects
	// Reject, if set, is called for every line that is not taken.
	Reject func(line int64, reason string)
}

// Report is how far an import came.
type Report struct {
	Outcome
	Lines      int64 // with events in them
	Rejected   int64 // lines not taken
	Bytes      int64 // of the file read, as it is on disk
	TotalBytes int64
}

// ErrTooManyRejected ends an import: it is likely the wrong file, or mapping.
var ErrTooManyRejected = errors.New("too many lines are rejected")

// Import writes the events of a file, or with the path - those of
// Options.Input. A line that is wrong in anything is left out whole and
// reported; the others are written.
//
// An event without an id gets one from the file's content, as it is without
// compression, and its line. So importing the same file again changes nothing,
// and an import that was cut off is resumed by repeating it; but a file that
// was changed or appended to is a new file: give eventId where files grow.
func Import(ctx context.Context, w *Writer, path string, o Options) (Report, error) {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }()
	i := importer{options: o, name: filepath.Base(path), first: true}
	err = i.file(ctx, w, path, file)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file is cut short: %w", err)
	}
	switch {
	case err == nil:
		return i.report, nil
	case i.report.Inserted > 0:
		return i.report, fmt.Errorf("%s: %w (%d rows were stored before)", path, err, i.report.Inserted)
	}
	return i.report, fmt.Errorf("%s: %w", path, err)
}

func (i *importer) file(ctx context.Context, w *Writer, path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	i.report.TotalBytes = info.Size()
	i.digest = sync.OnceValues(func() (uint64, error) {
		return contentDigest(ctx, io.NewSectionReader(file, 0, info.Size()))
	})
	i.read = &contextReader{ctx: ctx, r: file}
	if i.lines, err = i.options.open(ctx, path, file, i.read); err != nil {
		return err
	}
	return i.run(ctx, w)
}

// open chooses the reader of a file, which is at its start; counted reads the
// same file.
func (o *Options) open(ctx context.Context, path string, file *os.File, counted *contextReader) (lines, error) {
	kind := o.Format
	if kind == "" && o.Mapping != nil {
		kind = o.Mapping.Format
	}
	if kind == "" {
		kind = formatOf(path)
	}
	compiled, err := o.mapper()
	if err != nil {
		return nil, err
	}
	if kind == formatParquet {
		return newParquetLines(ctx, file, counted, compiled)
	}
	return openLines(counted, kind, o.Mapping, compiled)
}

// mapper is nil where there is no mapping.
func (o *Options) mapper() (*mapper, error) {
	if o.Mapping == nil {
		return nil, nil
	}
	return newMapper(o.Mapping, func(name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		return Open(name)
	})
}

type importer struct {
	options Options
	name    string // of the file
	read    *contextReader
	lines   lines
	digest  func() (uint64, error) // of the file's content
	first   bool                   // nothing is written yet
	report  Report
	parsed  sync.Pool // of *[]schema.Event: of parts
}

// batch is what becomes of some lines.
type batch struct {
	events   []schema.Event
	repeats  []Verdict // on those events, of what is stored nothing known
	lines    int64
	rejected []rejected
	bytes    int64 // of the file, read until their end
	err      error // the file cannot be read on; io.EOF: it has ended
}

type rejected struct {
	line    int64
	reason  string
	text    string // of the first ones: its beginning
	website int64
}

func (b *batch) full() bool { return len(b.events)+len(b.rejected) >= batchSize }

func (b *batch) append(o batch) {
	b.events = append(b.events, o.events...)
	b.rejected = append(b.rejected, o.rejected...)
	b.lines += o.lines
	b.bytes, b.err = o.bytes, o.err
}

// run reads lines, parses them in parallel, and writes their events in the
// order of the file, all at the same time.
func (i *importer) run(ctx context.Context, w *Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan chan batch, runtime.GOMAXPROCS(0))
	go i.readAll(ctx, parts)
	batches, written := make(chan batch, batchesAhead), make(chan []schema.Event, 1)
	go i.gather(ctx, parts, batches, written)
	for b := range batches {
		if err := i.take(ctx, w, b); err != nil {
			return err
		}
		select {
		case written <- b.events[:0]:
		default:
		}
	}
	return ctx.Err()
}

// readAll reads the file and has its parts parsed, as many at once as the
// channel holds.
func (i *importer) readAll(ctx context.Context, parts chan<- chan batch) {
	defer close(parts)
	for {
		parse, err := i.lines.part()
		read := i.read.n.Load()
		part := make(chan batch, 1)
		select {
		case parts <- part:
		case <-ctx.Done():
			return
		}
		go func() { part <- i.batch(parse, read, err) }()
		if err != nil {
			return
		}
	}
}

// gather makes batches to write of parts in their order, while those
// before are being written. The room of written ones it uses again.
func (i *importer) gather(ctx context.Context, parts <-chan chan batch, batches chan<- batch, written <-chan []schema.Event) {
	defer close(batches)
	var pending batch
	for part := range parts {
		next := <-part
		pending.append(next)
		next.events = next.events[:0]
		i.parsed.Put(&next.events)
		if pending.full() || pending.err != nil {
			pending.repeats = judgeRepeats(pending.events)
			select {
			case batches <- pending:
			case <-ctx.Done():
				return
			}
			select {
			case room := <-written:
				pending = batch{events: room}
			default:
				pending = batch{events: make([]schema.Event, 0, batchSize+batchSize/8)}
			}
		}
	}
}

// take writes a batch and counts it in.
func (i *importer) take(ctx context.Context, w *Writer, b batch) error {
	if i.first {
		i.first = false
		if err := i.lines.absent(); err != nil {
			return err
		}
	}
	i.reportRejected(ctx, b.rejected)
	if i.tooMany(b) {
		return fmt.Errorf("%w: %d lines", ErrTooManyRejected, i.report.Rejected+int64(len(b.rejected)))
	}
	outcome, err := i.write(ctx, w, &b)
	if err != nil {
		return err
	}
	i.report.Add(outcome)
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

// tell tells of lines that are not taken.
func (i *importer) reportRejected(ctx context.Context, lines []rejected) {
	keep := i.options.Rejects
	for n, r := range lines {
		if i.options.Reject != nil {
			i.options.Reject(r.line, r.reason)
		}
		if keep != nil && !i.options.DryRun && n < maxRejects {
			keep.Keep(Reject{WebsiteID: r.website, Way: WayImport, File: i.name, Line: r.line, Reason: r.reason, Text: r.text})
		}
	}
	if keep == nil {
		return
	}
	if err := keep.Write(ctx); err != nil { // they have been told: nothing is lost
		slog.WarnContext(ctx, "rejected lines are not kept", "error", err)
	}
}

// tooMany says whether the batch's rejected lines end the import: then nothing
// of the batch is stored.
func (i *importer) tooMany(b batch) bool {
	most := i.options.MaxErrors
	return most > 0 && i.report.Rejected+int64(len(b.rejected)) >= most
}

func (i *importer) write(ctx context.Context, w *Writer, b *batch) (Outcome, error) {
	if i.options.DryRun {
		return Outcome{Inserted: len(b.events)}, nil
	}
	return w.write(ctx, b.events, b.repeats)
}

// batch parses and checks the lines of a part.
func (i *importer) batch(parse parse, read int64, err error) batch {
	b := batch{bytes: read, err: err}
	if room, known := i.parsed.Get().(*[]schema.Event); known {
		b.events = *room
	} else {
		b.events = make([]schema.Event, 0, partRows)
	}
	parse(func(line origin, events []fields, err error) {
		b.lines++
		before := len(b.events)
		for at := range events {
			if err == nil {
				err = i.event(&b, line.number, at, &events[at])
			}
		}
		if err != nil {
			b.events = b.events[:before]
			b.reject(line, events, err)
		}
	})
	return b
}

func (b *batch) reject(line origin, events []fields, err error) {
	r := rejected{line: line.number, reason: err.Error()}
	if len(b.rejected) < maxRejects {
		r.text = line.beginning()
	}
	if len(events) > 0 {
		r.website, _ = strconv.ParseInt(events[0].values[fieldWebsiteID], 10, 64) // 0: it says none
	}
	b.rejected = append(b.rejected, r)
}

// event appends the rows of an event, which is one of its line's.
func (i *importer) event(b *batch, line int64, at int, event *fields) error {
	fallback := ""
	if event.values[fieldEventID] == "" {
		digest, err := i.digest()
		if err != nil {
			b.err = err
			return err
		}
		fallback = fmt.Sprintf("%x:%d:%d", digest, line, at)
	}
	before := len(b.events)
	rows, err := build(b.events, event, fallback, i.options.Times)
	if err != nil {
		return err
	}
	if owns := i.options.Owns; owns != nil && !owns(rows[before].WebsiteID) {
		return fmt.Errorf("unknown_website: websiteId %d is in no catalogue; apply one first", rows[before].WebsiteID)
	}
	b.events = rows
	return nil
}
