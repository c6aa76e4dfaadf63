// Package source runs the statements of reports, with bound parameters. A StoreError says why a store did not answer.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Limits are the limits of each query of a report.
type Limits struct {
	Time   time.Duration // whole seconds; 0: no limit
	Memory int64         // bytes; 0: no limit. Aggregations above half of it spill to disk.
}

// DefaultLimits allow a report over a hundred million events on a small machine.
var DefaultLimits = Limits{Time: 60 * time.Second, Memory: 8 << 30}

// StoreFault is the reason why the store did not answer.
type StoreFault string

// The faults, with the remedy.
const (
	TooSlow  StoreFault = "too_slow"  // narrow the request
	TooLarge StoreFault = "too_large" // narrow the request
	Busy     StoreFault = "busy"      // try again
	Down     StoreFault = "down"      // try again later
	Full     StoreFault = "full"      // free disk space
	Damaged  StoreFault = "damaged"   // restore a backup
	Rebuilt  StoreFault = "rebuilt"   // wait until the facts are complete
	Bug      StoreFault = "bug"       // a bug in Lifthouse
)

// StoreError is the error of a failed query. Its text is for API clients; Unwrap returns the error of the store.
type StoreError struct {
	Fault StoreFault
	cause error
}

// remedies has the texts of the faults. All others are bugs.
var remedies = map[StoreFault]string{
	TooSlow: "the query exceeded the time limit: retry, or narrow a report by a shorter window (filters[dateFrom], " +
		"filters[dateTo]) or without a dimension",
	TooLarge: "the query exceeded the memory limit: narrow the report by a shorter window (filters[dateFrom], " +
		"filters[dateTo]) or without a dimension",
	Busy:    "the store is overloaded: retry in a moment",
	Down:    "the store cannot be reached: retry later",
	Full:    "the disk of the store is full: free space and retry; stored events are kept and counted once",
	Rebuilt: "the facts were deleted and are folded again: retry when they are complete",
	Damaged: "stored data are damaged: find the damage with lifthouse check --deep, and restore a backup",
}

// Error returns the fault and the remedy.
func (e *StoreError) Error() string {
	return cmp.Or(remedies[e.Fault], "the store rejected the query; this is a bug")
}

// Unwrap returns the error of the store.
func (e *StoreError) Unwrap() error { return e.cause }

// StoreFailure converts an error of the driver to a StoreError. It wraps the error of a cancelled request instead,
// unless the deadline was exceeded.
func StoreFailure(ctx context.Context, err error) error {
	var known *StoreError
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		return &StoreError{Fault: TooSlow, cause: err}
	case cause != nil:
		return fmt.Errorf("%w: %w", cause, err)
	}
	return &StoreError{Fault: faultOf(err), cause: err}
}

// faultsOf maps exception codes of ClickHouse (ErrorCodes.cpp) to faults.
var faultsOf = map[int32]StoreFault{
	159: TooSlow,  // TIMEOUT_EXCEEDED
	160: TooSlow,  // TOO_SLOW
	241: TooLarge, // MEMORY_LIMIT_EXCEEDED
	173: TooLarge, // CANNOT_ALLOCATE_MEMORY
	202: Busy,     // TOO_MANY_SIMULTANEOUS_QUERIES
	252: Busy,     // TOO_MANY_PARTS
	32:  Down,     // ATTEMPT_TO_READ_AFTER_EOF: of another server, as are the following
	198: Down,     // DNS_ERROR
	209: Down,     // SOCKET_TIMEOUT
	210: Down,     // NETWORK_ERROR
	225: Down,     // NO_ZOOKEEPER
	236: Down,     // ABORTED: the server is stopping
	242: Down,     // TABLE_IS_READ_ONLY: the server has lost Keeper
	279: Down,     // ALL_CONNECTION_TRIES_FAILED
	285: Down,     // TOO_FEW_LIVE_REPLICAS
	286: Down,     // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: Down,     // UNKNOWN_STATUS_OF_INSERT
	341: Down,     // UNFINISHED: a change of tables, on an unreachable server
	999: Down,     // KEEPER_EXCEPTION
	243: Full,     // NOT_ENOUGH_SPACE
	33:  Damaged,  // CANNOT_READ_ALL_DATA
	40:  Damaged,  // CHECKSUM_DOESNT_MATCH
	107: Damaged,  // FILE_DOESNT_EXIST
	131: Damaged,  // TOO_LARGE_SIZE_COMPRESSED
	226: Damaged,  // NO_FILE_IN_DATA_PART
	228: Damaged,  // BAD_SIZE_OF_FILE_IN_DATA_PART
	246: Damaged,  // CORRUPTED_DATA
	271: Damaged,  // CANNOT_DECOMPRESS
	432: Damaged,  // UNKNOWN_CODEC: invalid first byte of a block
}

// noSpace is the error of the operating system for a full disk. ClickHouse returns it under the code of the failed
// operation.
const noSpace = "No space left on device"

func faultOf(err error) StoreFault {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		if strings.Contains(exception.Message, noSpace) {
			return Full
		}
		return cmp.Or(faultsOf[exception.Code], Bug)
	}
	switch {
	case schema.IsUnreachable(err):
		return Down
	case errors.Is(err, context.DeadlineExceeded):
		return TooSlow
	case errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return Busy
	}
	return Bug
}

// IsFull reports whether the disk of the store was full.
func IsFull(err error) bool { return err != nil && faultOf(err) == Full }

// IsDamaged reports whether stored data cannot be read.
func IsDamaged(err error) bool { return err != nil && faultOf(err) == Damaged }

// traceKey is the context key of a trace.
type traceKey struct{}

// WithTrace returns a context whose queries have the id of a trace in their log_comment.
func WithTrace(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// Store runs queries within the limits.
type Store struct {
	driver.Conn
	Limits  Limits
	Observe func(elapsed time.Duration, err error)
}

// EachRow runs a query and calls scan for each row. The old analyzer of ClickHouse plans a statement in four fifths of
// the time of the new one. Parameters {Name:Type} that the text does not use cost time, so they are not sent.
func (s *Store) EachRow(
	ctx context.Context, sql string, params []driver.NamedValue, scan func(driver.Rows) error,
) error {
	settings := clickhouse.Settings{"enable_analyzer": 0}
	if s.Limits.Time > 0 {
		settings["max_execution_time"] = int((s.Limits.Time + time.Second - 1) / time.Second)
	}
	if s.Limits.Memory > 0 {
		settings["max_memory_usage"] = s.Limits.Memory
		settings["max_bytes_before_external_group_by"] = s.Limits.Memory / 2
	}
	if trace, is := ctx.Value(traceKey{}).(string); is {
		settings["log_comment"] = trace
	}
	var used []any
	for _, p := range params {
		if strings.Contains(sql, "{"+p.Name+":") {
			used = append(used, p)
		}
	}
	started := time.Now()
	limited := clickhouse.Context(ctx, clickhouse.WithSettings(settings))
	err := StoreFailure(ctx, schema.EachRow(limited, s.Conn, sql, scan, used...))
	if s.Observe != nil {
		s.Observe(time.Since(started), err)
	}
	return err
}
