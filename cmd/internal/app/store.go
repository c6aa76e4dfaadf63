// Package app wires the parts of Lifthouse together: a store, the components that work on it, and the server. No other
// package does this.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lifthouse/api"
	"lifthouse/api/mcp"
	"lifthouse/engine"
	money "lifthouse/engine/books"
	"lifthouse/engine/embedded"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/looks"
	"lifthouse/engine/readout"
	"lifthouse/engine/source"
	"lifthouse/engine/tables"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/books"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/ingest"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
	"lifthouse/schema/secrets"

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
	Outbox    *outbox.Outbox
	Notes     *notes.Notes
	Books     *books.Books // the rates of the accounts
	Documents *documents.Documents
	Summaries *watch.Summaries
	Facts     facts.Shards
	Times     ingest.Times // allowed times of events
	Secrets   *secrets.Folder

	replicas [][]driver.Conn // of a cluster, by shard
	embedded *embedded.Engine
	api      *api.API // of the running server; nil: not served
}

// Options configure a store.
type Options struct {
	Fsync       bool // whether an embedded store syncs its files before it acknowledges events
	Limits      source.Limits
	Concurrency int          // maximum number of concurrent reports on servers; 0: the driver's default
	Times       ingest.Times // allowed times of events
	// number of distinct events of a website above which a visitor is automated; 0: fold.MaxVisitorEvents
	MaxVisitorEvents int
	// folder of the files with secrets of sources and keys of webhooks; empty: no file may be named
	SecretFolder string
	UnreadFacts  bool // do not read the facts: they may be damaged and are about to be rebuilt
}

