// Package server runs a ClickHouse server from the library that package embedded uses, in a separate process, for
// tests. The server is clickhouse-local with its listeners. They serve the native protocol and HTTP, with users and
// their grants. It does not persist users created by statements and has no Keeper. A client that resets its connection
// ends the process.
package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// listen opens the ports of the configuration and keeps the process running.
const listen = `SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP;
SELECT sleepEachRow(1) FROM numbers(1000000000)
SETTINGS function_sleep_max_microseconds_per_block = 10000000000000, max_block_size = 1
FORMAT Null`

// Run serves a configuration until standard input ends, which also happens when the parent process ends. It returns
// only if there is an error.
func Run(library, configuration string) error {
	runtime.LockOSThread()
	dl, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	var setHandlers func(enabled int32)
	var query func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	for name, fn := range map[string]any{"chdb_set_signal_handlers_enabled": &setHandlers, "query_stable_v2": &query} {
		address, err := purego.Dlsym(dl, name)
		if err != nil {
			return err
		}
		purego.RegisterFunc(fn, address)
	}
	setHandlers(0)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var pin runtime.Pinner
	defer pin.Unpin()
	arguments := []string{"clickhouse", "--config-file=" + configuration, "--query", listen}
	argv := make([]unsafe.Pointer, len(arguments))
	for i, argument := range arguments {
		text := append([]byte(argument), 0)
		pin.Pin(&text[0])
		argv[i] = unsafe.Pointer(&text[0])
	}
	pin.Pin(&argv[0])
	result := (*localResult)(query(int32(len(arguments)), unsafe.Pointer(&argv[0])))
	if result == nil || result.message == nil {
		return errors.New("the server ended without a word")
	}
	return fmt.Errorf("the server ended: %s", goString(result.message))
}

// localResult is the library's local_result_v2.
type localResult struct {
	_       unsafe.Pointer // buffer
	_       uintptr        // its length
	_       unsafe.Pointer // its owner
	_       float64        // seconds
	_, _    uint64         // rows, bytes
	message *byte
}

// goString is a C string.
func goString(first *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(first), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(first, n))
}
