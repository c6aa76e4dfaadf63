package embedded

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The handles below are addresses of the library's own objects. They are of type uintptr because they never point into
// Go memory.
type (
	handle       uintptr // chdb_connection*
	resultHandle uintptr // chdb_result*
	insertHandle uintptr // chdb_insert_stream
)

// statementFunc is a C function that starts a statement with parameters.
type statementFunc[H resultHandle | insertHandle] func(
	conn uintptr, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr,
	names, nameLens, values, valueLens unsafe.Pointer, count uintptr,
) H

// library holds the C functions that this package calls, with their names.
type library struct {
	connect     func(argc int32, argv unsafe.Pointer) handle `symbol:"chdb_connect"`
	closeConn   func(handle)                                 `symbol:"chdb_close_conn"`
	setHandlers func(enabled int32)                          `symbol:"chdb_set_signal_handlers_enabled"`
	shutdown    func()                                       `symbol:"chdb_shutdown"`

	query       statementFunc[resultHandle]                          `symbol:"chdb_query_with_params_n"`
	streamQuery statementFunc[resultHandle]                          `symbol:"chdb_stream_query_with_params_n"`
	fetch       func(conn uintptr, stream resultHandle) resultHandle `symbol:"chdb_stream_fetch_result"`
	cancel      func(conn uintptr, stream resultHandle)              `symbol:"chdb_stream_cancel_query"`
	destroy     func(resultHandle)                                   `symbol:"chdb_destroy_query_result"`

	insert        statementFunc[insertHandle]                                          `symbol:"chdb_stream_insert_with_params_n"`
	insertAppend  func(stream insertHandle, data unsafe.Pointer, length uintptr) int32 `symbol:"chdb_stream_append"`
	insertDone    func(insertHandle) resultHandle                                      `symbol:"chdb_stream_done"`
	insertCancel  func(insertHandle)                                                   `symbol:"chdb_stream_cancel_insert"`
	insertError   func(insertHandle) string                                            `symbol:"chdb_stream_insert_error"`
	insertDestroy func(insertHandle)                                                   `symbol:"chdb_destroy_insert_stream"`

	resultBuffer func(resultHandle) unsafe.Pointer `symbol:"chdb_result_buffer"`
	resultLength func(resultHandle) uintptr        `symbol:"chdb_result_length"`
	resultError  func(resultHandle) string         `symbol:"chdb_result_error"`
}

var load struct {
	sync.Mutex
	path  string
	lib   *library
	ended bool // set by Shutdown
}

// loadLibrary opens the library at path, once per process. A process cannot hold two copies of the engine. The first
// copy cannot be unloaded, because its threads continue to run after any call.
func loadLibrary(path string) (*library, error) {
	load.Lock()
	defer load.Unlock()
	if load.ended {
		return nil, ErrShutDown
	}
	if load.lib != nil {
		if load.path != path {
			return nil, fmt.Errorf("embedded: %s is loaded already; a process cannot load %s as well", load.path, path)
		}
		return load.lib, nil
	}
	lib, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("the ClickHouse library %s cannot be loaded (%w): install it again with npm ci or make "+
			"engine, or set %s to the path of another", path, err, libraryVariable)
	}
	load.path, load.lib = path, lib
	return lib, nil
}

func openLibrary(path string) (*library, error) {
	if err := checkLibrary(path); err != nil {
		return nil, err
	}
	dl, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	lib := new(library)
	for field, function := range reflect.ValueOf(lib).Elem().Fields() {
		address, err := purego.Dlsym(dl, field.Tag.Get("symbol"))
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(reflect.NewAt(field.Type, function.Addr().UnsafePointer()).Interface(), address)
	}
	return lib, lib.quietSignals()
}

// quietSignals prevents the library from installing signal handlers. The required library call also resets the handlers
// of the signals that the library uses. Without its handlers, the Go runtime can neither turn a nil dereference into a
// panic nor preempt a goroutine. So quietSignals restores the previous handlers.
func (l *library) quietSignals() error {
	var sigaction func(signal int32, action, old unsafe.Pointer) int32
	address, err := purego.Dlsym(purego.RTLD_DEFAULT, "sigaction")
	if err != nil {
		return err
	}
	purego.RegisterFunc(&sigaction, address)

	signals := []syscall.Signal{
		syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
		syscall.SIGQUIT, syscall.SIGSEGV, syscall.SIGTRAP, syscall.SIGTSTP, syscall.SIGURG,
	}
	const size = 256 // larger than struct sigaction on any platform
	saved := make([][size]byte, len(signals))
	for i, s := range signals {
		if sigaction(int32(s), nil, unsafe.Pointer(&saved[i])) != 0 {
			return fmt.Errorf("read the handler of signal %v", s)
		}
	}
	l.setHandlers(0)
	for i, s := range signals {
		if sigaction(int32(s), unsafe.Pointer(&saved[i]), nil) != 0 {
			return fmt.Errorf("restore the handler of signal %v", s)
		}
	}
	return nil
}

