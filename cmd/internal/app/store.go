// Package opened opens a store with everything that works on one, for the
// programs under cmd.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/engine/rollup"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Store is everything that works on one store.
type Store struct {
	Dir       string // of an embedded store
	Conn      driver.Conn
	Catalogue *catalogue.Catalogue
	Writer    *ingest.Writer
	Rejects   *ingest.Rejects
	Engine    *engine.Engine
	Refresher *rollup.Refresher // of an embedded store, which has no other writers
	Manifest  *schema.Manifest  // of an embedded store

	marked       bool // as open
	embedded     *embedded.Engine
	learning     sync.WaitGroup
	stopLearning context.CancelFunc
}

// Options are how a store is opened.
type Options struct {
	Fsync       bool // of an embedded store
	Limits      engine.Limits
	Concurrency int                              // requests that ask servers at the same time; 0: as the driver has it
	Complain    func(format string, args ...any) // tells the operator what was found, and made good
}

// Open opens the store at home, whose folder is absolute where it is embedded,
// and brings its tables up to date. The error may be an embedded.LockedError.
func Open(ctx context.Context, address schema.Address, options Options) (*Store, error) {
	s := &Store{Dir: address.Dir}
	var err error
	if s.Dir != "" {
		if s.embedded, err = OpenEmbedded(ctx, s.Dir, options.Fsync, connections(options.Concurrency)); err != nil {
			return nil, err
		}
		if address.Options, err = EmbeddedOptions(ctx, s.embedded); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	address.Concurrent(options.Concurrency)
	if s.Conn, err = schema.Connect(ctx, address); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.Dir != "" {
		s.Manifest = schema.NewManifest(s.Conn, s.Dir, options.Fsync)
		if err := s.checkIntegrity(ctx, options.Complain); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.wire(ctx, options.Limits); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenEmbedded opens the engine of the store in a folder, whose files are looked
// at first. 0 connections: as the engine has it.
func OpenEmbedded(ctx context.Context, dir string, fsync bool, connections int) (*embedded.Engine, error) {
	return embedded.Open(ctx, dir, embedded.Options{
		Fsync: fsync, Connections: connections, BeforeStart: func() error { return schema.CheckFiles(dir) },
	})
}

// connections are those of an embedded store: of requests, and some for the
// rest. 0 requests: as the engine has it.
func connections(requests int) int {
	if requests <= 0 {
		return 0
	}
	return requests + schema.SpareConns
}

// checkIntegrity refuses a store that lacks rows that were stored, and repairs
// what a process that was killed, or a full disk, left behind. Then the
// manifest lists what there is.
func (s *Store) checkIntegrity(ctx context.Context, complain func(format string, args ...any)) error {
	if err := s.checkDamage(ctx, complain); err != nil {
		return err
	}
	finished, err := schema.FinishRemoval(ctx, s.Conn, s.Manifest, complain)
	if err != nil {
		return err
	}
	if err := s.repairAfterCrash(ctx, finished, complain); err != nil {
		return err
	}
	s.Manifest.Update(ctx)
	return nil
}

func (s *Store) checkDamage(ctx context.Context, complain func(format string, args ...any)) error {
	boot := thisBoot()
	last, _ := os.ReadFile(filepath.Join(s.Dir, bootMark)) // none: of a new store
	err := schema.CheckDamage(ctx, s.Conn, s.Manifest)
	var damaged *schema.DamagedError
	if errors.As(err, &damaged) {
		repaired, failed := schema.RepairDamage(ctx, s.Conn, s.Manifest, damaged, boot != "" && string(last) == boot)
		for _, part := range repaired {
			complain("part %s was damaged, and is dropped: no event that was stored is lost", part)
		}
		if failed != nil {
			return failed
		}
		if len(damaged.Parts) == 0 && damaged.Manifest == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if string(last) != boot {
		if err := os.WriteFile(filepath.Join(s.Dir, bootMark), []byte(boot), 0o600); err != nil {
			complain("%v", err) // what a full disk spoils will not be told from what a loss of power does
		}
	}
	return nil
}

// bootMark is a file that says since which start of the machine the store was
// opened last: its files are as they were written.
const bootMark = "lifthouse.boot"

// thisBoot names the machine's current start; empty: it is not known.
func thisBoot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// equip makes what works on the store.
func (s *Store) wire(ctx context.Context, limits engine.Limits) error {
	var err error
	if s.Catalogue, err = catalogue.Open(ctx, s.Conn); err != nil {
		return err
	}
	s.Catalogue.AfterWrite(func(ctx context.Context) { s.Manifest.Update(ctx, "catalogue", "audit") })
	s.Writer = ingest.NewWriter(s.Conn)
	s.Rejects = ingest.NewRejects(s.Conn)
	if s.Dir != "" {
		if err := s.Writer.Resume(ctx); err != nil {
			return err
		}
		s.Writer.SetExclusive()
		s.Writer.ListParts(s.Manifest)
		s.learn(ctx)
		limits.Scans = cmp.Or(limits.Scans, runtime.GOMAXPROCS(0)) // the cores are this machine's
	} else {
		if err := s.Writer.Share(ctx); err != nil { // no lock keeps other processes from the store
			return err
		}
		if limits, err = withinProfile(ctx, s.Conn, limits); err != nil {
			return err
		}
	}
	s.Engine = engine.New(s.Conn, s.Catalogue, limits)
	if s.Dir != "" {
		s.Refresher = rollup.New(s.Conn, s.Writer, s.Engine)
		s.Engine.SetRollupRefresh(s.Refresher.RefreshSubject)
	}
	s.Writer.AfterWrite(func(ctx context.Context) {
		if err := s.Engine.RefreshVersions(ctx); err != nil {
			slog.WarnContext(ctx, "versions of the data not read", "error", err)
		}
	})
	return nil
}

// lowered are limits that the user's profile on servers allows. That of time is
// the driver's, which sends the time that a request has left.
func withinProfile(ctx context.Context, conn driver.Conn, limits engine.Limits) (engine.Limits, error) {
	most, err := schema.SettingLimit(ctx, conn, "max_memory_usage")
	if err != nil {
		return limits, err
	}
	if most > 0 && (limits.Memory == 0 || limits.Memory > most) {
		slog.WarnContext(ctx, "the user's profile allows a query less memory than --query-memory", "bytes", most)
		limits.Memory = most
	}
	return limits, nil
}

// Owns says whether the catalogue has the website.
func (s *Store) Owns(website int64) bool {
	_, known := s.Catalogue.Snapshot().AccountOfWebsite(website)
	return known
}

// learn has the writer of an embedded store, which this process holds alone,
// learn what is stored while everything else goes on.
func (s *Store) learn(ctx context.Context) {
	ctx, s.stopLearning = context.WithCancel(context.WithoutCancel(ctx))
	s.learning.Go(func() {
		if err := s.Writer.Learn(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "events are looked up one by one", "error", err)
		}
	})
}

// Learned returns when the writer has learned what it can, which takes a core
// for seconds after the start.
func (s *Store) Learned() { s.learning.Wait() }

// EmbeddedOptions are those of a client of the store's own database, which it
// makes where there is none.
func EmbeddedOptions(ctx context.Context, e *embedded.Engine) (*clickhouse.Options, error) {
	admin, err := clickhouse.Open(e.ClientOptions())
	if err != nil {
		return nil, err
	}
	if err := admin.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+schema.EmbeddedDatabase); err != nil {
		return nil, errors.Join(fmt.Errorf("create database: %w", err), admin.Close())
	}
	options := e.ClientOptions()
	options.Auth.Database = schema.EmbeddedDatabase
	return options, admin.Close()
}

// OpenMark is a file that stands while an embedded store is open, and still
// does when the process was killed.
const OpenMark = "lifthouse.open"

// repairAfterCrash makes good what a killed process may have left half done,
// and notes that the store is open. The counters may have been repaired already.
func (s *Store) repairAfterCrash(ctx context.Context, repaired bool, complain func(format string, args ...any)) error {
	mark := filepath.Join(s.Dir, OpenMark)
	_, err := os.Stat(mark)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = os.WriteFile(mark, nil, 0o600)
	case err == nil && !repaired:
		complain("the last process on %s did not end cleanly; counting its events anew …", s.Dir)
		var changed bool
		changed, err = schema.RepairStats(ctx, s.Conn)
		if changed {
			complain("the live counters were wrong and are right again")
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
func (s *Store) Close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), stopWriting)
	defer cancel()
	quiet := s.Writer == nil || s.Writer.Stop(ctx)
	if s.stopLearning != nil {
		s.stopLearning()
		s.learning.Wait()
	}
	if s.Conn != nil {
		if s.Engine != nil { // it was opened to the end
			s.Manifest.Update(ctx)
		}
		errs = append(errs, s.Conn.Close())
	}
	if s.embedded == nil {
		return errors.Join(errs...)
	}
	mark := filepath.Join(s.Dir, OpenMark)
	if s.marked && quiet { // before the folder is free for another process
		errs = append(errs, os.Remove(mark))
	}
	if err := s.embedded.Close(); err != nil {
		errs = append(errs, err, os.WriteFile(mark, nil, 0o600))
	}
	return errors.Join(errs...)
}
