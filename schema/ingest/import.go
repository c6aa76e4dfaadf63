package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"lifthouse/schema"
)

// batchSize is how many rows are written with one insert: large enough that a
// part costs little per row, small enough to report progress and hold few rows
// in memory.
const batchSize = 50_000

// Options of an import.
type Options struct {
	Format  string    // csv, ndjson or parquet; empty: the mapping's, else by the file's name
	Mapping *Mapping  // nil: the file is in our own fields
	Dir     string    // where the mapping's look-up files are
	Input   io.Reader // what the path - means
	// Owns says whether events of the website may come in; nil takes every one.
	Owns func(websiteID int64) bool
	// DryRun stores nothing: Inserted then counts the rows that are right.
	DryRun bool
	// MaxErrors is how many rejected lines end the import; 0: none do.
	MaxErrors int64
	// Progress, if set, is called after every batch.
	Progress func(Report)
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
	i := importer{options: o, first: true}
	err = i.file(ctx, w, path, file)
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
	if i.digest, err = contentDigest(ctx, file); err != nil {
		return err
	}
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
	read    *contextReader
	lines   lines
	digest  uint64
	first   bool // the next batch is the first
	report  Report
}

// batch is what the reading side hands to the writing side.
type batch struct {
	events   []schema.Event
	lines    int64
	rejected []rejected
	bytes    int64 // of the file, read until then
	err      error // the file cannot be read on
}

type rejected struct {
	line   int64
	reason string
}

// run reads and checks lines while the batch before them is being written.
func (i *importer) run(ctx context.Context, w *Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan batch, 1)
	go i.readAll(ctx, batches)
	for b := range batches {
		for _, r := range b.rejected {
			if i.options.Reject != nil {
				i.options.Reject(r.line, r.reason)
			}
		}
		if i.tooMany(b) {
			return fmt.Errorf("%w: %d lines", ErrTooManyRejected, i.report.Rejected+int64(len(b.rejected)))
		}
		outcome, err := i.write(ctx, w, b.events)
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
		if b.err != nil {
			return b.err
		}
	}
	return ctx.Err()
}

// tooMany says whether the batch's rejected lines end the import: then nothing
// of the batch is stored.
func (i *importer) tooMany(b batch) bool {
	most := i.options.MaxErrors
	return most > 0 && i.report.Rejected+int64(len(b.rejected)) >= most
}

func (i *importer) write(ctx context.Context, w *Writer, events []schema.Event) (Outcome, error) {
	if i.options.DryRun {
		return Outcome{Inserted: len(events)}, nil
	}
	return w.Write(ctx, events)
}

func (i *importer) readAll(ctx context.Context, batches chan<- batch) {
	defer close(batches)
	for {
		b := i.batch(ctx)
		ended := errors.Is(b.err, io.EOF)
		if ended {
			b.err = nil
		}
		failed := b.err != nil
		select {
		case batches <- b:
		case <-ctx.Done():
			return
		}
		if ended || failed {
			return
		}
	}
}

// batch reads lines until there are enough events or the file ends.
func (i *importer) batch(ctx context.Context) batch {
	b := batch{events: make([]schema.Event, 0, batchSize+100)}
	for len(b.events)+len(b.rejected) < batchSize && b.err == nil && ctx.Err() == nil {
		number, events, err := i.lines.next()
		var bad lineError
		switch {
		case errors.As(err, &bad):
			b.lines++
			b.rejected = append(b.rejected, rejected{number, bad.Error()})
		case err != nil:
			b.err = err
		default:
			b.lines++
			rows, err := i.rows(number, events)
			if err != nil {
				b.rejected = append(b.rejected, rejected{number, err.Error()})
			}
			b.events = append(b.events, rows...)
		}
	}
	b.bytes = i.read.n.Load()
	if i.first {
		i.first = false
		if err := i.lines.absent(); err != nil {
			return batch{err: err}
		}
	}
	return b
}

// rows checks all events of a line; one that is wrong rejects the line.
func (i *importer) rows(line int64, events []fields) ([]schema.Event, error) {
	var rows []schema.Event
	for at := range events {
		built, err := build(&events[at], fmt.Sprintf("%x:%d:%d", i.digest, line, at))
		if err != nil {
			return nil, err
		}
		if owns := i.options.Owns; owns != nil && !owns(built[0].WebsiteID) {
			return nil, fmt.Errorf("unknown_website: websiteId %d is in no catalogue; apply one first", built[0].WebsiteID)
		}
		rows = append(rows, built...)
	}
	return rows, nil
}