// OpenStore opens the store at an address and brings its tables up to date. The directory of an embedded store must be
// absolute. The error may be an embedded.LockedError.
func OpenStore(ctx context.Context, address schema.Address, o Options) (*Store, error) {
	s, err := openConnected(ctx, address, o, schema.OpenMigrated)
	if err != nil {
		return nil, err
	}
	err = s.createComponents(ctx, address, o)
	if err == nil {
		err = s.Writer.SetClock(ctx, s.Facts.FoldedThrough())
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openConnected opens the engine of an embedded store, and connects to a store with open.
func openConnected(
	ctx context.Context, address schema.Address, o Options,
	open func(context.Context, schema.Address) (driver.Conn, error),
) (s *Store, err error) {
	s = &Store{Dir: address.Dir}
	if s.Dir != "" {
		connections := 0 // the engine's default
		if o.Concurrency > 0 {
			connections = o.Concurrency + schema.SpareConns
		}
		s.embedded, address.Options, err = OpenEmbedded(ctx, s.Dir, o.Fsync, connections)
		if err != nil {
			return nil, err
		}
	}
	address.SetConcurrency(o.Concurrency)
	s.Conn, err = open(ctx, address)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// NewStore returns a store on an open connection to an address. The caller closes the connection and the replicas.
func NewStore(ctx context.Context, conn driver.Conn, address schema.Address, o Options) (*Store, error) {
	s := &Store{Conn: conn}
	return s, s.createComponents(ctx, address, o)
}

// CloseReplicas closes the connections to the replicas of a cluster.
func (s *Store) CloseReplicas() error { return schema.CloseReplicas(s.replicas) }

func (s *Store) createComponents(ctx context.Context, address schema.Address, o Options) (err error) {
	if s.Dir == "" { // the profile of the user may allow less memory; the driver sets the time limit of each query
		most, err := schema.SettingLimit(ctx, s.Conn, "max_memory_usage")
		if err != nil {
			return err
		}
		if most > 0 && (o.Limits.Memory == 0 || o.Limits.Memory > most) {
			slog.WarnContext(ctx, "the profile of the ClickHouse user allows less memory than --query-memory",
				"bytes", most)
			o.Limits.Memory = most
		}
	}
	s.Catalogue, err = catalogue.Open(ctx, s.Conn)
	if err != nil {
		return err
	}
	// The facts of the store's only server, or of each shard.
	if address.Cluster == "" {
		s.Facts = facts.Shards{facts.NewRefresher(s.Conn, s.Dir != "")}
	} else {
		s.replicas, err = schema.OpenReplicas(ctx, s.Conn, address)
		if err != nil {
			return err
		}
		if s.replicas == nil {
			return errors.New("a cluster needs the native protocol: use an address clickhouse://… with cluster=NAME")
		}
		for _, replicas := range s.replicas {
			s.Facts = append(s.Facts, facts.NewShardRefresher(replicas))
		}
	}
	for _, shard := range s.Facts {
		shard.MaxVisitorEvents = cmp.Or(o.MaxVisitorEvents, shard.MaxVisitorEvents)
		shard.SetMoney(func() map[int64]money.Declaration { return s.Catalogue.Snapshot().Money() })
	}
	s.Times = o.Times
	s.Secrets = secrets.NewFolder(o.SecretFolder)
	s.Engine = engine.New(s.Conn, s.Catalogue, o.Limits, s.Facts)
	if err := s.Engine.ReadDaily(ctx); err != nil {
		slog.WarnContext(ctx, "reports lack interactions of campaigns until they are measured", "err", err)
	}
	s.Outbox = outbox.New(s.Conn)
	s.Notes = notes.New(s.Conn)
	s.Books = books.New(s.Conn)
	s.Documents = documents.New(s.Conn)
	s.Summaries = watch.NewSummaries(s.Engine, s.Catalogue)
	s.Writer = ingest.NewWriter(s.Conn, s.Facts)
	s.Writer.SetNameOptions(ingest.NameOptions{
		IsDeclared:  func(name schema.NamedID) bool { return s.Catalogue.Snapshot().Declares(name) },
		CountEvents: s.Facts.EventsByName,
		SaltOf: func(website int64) ([]byte, error) {
			return s.Catalogue.KeepSalt(context.WithoutCancel(ctx), website)
		},
	})
	s.Journal = ingest.NewJournal(s.Conn)
	if s.Dir != "" { // no other process writes to the store
		s.Writer.AfterInsert(s.Facts[0].NoteEvents)
	}
	if o.UnreadFacts {
		return nil
	}
	return s.Facts.OpenFacts(ctx)
}

// Tables returns the reader of the tables and of the log.
func (s *Store) Tables() tables.Reader {
	return tables.Reader{
		Engine: s.Engine, Summaries: s.Summaries, Catalogue: s.Catalogue, Outbox: s.Outbox, Notes: s.Notes,
		Documents: s.Documents,
	}
}

// Readouts returns the maker of readouts.
func (s *Store) Readouts(release, publicURL string) *readout.Maker {
	return &readout.Maker{Reader: s.Tables(), Release: release, PublicURL: publicURL}
}

// API returns the handler of the API. It accepts events until the context ends.
func (s *Store) API(ctx context.Context, o api.Options) *api.API {
	s.api = api.New(api.Parts{
		Engine: s.Engine, Catalogue: s.Catalogue, Summaries: s.Summaries, Outbox: s.Outbox,
		Notes: s.Notes, Books: s.Books, Documents: s.Documents, Journal: s.Journal,
		Collector: ingest.NewCollector(ctx, s.Writer, o.WaitingEvents),
		Times:     s.Times, Secrets: s.Secrets,
	}, o)
	s.api.ExportFacts(s.Facts)
	return s.api
}

// Sources returns the sources of an account, with what arrived from each since the server started; without a running
// server, nothing did.
func (s *Store) Sources(ctx context.Context, account int64) (api.Sources, error) {
	countsOf := func(*catalogue.Token) api.SourceCounts { return api.SourceCounts{} }
	if s.api != nil {
		countsOf = s.api.CountsOf
	}
	names, err := s.Writer.Names(ctx)
	if err != nil {
		return api.Sources{}, err
	}
	list := api.NewSources(s.Catalogue.Snapshot().AccountTokens(account), countsOf, names.CountNames())
	if err := list.WarnOfUnseen(ctx, s.Engine); err != nil {
		return list, err
	}
	owned := s.Catalogue.Snapshot().AccountResources(account)
	return list, list.AddOrderChanges(ctx, s.Engine, owned, list.Websites())
}

// MCP returns the server of the Model Context Protocol: that of the running API, or else of a new one with the options.
func (s *Store) MCP(ctx context.Context, o api.Options) *mcp.Server {
	if s.api == nil {
		return s.API(ctx, o).MCP()
	}
	return s.api.MCP()
}

// OpenEmbedded checks the files of an embedded store, opens its engine, and creates the database if it does not exist.
// It returns the options of a client. If connections is 0, the engine's default applies.
func OpenEmbedded(
	ctx context.Context, dir string, fsync bool, connections int,
) (*embedded.Engine, *clickhouse.Options, error) {
	e, err := embedded.Open(ctx, dir, embedded.Options{
		Fsync: fsync, Connections: connections, BeforeStart: func() error { return schema.CheckFiles(dir) },
	})
	if err != nil {
		return nil, nil, err
	}
	admin, err := clickhouse.Open(e.ClientOptions())
	if err == nil {
		err = admin.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+schema.EmbeddedDatabase)
		err = errors.Join(err, admin.Close())
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("create database: %w", err), e.Close())
	}
	options := e.ClientOptions()
	options.Auth.Database = schema.EmbeddedDatabase
	return e, options, nil
}

// HasWebsite reports whether the catalogue has the website.
func (s *Store) HasWebsite(website int64) bool {
	_, known := s.Catalogue.Snapshot().AccountOfWebsite(website)
	return known
}

// Close stops the writer and closes the connection and the engine.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.Writer != nil {
		s.Writer.StopWrites(ctx)
	}
	var errs []error
	if s.Conn != nil {
		errs = append(errs, s.CloseReplicas(), s.Conn.Close())
	}
	if s.embedded != nil {
		errs = append(errs, s.embedded.Close())
	}
	return errors.Join(errs...)
}

