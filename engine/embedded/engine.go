// Package embedded runs ClickHouse inside the process and connects clickhouse-go to it. The rest of the program uses
// one driver and one SQL dialect, whether its data is in a folder, on a server or on a cluster.
//
// # How a statement is run
//
//  1. clickhouse-go makes an HTTP request. [Engine.ClientOptions] sets a
//     transport that replaces the network.
//  2. The transport reads the statement, its settings, its parameters and its
//     current database from the request (request).
//  3. The statement takes a connection of the library from a pool (session). These settings and
//     this database are first applied to the connection.
//  4. The result of a query is fetched in chunks, and the rows of an INSERT are
//     appended in chunks. Neither is ever completely in memory (answer,
//     statement).
//  5. When the caller's context ends, KILL QUERY on a separate connection stops
//     the statement.
//
// The library writes its Native format at revision 0. The driver reads at the revision that the server returned when
// the connection was opened. So the transport answers the first statement itself and returns revision 0. Results then
// pass through unchanged.
//
// # Limits
//
// A process has at most one open Engine, and a folder is open in at most one process. External tables, HTTP sessions,
// read-only sessions, roles, compression between driver and engine, SET, USE and temporary tables must not be used:
// some would last for later statements. The query id that a caller sets is ignored. Only in the database default, a
// table that does not exist is looked up as a file in the working directory.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrClosed is the error of statements on a closed Engine.
var ErrClosed = errors.New("embedded: the engine is closed")

// defaultConnections is the default maximum number of concurrent statements. It is large enough that a long query does
// not block short ones, and small enough that concurrent statements do not exhaust the memory.
const defaultConnections = 8

// closeTimeout is the maximum time for which Close waits for cancelled statements.
const closeTimeout = 10 * time.Second

// Options configure the engine. The zero value has suitable defaults.
type Options struct {
	Connections int // maximum number of concurrent statements; 0: 8
	// called after the folder is locked and before its files are opened; Open returns its error
	BeforeStart func() error
	Fsync       bool // an insert returns after its rows are synced to disk; they then survive a power failure
}

// Engine is a ClickHouse engine on a folder. Its methods may be called concurrently.
type Engine struct {
	dir     string
	lib     *library
	lock    *os.File
	options Options

	arguments []string
	initial   map[string]string // settings of a new session
	version   string
	timezone  string
	marks     atomic.Int64

	pool    *pool
	control struct {
		sync.Mutex
		*session
	}

	ctx     context.Context // ends when the engine closes
	cancel  context.CancelCauseFunc
	mu      sync.Mutex // guards closed against running.Add
	closed  bool
	running sync.WaitGroup
	stop    func() error // stops the engine once, and unlocks the folder
}

// A process has at most one storage path in the library.
var opened struct {
	sync.Mutex
	dir string
}

