// Package app wires the parts of Lifthouse: a store, the components that work on
// it, and the server. It is the only place where they are put together.
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

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/engine/plan"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Store is an open store with the components that work on it.
type Store struct {
	Dir       string // directory of an embedded store; empty: servers
	Conn      driver.Conn
	Catalogue *catalogue.Catalogue
	Writer    *ingest.Writer
	Journal   *ingest.Journal
	Engine    *engine.Engine
	Times     ingest.Times      // allowed times of events
	Refresher rollup.Refreshers // nil: the store has no rollups
	Manifest  *schema.Manifest  // nil: only an embedded store has one

	replicas     [][]driver.Conn // of a cluster, by shard
	marked       bool            // the file OpenMark exists
	embedded     *embedded.Engine
	learning     sync.WaitGroup
	stopLearning context.CancelFunc
}

// Options configure a store.
type Options struct {
	Fsync       bool // whether an embedded store syncs its files before it acknowledges events
	Limits      source.Limits
	Concurrency int                              // reports that query servers at the same time; 0: the driver's default
	Times       ingest.Times                     // allowed times of events
	Complain    func(format string, args ...any) // reports damage that was found and repaired
	Serves      bool                             // requests are served, so that nothing else may use all cores
}

// Open opens the store at an address and brings its tables up to date. The
// directory of an embedded store must be absolute. The error may be an
// embedded.LockedError.
func Open(ctx context.Context, address schema.Address, o Options) (*Store, error) {
	var held *embedded.Engine
	var err error
	if address.Dir != "" {
		if held, err = OpenEmbedded(ctx, address.Dir, o.Fsync, connections(o.Concurrency)); err != nil {
			return nil, err
		}
		if address.Options, err = EmbeddedOptions(ctx, held); err != nil {
			return nil, errors.Join(err, held.Close())
		}
	}
	address.SetConcurrency(o.Concurrency)
	s := &Store{Dir: address.Dir, embedded: held}
	if s.Conn, err = schema.Connect(ctx, address); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.Dir != "" {
		err = s.openEmbedded(ctx, o)
	} else {
		err = s.openShared(ctx, o, address)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openEmbedded wires a store that no other process can write to.
func (s *Store) openEmbedded(ctx context.Context, o Options) error {
	s.Manifest = schema.NewManifest(s.Conn, s.Dir, o.Fsync)
	if err := s.checkIntegrity(ctx, o.Complain); err != nil {
		return err
	}
	o.Limits.Scans = cmp.Or(o.Limits.Scans, runtime.GOMAXPROCS(0)) // the store uses the cores of this machine
	if err := s.wire(ctx, o); err != nil {
		return err
	}
	s.Catalogue.AfterWrite(func(ctx context.Context) { s.Manifest.Update(ctx, "catalogue", "audit") })
	if err := s.Writer.LoadLastAccepted(ctx); err != nil {
		return err
	}
	s.Own(s.Manifest)
	if err := s.learn(ctx, o.Serves); err != nil {
		return err
	}
	s.Refresher = rollup.NewRefreshers(s.Writer, s.Engine.Rollups)
	return nil
}

// Own declares that no other process writes to the store, whose parts a manifest lists.
func (s *Store) Own(m *schema.Manifest) {
	s.Writer.SetExclusive()
	s.Engine.SetOwn()
	s.Writer.AfterInsert(s.Engine.Inserted)
	s.Writer.SetManifest(m)
}

// openShared wires a store on servers, which other processes may write to.
func (s *Store) openShared(ctx context.Context, o Options, address schema.Address) (err error) {
	if o.Limits, err = withinProfile(ctx, s.Conn, o.Limits); err != nil {
		return err
	}
	if err := s.wire(ctx, o); err != nil {
		return err
	}
	if err := s.Writer.Share(ctx); err != nil {
		return err
	}
	possible, err := s.ShareRollups(ctx, address, o.Limits)
	if possible {
		s.Refresher = rollup.NewRefreshers(s.Writer, s.Engine.Rollups)
	}
	return err
}

// ShareRollups prepares the rollups of a store on servers, which other processes may refresh, too.
// It reports whether they are possible.
func (s *Store) ShareRollups(ctx context.Context, address schema.Address, limits source.Limits) (possible bool, err error) {
	if address.Cluster == "" {
		return s.Engine.Rollups.Share(ctx)
	}
	if s.replicas, err = schema.OpenReplicas(ctx, s.Conn, address); err != nil || s.replicas == nil {
		return false, err
	}
	s.Engine.Rollups.SetReplicas(s.replicas, limits, s.Catalogue)
	return true, nil
}

// CloseReplicas closes the connections to the replicas of a cluster.
func (s *Store) CloseReplicas() error { return schema.CloseReplicas(s.replicas) }

// On returns a store on an open connection, without checks of its integrity. The
// writer is neither exclusive nor shared yet. The caller closes the connection.
func On(ctx context.Context, conn driver.Conn, o Options) (*Store, error) {
	s := &Store{Conn: conn}
	return s, s.wire(ctx, o)
}

// wire makes the components of the store.
func (s *Store) wire(ctx context.Context, o Options) (err error) {
	if s.Catalogue, err = catalogue.Open(ctx, s.Conn); err != nil {
		return err
	}
	s.Times = o.Times
	s.Writer = ingest.NewWriter(s.Conn)
	s.Journal = ingest.NewJournal(s.Conn)
	s.Engine = engine.New(s.Conn, s.Catalogue, o.Limits)
	s.Writer.SetRollups(s.Engine.Rollups)
	s.Writer.AfterWrite(func(subjects []ingest.Subject) {
		var changed []plan.Subject
		for _, subject := range subjects {
			changed = append(changed, plan.Subject(subject))
		}
		s.Engine.Written(changed)
	})
	return nil
}

// API returns the handler of the API. It accepts events until the context ends.
func (s *Store) API(ctx context.Context, o api.Options) *api.API {
	return api.New(s.Engine, s.Catalogue, api.Intake{
		Collector: ingest.NewCollector(ctx, s.Writer, o.WaitingEvents), Deliveries: ingest.NewDeliveries(s.Conn),
		Journal: s.Journal, Times: s.Times,
	}, o)
}

// OpenEmbedded opens the engine of an embedded store after a check of its files.
// 0 connections: the engine's default.
func OpenEmbedded(ctx context.Context, dir string, fsync bool, connections int) (*embedded.Engine, error) {
	return embedded.Open(ctx, dir, embedded.Options{
		Fsync: fsync, Connections: connections, BeforeStart: func() error { return schema.CheckFiles(dir) },
	})
}

// connections returns the connections of an embedded store: one per concurrent
// report and some for everything else. 0 reports: the engine's default.
func connections(requests int) int {
	if requests <= 0 {
		return 0
	}
	return requests + schema.SpareConns
}

// checkIntegrity returns an error if stored rows are missing. It repairs what a
// killed process or a full disk left behind, and updates the manifest.
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
			complain("dropped the damaged part %s; no stored event is lost", part)
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
			complain("%v", err) // the next check cannot distinguish a full disk from a loss of power
		}
	}
	return nil
}