// Copied is the result of CopyFrom.
type Copied struct {
	Catalogue int // rows
	Looks     int // rows
	Messages  int
	Notes     int
	Documents int
	Rates     int
	Events    uint64 // rows
}

// CopyFrom adds the catalogue, the recorded looks, the messages to webhooks, the notes, the documents, the rates, the
// interactions and the events of another store. It only reads the other store. progress is called after each insert of
// events.
func (s *Store) CopyFrom(
	ctx context.Context, from schema.Address, progress func(done, total uint64),
) (copied Copied, err error) {
	other, err := openConnected(ctx, from, Options{}, schema.OpenConnection)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	conn := other.Conn
	if err := schema.CheckTableForm(ctx, conn); err != nil {
		return copied, err
	}
	pending, err := schema.PendingMigrations(ctx, conn)
	if err == nil && len(pending) > 0 {
		err = fmt.Errorf("the store to copy has pending migrations: %s: run lifthouse migrate on it first",
			strings.Join(pending, ", "))
	}
	if err != nil {
		return copied, err
	}
	copied.Catalogue, err = s.Catalogue.CopyFrom(ctx, conn)
	if err != nil {
		return copied, err
	}
	copied.Looks, err = looks.CopyRecords(ctx, s.Conn, conn)
	if err != nil {
		return copied, err
	}
	var accounts []int64
	for _, owned := range s.Catalogue.Snapshot().AllAccounts() {
		accounts = append(accounts, owned.ID)
	}
	copied.Messages, err = s.Outbox.CopyFrom(ctx, conn, accounts)
	if err != nil {
		return copied, err
	}
	copied.Notes, err = s.Notes.CopyFrom(ctx, conn, accounts)
	if err != nil {
		return copied, err
	}
	copied.Rates, err = s.Books.CopyFrom(ctx, conn, accounts)
	if err != nil {
		return copied, err
	}
	s.Facts.NoteRates()
	copied.Documents, err = s.Documents.CopyFrom(ctx, conn, accounts)
	if err != nil {
		return copied, err
	}
	if err := s.Engine.Daily.CopyMeasured(ctx, conn); err != nil {
		return copied, err
	}
	copied.Events, err = ingest.CopyEvents(ctx, s.Writer, conn, progress)
	return copied, err
}

// RestoreBackup creates an embedded store in a new directory from a backup.
func RestoreBackup(ctx context.Context, dir, from string) (err error) {
	if _, err := os.Stat(filepath.Join(from, "metadata")); err != nil {
		return fmt.Errorf("restore: %s is not a backup: %w", from, err)
	}
	s, err := openConnected(ctx, schema.Address{Dir: dir}, Options{}, schema.OpenConnection)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := schema.RestoreBackup(ctx, s.Conn, from); err != nil {
		return err
	}
	if _, err := schema.Migrate(ctx, s.Conn); err != nil {
		return fmt.Errorf("migrate the restored tables: %w", err)
	}
	return nil
}