// Open starts the engine on the folder dir, which it creates if necessary. It returns a *LockedError if another process
// has the folder open.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	path, err := LocateLibrary()
	if err != nil {
		return nil, err
	}
	// The Go runtime has already raised the limit of open files to the maximum that the system allows.
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("embedded: read the limit of open files: %w", err)
	}
	if limit.Cur < leastOpenFiles {
		return nil, fmt.Errorf("an embedded store needs %[1]d open files, and this process may have %[2]d: raise the "+
			"limit (ulimit -n %[1]d; systemd: LimitNOFILE=%[1]d; Docker: --ulimit nofile=%[1]d)", leastOpenFiles,
			limit.Cur)
	}
	opened.Lock()
	defer opened.Unlock()
	if opened.dir != "" {
		return nil, fmt.Errorf("embedded: this process has %s open; close it before opening %s", opened.dir, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	if o.BeforeStart != nil {
		if err := o.BeforeStart(); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	e := &Engine{dir: dir, lock: lock, options: o}
	e.stop = sync.OnceValue(e.stopAndUnlock)
	if e.options.Connections <= 0 {
		e.options.Connections = defaultConnections
	}
	if err := e.startLibrary(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	opened.dir = dir
	return e, nil
}

// startLibrary loads the library and opens the control session. This session starts the engine and keeps it running
// between statements.
func (e *Engine) startLibrary(path string) error {
	lib, err := loadLibrary(path)
	if err != nil {
		return err
	}
	e.lib = lib
	e.ctx, e.cancel = context.WithCancelCause(context.Background())

	// Write the engine's configuration. Without it the library would read a config.xml of another program: in the
	// working directory, in the user's home directory, or of the machine. On a terminal, and only there, the engine
	// would write its log to standard error, with "current_thread contains invalid address" for each insert, which has
	// no effect. Backups may be written to any path, because only Lifthouse's own statements reach the engine.
	config := filepath.Join(e.dir, "lifthouse.xml")
	durability := ""
	if e.options.Fsync {
		durability = fsynced
	}
	if err := os.WriteFile(config, []byte(fmt.Sprintf(configuration, durability)), 0o644); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}

	e.arguments = []string{
		"clickhouse",
		"--path=" + e.dir,
		"--config-file=" + config,
		"--async_insert=0",                           // once an insert has returned, its rows survive the process
		"--implicit_select=0",                        // as on a server: "1 + 1" is a syntax error
		"--max_server_memory_usage_to_ram_ratio=0.5", // half of the memory of the machine or its cgroup
	}
	size := e.options.Connections
	e.pool = &pool{e.openSession, make(chan struct{}, size), make(chan *session, size)}
	e.control.session, err = e.openSession()
	if err != nil {
		return err
	}

	// Read the engine's version and time zone, and the settings of a new session.
	about, err := e.control.queryText("SELECT version(), timezone()")
	var changed string
	if err == nil {
		changed, err = e.control.queryText("SELECT name, value FROM system.settings WHERE changed")
	}
	if err != nil {
		e.control.closeSession()
		return fmt.Errorf("embedded: %w", err)
	}
	e.version, e.timezone, _ = strings.Cut(strings.TrimSpace(about), "\t")
	e.initial = make(map[string]string)
	for line := range strings.Lines(changed) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		e.initial[name] = value
	}
	return nil
}

const configuration = `<clickhouse>
    <logger>
        <console>false</console>
        <level>none</level>
    </logger>
    <backups>
        <allowed_path>/</allowed_path>
    </backups>
%s</clickhouse>
`

// fsynced are the settings of tables if Options.Fsync is set. Merges are synced too, because the parts that they
// replace are deleted.
const fsynced = `    <merge_tree>
        <fsync_after_insert>1</fsync_after_insert>
        <fsync_part_directory>1</fsync_part_directory>
        <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
    </merge_tree>
`

func (e *Engine) openSession() (*session, error) {
	mark := strconv.FormatInt(1_000_000+e.marks.Add(1), 10)
	arguments := slices.Clone(e.arguments)
	connected, err := e.lib.connectWith(append(arguments, "--"+markSetting+"="+mark))
	return &session{lib: e.lib, handle: connected, mark: mark, database: defaultDatabase}, err
}

// ClientOptions returns the options for clickhouse.Open to connect to the engine. The caller may set Auth.Database,
// Settings and similar fields before use. Inserts are never asynchronous, whatever the settings: once an insert has
// returned, its rows survive the process.
func (e *Engine) ClientOptions() *clickhouse.Options {
	return &clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{"embedded.invalid:8123"},
		Settings: clickhouse.Settings{},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) {
			return &transport{engine: e}, nil
		},
		// A statement waits for a connection until its context ends.
		DialTimeout:     time.Hour,
		ReadTimeout:     24 * time.Hour,
		ConnMaxLifetime: 24 * time.Hour,
		MaxOpenConns:    e.options.Connections,
		MaxIdleConns:    e.options.Connections,
	}
}

// Close cancels the running statements, stops the engine and unlocks the folder. The process can then open the same
// folder again, or another one. Calls after the first return the error of the first.
//
// Close leaves the library's idle threads running, so the process can open an engine again. Shutdown joins these
// threads.
func (e *Engine) Close() error { return e.stop() }

func (e *Engine) stopAndUnlock() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(ErrClosed)
	ended := make(chan struct{})
	go func() {
		e.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
		return fmt.Errorf("embedded: statements still run %v after they were cancelled; %s stays in use until the "+
			"process ends", closeTimeout, e.dir)
	}
	for len(e.pool.idle) > 0 {
		e.pool.discardSession(<-e.pool.idle)
	}
	e.control.closeSession()
	opened.Lock()
	defer opened.Unlock()
	opened.dir = ""
	return e.lock.Close()
}

// ErrShutDown is the error of Open after Shutdown.
var ErrShutDown = errors.New("embedded: the library was shut down; a process cannot start it again")

// Shutdown joins the library's threads. It must be called at the end of a process, after the engine is closed. No
// engine can be opened after it.
func Shutdown() error {
	opened.Lock()
	defer opened.Unlock()
	if opened.dir != "" {
		return fmt.Errorf("embedded: %s is open; close it before the shutdown", opened.dir)
	}
	load.Lock()
	defer load.Unlock()
	if load.lib != nil && !load.ended {
		load.lib.shutdown()
		load.ended = true
	}
	return nil
}

// LockedError means that another process has the folder open.
type LockedError struct {
	Dir string
	PID int // 0 if the lock file contains no process id
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: stop that process, or open another folder; two processes can share data "+
		"only through a ClickHouse server", e.Dir, holder)
}

// lockDir locks dir for this process. The lock is released when the file is closed, and when the process ends for any
// reason.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lifthouse.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.WriteFile(f.Name(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
		if err == nil {
			return f, nil
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		text, _ := os.ReadFile(f.Name())
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if the file has no process id
		err = &LockedError{Dir: dir, PID: pid}
	} else {
		err = fmt.Errorf("embedded: lock %s: %w", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}

// leastOpenFiles is the minimum limit of open files for a process. A merge opens the files of every column of every
// part that it merges, some 70 for each part. A few merges of ten parts, together with some reports, need 3,000. In a
// test, a store of eight million events worked with 500 and did not start with 256.
const leastOpenFiles = 4096