// bootMark is a file with the id of the boot during which the store was last
// opened. Within a boot, files have the content that was written.
const bootMark = "lifthouse.boot"

// thisBoot returns the id of the current boot of the machine, or "" if it is not
// known.
func thisBoot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// withinProfile lowers the memory limit to the maximum that the profile of the
// user on the server allows. The driver sets the time limit of each query.
func withinProfile(ctx context.Context, conn driver.Conn, limits source.Limits) (source.Limits, error) {
	most, err := schema.SettingLimit(ctx, conn, "max_memory_usage")
	if err != nil {
		return limits, err
	}
	if most > 0 && (limits.Memory == 0 || limits.Memory > most) {
		slog.WarnContext(ctx, "the profile of the ClickHouse user allows less memory than --query-memory", "bytes", most)
		limits.Memory = most
	}
	return limits, nil
}

// Owns reports whether the catalogue has the website.
func (s *Store) Owns(website int64) bool {
	_, known := s.Catalogue.Snapshot().AccountOfWebsite(website)
	return known
}

// idsFile is a file with the ids of the stored events, which a process leaves that ended
// cleanly.
const idsFile = "lifthouse.ids"

// learn reads the ids of the stored events in the background, unless the last process saved
// them. Slowly leaves most of the cores to others.
func (s *Store) learn(ctx context.Context, slowly bool) error {
	saved, err := s.Writer.UseSavedIDs(ctx, filepath.Join(s.Dir, idsFile))
	if err != nil || saved {
		return err
	}
	load := s.Writer.LoadIDs
	if slowly {
		load = s.Writer.LoadIDsSlowly
	}
	ctx, s.stopLearning = context.WithCancel(context.WithoutCancel(ctx))
	s.learning.Go(func() {
		if err := load(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "read event ids failed; each event is looked up in the store", "err", err)
		}
	})
	return nil
}

// Learned returns when the writer has read the ids of the stored events, unless the last
// process saved them.
func (s *Store) Learned() { s.learning.Wait() }

// EmbeddedOptions creates the database of an embedded store if it does not exist,
// and returns the options of a client.
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

// OpenMark is a file that exists while an embedded store is open. It remains when
// the process is killed.
const OpenMark = "lifthouse.open"

// repairAfterCrash repairs the counters if the last process was killed, unless
// they were repaired already, and marks the store as open.
func (s *Store) repairAfterCrash(ctx context.Context, repaired bool, complain func(format string, args ...any)) error {
	mark := filepath.Join(s.Dir, OpenMark)
	_, err := os.Stat(mark)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = os.WriteFile(mark, nil, 0o600)
	case err == nil && !repaired:
		complain("the last process on %s did not end cleanly; rebuilding the counters …", s.Dir)
		var changed bool
		changed, err = schema.RepairStats(ctx, s.Conn)
		if changed {
			complain("repaired the live counters")
		}
	}
	s.marked = err == nil
	return err
}

// stopWriting is the time for a running write to end when the store is closed. An
// interrupted write keeps OpenMark, so that the next start repairs the counters.
const stopWriting = time.Second

// saveIDs saves the ids of the stored events for the next process.
func (s *Store) saveIDs(ctx context.Context) {
	if err := s.Writer.SaveIDs(ctx, filepath.Join(s.Dir, idsFile)); err != nil {
		slog.WarnContext(ctx, "the next start reads all event ids", "err", err)
	}
}

// Close stops the components and closes the connection and the engine.
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
		if s.Engine != nil { // the store was opened completely
			s.Manifest.Update(ctx)
		}
		if s.Dir != "" && s.Engine != nil && quiet {
			s.saveIDs(ctx)
		}
		errs = append(errs, s.CloseReplicas(), s.Conn.Close())
	}
	if s.embedded == nil {
		return errors.Join(errs...)
	}
	mark := filepath.Join(s.Dir, OpenMark)
	if s.marked && quiet { // before another process can open the directory
		errs = append(errs, os.Remove(mark))
	}
	if err := s.embedded.Close(); err != nil {
		errs = append(errs, err, os.WriteFile(mark, nil, 0o600))
	}
	return errors.Join(errs...)
}