// Expired is a campaign or widget whose retention period is over, with its number of events. One that was never
// declared ended when its latest event was accepted.
type Expired struct {
	catalogue.Ended
	Undeclared bool
	Events     uint64
}

// ExpiredSubjects returns the subjects that ended at least the given number of days ago and still have events, or facts
// if a deletion was interrupted. It reads the catalogue first, because another server may just have restarted or
// declared a subject.
func (s *Store) ExpiredSubjects(ctx context.Context, days int, now time.Time) ([]Expired, error) {
	if err := s.Catalogue.RefreshSnapshot(ctx); err != nil {
		return nil, err
	}
	declared := s.Catalogue.Snapshot()
	since := now.AddDate(0, 0, -days)
	var ended []Expired
	for _, e := range declared.EndedSubjects(since) {
		if !e.FollowedUntil.After(now) {
			ended = append(ended, Expired{Ended: e})
		}
	}
	names, err := s.Writer.Names(ctx)
	if err != nil {
		return nil, err
	}
	undeclared, folded := s.undeclaredSubjects(declared, names)
	ended = append(ended, undeclared...)
	if len(ended) == 0 {
		return nil, nil
	}
	subjects := make([]schema.Subject, len(ended))
	for i := range ended {
		subjects[i] = ended[i].Subject
	}
	counts, err := s.Writer.CountSubjects(ctx, subjects)
	if err != nil {
		return nil, err
	}
	var found []Expired
	for _, e := range ended {
		stored, has := counts[e.Subject]
		if e.Undeclared && stored.Accepted.After(e.EndDate) { // events of the past that were just imported
			e.EndDate = stored.Accepted
		}
		e.Events = stored.Events
		hasData := has || folded[e.Subject]
		if hasData && !e.EndDate.After(since) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b Expired) int { return a.Compare(b.Subject) })
	return found, nil
}

// undeclaredSubjects returns the subjects with facts that were never declared, and which subjects have facts.
func (s *Store) undeclaredSubjects(
	declared *catalogue.Snapshot, names *ingest.Names,
) (undeclared []Expired, folded map[schema.Subject]bool) {
	folded = map[schema.Subject]bool{}
	for of := range s.Facts.StoredSubjects() {
		subject := of.WithoutExperiment()
		isNew := !folded[subject] && subject.Kind != schema.SubjectNone
		folded[subject] = true
		if !isNew || declared.WasDeclared(subject) {
			continue
		}
		name := names.KeyOf(schema.NamedID{
			WebsiteID: subject.WebsiteID, Kind: schema.NameCampaign, ID: subject.ID,
		})
		newest := fold.TimeOf(s.Facts.SubjectCounters(of).Newest)
		undeclared = append(undeclared, Expired{
			Ended: catalogue.Ended{Subject: subject, Name: name, EndDate: newest}, Undeclared: true,
		})
	}
	return undeclared, folded
}

// EraseSubjects deletes the events of the subjects.
func (s *Store) EraseSubjects(ctx context.Context, found []Expired) error {
	subjects := make([]schema.Subject, len(found))
	for i := range found {
		subjects[i] = found[i].Subject
	}
	if err := s.Writer.DropSubjects(ctx, subjects); err != nil {
		return err
	}
	websites := map[int64]bool{}
	for _, subject := range subjects {
		websites[subject.WebsiteID] = true
	}
	err := s.Catalogue.RecordFactsChange(ctx, catalogue.EventsDeleted, slices.Sorted(maps.Keys(websites))...)
	if err != nil {
		return err
	}
	if err := s.Engine.DropSubjects(ctx, subjects); err != nil {
		return err
	}
	var names []schema.NamedID
	for i := range found {
		if found[i].Undeclared {
			names = append(names, schema.NamedID{
				WebsiteID: found[i].WebsiteID, Kind: schema.NameCampaign, ID: found[i].ID,
			})
		}
	}
	if len(names) == 0 {
		return nil
	}
	return s.Writer.RemoveNames(ctx, names)
}
