package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrClosed is the error of statements on an Engine that was closed.
var ErrClosed = errors.New("embedded: the engine is closed")

// defaultConnections is how many statements run at once unless Options say
// otherwise: enough that a long query does not keep small ones waiting, and
// few enough that they do not starve each other of memory.
const defaultConnections = 8

// closeTimeout bounds how long Close waits for statements it has cancelled.
const closeTimeout = 10 * time.Second

// Options say how the engine runs. The zero value is a good choice.
type Options struct {
	Library     string       // path of libchdb; empty: see LibraryMissingError for where it is looked for
	Connections int          // statements that run at once; 0: 8
	Threads     int          // max_threads of a query; 0: the engine's default, one per core
	MemoryLimit int64        // bytes for the whole engine; 0: half of the memory of the machine or its cgroup
	BeforeStart func() error // is called when the folder is locked and its files are not open yet; its error ends Open
	Fsync       bool         // an insert returns when its rows are on the disk itself, and outlive a loss of power
}

// Engine is ClickHouse on a folder. Its methods may be called concurrently.
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
	closing sync.Once
	failure error // of closing
}

// The library holds one storage path per process.
var opened struct {
	sync.Mutex
	dir string
}

// Open starts the engine on the folder dir, which it makes if need be. It
// returns a *LibraryMissingError if the library is not installed and a
// *LockedError if another process has the folder open.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	path, err := Locate(o.Library)
	if err != nil {
		return nil, err
	}
	if err := checkOpenFiles(); err != nil {
		return nil, err
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
	if e.options.Connections <= 0 {
		e.options.Connections = defaultConnections
	}
	if err := e.start(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	opened.dir = dir
	return e, nil
}

// start loads the library and opens the control session, which starts the
// engine and keeps it running between statements.
func (e *Engine) start(path string) error {
	lib, err := loadLibrary(path)
	if err != nil {
		return err
	}
	e.lib = lib
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	config, err := e.writeConfig()
	if err != nil {
		return err
	}
	e.arguments = []string{
		"clickhouse",
		"--path=" + e.dir,
		"--config-file=" + config,
		"--async_insert=0",    // an insert that has returned outlives the process
		"--implicit_select=0", // as on a server: "1 + 1" is a syntax error
	}
	if e.options.MemoryLimit > 0 {
		e.arguments = append(e.arguments, "--max_server_memory_usage="+strconv.FormatInt(e.options.MemoryLimit, 10))
	} else {
		e.arguments = append(e.arguments, "--max_server_memory_usage_to_ram_ratio=0.5")
	}
	if e.options.Threads > 0 {
		e.arguments = append(e.arguments, "--max_threads="+strconv.Itoa(e.options.Threads))
	}
	e.pool = newPool(e.options.Connections, e.session)
	e.control.session, err = e.session()
	if err != nil {
		return err
	}
	if err := e.introduce(); err != nil {
		e.control.close()
		return err
	}
	return nil
}

// writeConfig writes the engine's configuration and returns its path. Without one
// the library would read a config.xml of the working directory, of the user's
// home directory or of the machine, for other programs.
//
// On a terminal, and only there, the engine would write its log to standard
// error: every insert as "current_thread contains invalid address", which is
// what it says of its own bookkeeping, and has no effect.
//
// Backups may go anywhere: no statement but our own reaches the engine.
func (e *Engine) writeConfig() (string, error) {
	path := filepath.Join(e.dir, "lifthouse.xml")
	durability := ""
	if e.options.Fsync {
		durability = fsynced
	}
	if err := os.WriteFile(path, []byte(fmt.Sprintf(configuration, durability)), 0o644); err != nil {
		return "", fmt.Errorf("embedded: %w", err)
	}
	return path, nil
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

// fsynced are the settings of tables under Options.Fsync. Merges are synced
// too: the parts that they replace are deleted.
const fsynced = `    <merge_tree>
        <fsync_after_insert>1</fsync_after_insert>
        <fsync_part_directory>1</fsync_part_directory>
        <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
    </merge_tree>
`

// introduce learns what the engine is and how a new session is set.
func (e *Engine) introduce() error {
	about, err := e.control.text("SELECT version(), timezone()")
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	e.version, e.timezone, _ = strings.Cut(strings.TrimSpace(about), "\t")
	changed, err := e.control.text("SELECT name, value FROM system.settings WHERE changed")
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	e.initial = make(map[string]string)
	for line := range strings.Lines(changed) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		e.initial[name] = value
	}
	return nil
}

func (e *Engine) session() (*session, error) {
	mark := strconv.FormatInt(1_000_000+e.marks.Add(1), 10)
	arguments := append([]string{}, e.arguments...)
	c, err := e.lib.open(append(arguments, "--"+markSetting+"="+mark))
	if err != nil {
		return nil, err
	}
	return &session{conn: c, mark: mark, database: defaultDatabase}, nil
}

// ClientOptions returns what clickhouse.Open needs to talk to the engine. The
// caller may set Auth.Database, Settings and the like before using them.
// Inserts are never asynchronous, whatever the settings say: one that has
// returned outlives the process.
func (e *Engine) ClientOptions() *clickhouse.Options {
	return &clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{"embedded.invalid:8123"},
		Settings: clickhouse.Settings{},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) {
			return &transport{engine: e}, nil
		},
		// A statement that waits for its turn waits as long as its context.
		DialTimeout:     time.Hour,
		ReadTimeout:     24 * time.Hour,
		ConnMaxLifetime: 24 * time.Hour,
		MaxOpenConns:    e.options.Connections,
		MaxIdleConns:    e.options.Connections,
	}
}

// begin counts a statement in, unless the engine is closed.
func (e *Engine) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.running.Add(1)
	return nil
}

// Close cancels the statements that run, stops the engine and frees the
// folder, which can then be opened again, as can another one. Calls after the
// first return its error.
//
// It leaves the library's idle threads alone, so that the process can open an
// engine again; Shutdown joins them.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.failure = e.close() })
	return e.failure
}

func (e *Engine) close() error {
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
		return fmt.Errorf("embedded: statements still run %v after they were cancelled; %s stays in use until the process ends", closeTimeout, e.dir)
	}
	e.pool.close()
	e.control.close()
	opened.Lock()
	defer opened.Unlock()
	opened.dir = ""
	return e.lock.Close()
}

// ErrShutDown is the error of Open after Shutdown.
var ErrShutDown = errors.New("embedded: the library was shut down; a process cannot start it again")

// Shutdown joins the library's threads. It is for the end of a process, after
// the engine was closed: no engine can be opened after it.
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