// connectWith opens a connection of the library.
func (l *library) connectWith(arguments []string) (handle, error) {
	argv := make([]unsafe.Pointer, len(arguments)+1)
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, argument := range arguments {
		if strings.IndexByte(argument, 0) >= 0 {
			return 0, fmt.Errorf("embedded: invalid argument %q: must not contain NUL", argument)
		}
		b := append([]byte(argument), 0)
		pin.Pin(&b[0])
		argv[i] = unsafe.Pointer(&b[0])
	}
	h := l.connect(int32(len(arguments)), unsafe.Pointer(&argv[0]))
	runtime.KeepAlive(argv)
	if h == 0 {
		return 0, errors.New("embedded: the engine refused a connection; see standard error for the reason")
	}
	return h, nil
}

// cPointer returns the argument of the C functions for parameters of type chdb_connection: the pointer to which the
// result of chdb_connect points.
func (h handle) cPointer() uintptr {
	return **(**uintptr)(unsafe.Pointer(&h))
}

// parameter is a value for a placeholder {name:Type} of a statement.
type parameter struct{ name, value string }

var empty = [1]byte{}

// callStatement calls a C function that starts a statement.
func callStatement[H resultHandle | insertHandle](conn handle, f statementFunc[H], sql, format string,
	parameters []parameter,
) H {
	var pin runtime.Pinner
	defer pin.Unpin()
	pinText := func(s string) unsafe.Pointer {
		if s == "" {
			return unsafe.Pointer(&empty)
		}
		p := unsafe.StringData(s)
		pin.Pin(p)
		return unsafe.Pointer(p)
	}
	var names, values []unsafe.Pointer
	var nameLens, valueLens []uintptr
	for _, p := range parameters {
		names, nameLens = append(names, pinText(p.name)), append(nameLens, uintptr(len(p.name)))
		values, valueLens = append(values, pinText(p.value)), append(valueLens, uintptr(len(p.value)))
	}
	return f(conn.cPointer(), pinText(sql), uintptr(len(sql)), pinText(format), uintptr(len(format)),
		unsafe.Pointer(unsafe.SliceData(names)), unsafe.Pointer(unsafe.SliceData(nameLens)),
		unsafe.Pointer(unsafe.SliceData(values)), unsafe.Pointer(unsafe.SliceData(valueLens)),
		uintptr(len(parameters)))
}

// result is a result of the library. Its owner must free it.
type result struct {
	lib    *library
	handle resultHandle
}

// dataBytes returns the data of the result. The data is not valid after freeMemory.
func (r *result) dataBytes() []byte {
	n := r.lib.resultLength(r.handle)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(r.lib.resultBuffer(r.handle)), n)
}

func (r *result) err() error {
	if r.handle == 0 {
		return errors.New("embedded: the engine returned no result")
	}
	if text := r.lib.resultError(r.handle); text != "" {
		return newException(text)
	}
	return nil
}

func (r *result) freeMemory() {
	if r.handle != 0 {
		r.lib.destroy(r.handle)
		r.handle = 0
	}
}

// checkLibrary checks that the file contains all segments of its header. A signal kills a process that uses a truncated
// library, for example after an interrupted download.
func checkLibrary(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "linux" {
		return err
	}
	library, err := elf.Open(path)
	_, isOther := errors.AsType[*elf.FormatError](err)
	if isOther || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is no library, or cut off: %w", err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = library.Close() }()
	for _, segment := range library.Progs {
		if end := segment.Off + segment.Filesz; end > uint64(info.Size()) { //nolint:gosec // a file size is not negative
			return fmt.Errorf("it is cut off: it has %d of at least %d bytes", info.Size(), end)
		}
	}
	return nil
}

// libraryVariable names the environment variable with the library's path.
const libraryVariable = "LIFTHOUSE_LIBCHDB"

func libraryMissing(searched ...string) error {
	return fmt.Errorf("the ClickHouse library libchdb was not found: run `npm ci` in the checkout or `make engine`, "+
		"or set %s to the path of the library (searched: %s)", libraryVariable, strings.Join(searched, ", "))
}

// LocateLibrary returns the path of the library. It uses the first of the environment variable, the folder of the
// executable, and the npm package. The npm package is searched in the node_modules folders of the ancestors of the
// executable and of the working directory. A path from the environment variable must exist, because no other place is
// searched then.
func LocateLibrary() (string, error) {
	if named := os.Getenv(libraryVariable); named != "" {
		if !isFile(named) {
			return "", libraryMissing(named)
		}
		return filepath.Abs(named)
	}
	names := []string{"libchdb.so"}
	if runtime.GOOS == "darwin" {
		names = append(names, "libchdb.dylib")
	}
	var starts, places []string
	addFolder := func(folder string) {
		for _, name := range names {
			places = append(places, filepath.Join(folder, name))
		}
	}
	if executable, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		starts = append(starts, filepath.Dir(executable))
		addFolder(filepath.Dir(executable))
	}
	if working, err := os.Getwd(); err == nil {
		starts = append(starts, working)
	}
	seen := make(map[string]bool)
	for _, start := range starts {
		for dir := start; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			addFolder(filepath.Join(dir, "node_modules", "@chdb", npmPackage()))
		}
	}
	if found := slices.IndexFunc(places, isFile); found >= 0 {
		return places[found], nil
	}
	return "", libraryMissing(places...)
}

// npmPackage returns the name of the library's npm package on this platform.
func npmPackage() string {
	name := "lib-" + runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	if runtime.GOOS == "linux" {
		name += "-gnu"
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
