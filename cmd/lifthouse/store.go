package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// store is everything that works on one store.
type store struct {
	dir       string // of an embedded store
	marked    bool   // as open
	embedded  *embedded.Engine
	conn      driver.Conn
	catalogue *catalogue.Catalogue
	writer    *ingest.Writer
	times     ingest.Times // that events may have
	rejects   *ingest.Rejects
	engine    *engine.Engine

	learning     sync.WaitGroup
	stopLearning context.CancelFunc
}

// openStore opens a store and brings its tables up to date.
func (p *program) openStore(ctx context.Context) (*store, error) {
	home, err := schema.ParseHome(p.address)
	if err != nil {
		return nil, usageError{err}
	}
	s := &store{times: p.serving.times}
	options := home.Options
	if home.Dir != "" {
		s.dir = p.path(home.Dir)
		if s.embedded, err = embedded.Open(ctx, s.dir, embedded.Options{Fsync: p.fsync}); err != nil {
			return nil, err
		}
		if options, err = embeddedOptions(ctx, s.embedded); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.conn, err = schema.Connect(ctx, options); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.dir != "" {
		if err := schema.Undamaged(ctx, s.conn); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if err := p.repairAfterCrash(ctx, s); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.catalogue, err = catalogue.Open(ctx, s.conn); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.writer = ingest.NewWriter(s.conn)
	s.rejects = ingest.NewRejects(s.conn)
	if s.dir != "" {
		s.writer.Alone()
		s.learn(ctx)
	} else if err := s.writer.Share(ctx); err != nil { // no lock keeps other processes from the store
		return nil, errors.Join(err, s.Close())
	}
	s.engine = engine.New(s.conn, s.catalogue, p.limits)
	s.writer.AfterWrite(func(ctx context.Context) {
		if err := s.engine.RefreshVersions(ctx); err != nil {
			slog.WarnContext(ctx, "versions of the data not read", "error", err)
		}
	})
	return s, nil
}

// owns says whether the catalogue has the website.
func (s *store) owns(website int64) bool {
	_, known := s.catalogue.Snapshot().AccountOfWebsite(website)
	return known
}

// learn has the writer of an embedded store, which this process holds alone,
// learn what is stored while everything else goes on.
func (s *store) learn(ctx context.Context) {
	ctx, s.stopLearning = context.WithCancel(context.WithoutCancel(ctx))
	s.learning.Go(func() {
		if err := s.writer.Learn(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "events are looked up one by one", "error", err)
		}
	})
}

// embeddedDatabase holds the tables of an embedded store. The engine's default
// database would look for a table that it does not have as a file.
const embeddedDatabase = "lifthouse"

func embeddedOptions(ctx context.Context, e *embedded.Engine) (*clickhouse.Options, error) {
	admin, err := clickhouse.Open(e.ClientOptions())
	if err != nil {
		return nil, err
	}
	if err := admin.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+embeddedDatabase); err != nil {
		return nil, errors.Join(fmt.Errorf("create database: %w", err), admin.Close())
	}
	options := e.ClientOptions()
	options.Auth.Database = embeddedDatabase
	return options, admin.Close()
}

// openMark is a file that stands while an embedded store is open, and still
// does when the process was killed.
const openMark = "lifthouse.open"

// repairAfterCrash makes good what a killed process may have left half done,
// and notes that the store is open.
func (p *program) repairAfterCrash(ctx context.Context, s *store) error {
	mark := filepath.Join(s.dir, openMark)
	_, err := os.Stat(mark)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = os.WriteFile(mark, nil, 0o600)
	case err == nil:
		p.complain("the last process on %s did not end cleanly; counting its events anew …", s.dir)
		var changed bool
		changed, err = schema.RepairStats(ctx, s.conn)
		if changed {
			p.complain("the live counters were wrong and are right again")
		}
	}
	s.marked = err == nil
	return err
}

// stopWriting is how long a write that is under way may take to end when the
// store is closed. One that is cut off leaves the mark, so that the next start
// makes good what it left half done.
const stopWriting = time.Second

// Close ends the connection and the engine.
func (s *store) Close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), stopWriting)
	defer cancel()
	quiet := s.writer == nil || s.writer.Stop(ctx)
	if s.stopLearning != nil {
		s.stopLearning()
		s.learning.Wait()
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.embedded == nil {
		return errors.Join(errs...)
	}
	mark := filepath.Join(s.dir, openMark)
	if s.marked && quiet { // before the folder is free for another process
		errs = append(errs, os.Remove(mark))
	}
	if err := s.embedded.Close(); err != nil {
		errs = append(errs, err, os.WriteFile(mark, nil, 0o600))
	}
	return errors.Join(errs...)
}

// withStore is withStoreMade for what makes no sense on a store that is not
// there, such as one whose folder is misspelt.
func (p *program) withStore(ctx context.Context, work func(context.Context, *store) error) error {
	if home, err := schema.ParseHome(p.address); err == nil && home.Dir != "" && p.running == nil && isEmpty(p.path(home.Dir)) {
		return fmt.Errorf("there is no store at %s: is --store right? lifthouse apply makes one, and serve", p.path(home.Dir))
	}
	return p.withStoreMade(ctx, work)
}

// isEmpty says whether nothing is in a folder, or there is none.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// withStoreMade carries out a command's work on the store: this process's own, or
// if another process holds it, that process does the whole command.
func (p *program) withStoreMade(ctx context.Context, work func(context.Context, *store) error) error {
	if p.running != nil {
		return work(ctx, p.running)
	}
	s, err := p.openStore(ctx)
	var locked *embedded.LockedError
	if errors.As(err, &locked) {
		code, delegateErr := p.delegate(ctx, filepath.Join(locked.Dir, socketName))
		if delegateErr != nil {
			return fmt.Errorf("%w (and it takes no commands: %w)", err, delegateErr)
		}
		if code != exitOK {
			return &exitError{code}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, s), s.Close())
}
