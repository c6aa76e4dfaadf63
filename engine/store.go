package engine

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
	"golang.org/x/sync/semaphore"
)

// Limits bound each query of a report.
type Limits struct {
	Time            time.Duration // whole seconds; 0: none
	Memory          int64         // bytes; 0: none. From half of it on, aggregation goes to disk.
	InProcessEvents uint64        // most events of a subject that are counted here instead; 0: FewEvents
	// Scans is how many statements that read more events than that run at once; 0:
	// no bound. Each keeps all cores busy: more of them at once are not done
	// sooner, and leave less to writes.
	Scans int
}

func (l Limits) inProcessEvents() uint64 { return cmp.Or(l.InProcessEvents, MaxInProcessEvents) }

// DefaultLimits let a report of a hundred million events through on a small
// machine, and end one that would take the machine with it.
var DefaultLimits = Limits{Time: 60 * time.Second, Memory: 8 << 30}

// context gives the query its limits.
func (l Limits) context(ctx context.Context) context.Context {
	settings := clickhouse.Settings{}
	if l.Time > 0 {
		settings["max_execution_time"] = int((l.Time + time.Second - 1) / time.Second)
	}
	if l.Memory > 0 {
		settings["max_memory_usage"] = l.Memory
		settings["max_bytes_before_external_group_by"] = l.Memory / 2
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings))
}

// StoreFault is why the store did not answer.
type StoreFault string

// The faults, and what a reader can do about them.
const (
	TooSlow  StoreFault = "too_slow"  // narrow the request
	TooLarge StoreFault = "too_large" // narrow the request
	Busy     StoreFault = "busy"      // try again
	Down     StoreFault = "down"      // try again later
	Full     StoreFault = "full"      // make room on its disk
	Damaged  StoreFault = "damaged"   // restore a backup
	Bug      StoreFault = "bug"       // ours
)

// StoreError is a query that the store did not answer. Its text is for
// readers; what the store said is underneath.
type StoreError struct {
	Fault StoreFault
	cause error
}

// Error says what to do.
func (e *StoreError) Error() string {
	switch e.Fault {
	case TooSlow:
		return "the store took longer than allowed: try again in a moment; if it is a report, narrow the window (filters[dateFrom], filters[dateTo]) or leave the dimension out"
	case TooLarge:
		return "the report needs more memory than allowed: narrow the window (filters[dateFrom], filters[dateTo]) or leave the dimension out"
	case Busy:
		return "the store has too much to do: try again in a moment"
	case Down:
		return "the store cannot be reached: try again later"
	case Full:
		return "the store's disk is full: make room on it and do the same again; what is stored stays, and counts once"
	case Damaged:
		return "stored data are damaged: stop the server and start it again, which puts right what a full disk spoils; if they still are, lifthouse check --data says where, and a backup has them"
	case Bug:
	}
	return "the store refused the query, which is our fault"
}

// Unwrap returns what the store said.
func (e *StoreError) Unwrap() error { return e.cause }

// storeError makes a StoreError of what the driver returned. What ended the
// reader's own request stays what it is, but for its deadline.
func storeError(ctx context.Context, err error) error {
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

// faultsOf are the faults behind codes of ClickHouse's exceptions (its
// ErrorCodes.cpp).
var faultsOf = map[int32]StoreFault{
	159: TooSlow,  // TIMEOUT_EXCEEDED
	160: TooSlow,  // TOO_SLOW
	241: TooLarge, // MEMORY_LIMIT_EXCEEDED
	173: TooLarge, // CANNOT_ALLOCATE_MEMORY
	202: Busy,     // TOO_MANY_SIMULTANEOUS_QUERIES
	252: Busy,     // TOO_MANY_PARTS
	32:  Down,     // ATTEMPT_TO_READ_AFTER_EOF: of another server, as the next ones
	198: Down,     // DNS_ERROR
	209: Down,     // SOCKET_TIMEOUT
	210: Down,     // NETWORK_ERROR
	225: Down,     // NO_ZOOKEEPER
	236: Down,     // ABORTED: the server stops
	242: Down,     // TABLE_IS_READ_ONLY: the server has lost Keeper
	279: Down,     // ALL_CONNECTION_TRIES_FAILED
	285: Down,     // TOO_FEW_LIVE_REPLICAS
	286: Down,     // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: Down,     // UNKNOWN_STATUS_OF_INSERT
	341: Down,     // UNFINISHED: a change of tables, by a server that is away
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
	432: Damaged,  // UNKNOWN_CODEC: the first byte of a block is none's
}

// noSpace is what the operating system says of a full disk, which ClickHouse
// passes on under the code of what it was doing.
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
	case schema.Unreachable(err):
		return Down
	case errors.Is(err, context.DeadlineExceeded):
		return TooSlow
	case errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return Busy
	}
	return Bug
}

// store runs queries within the limits.
type store struct {
	driver.Conn
	limits  Limits
	scans   *semaphore.Weighted // nil: no bound
	shards  *shards             // nil: one server
	observe func(elapsed time.Duration, err error)
	ranks   ranks
}

// each runs the query and calls scan for each row of its answer.
func (s *store) each(ctx context.Context, q *Query, scan func(driver.Rows) error) error {
	if s.scans != nil && q.events > s.limits.inProcessEvents() {
		if err := s.scans.Acquire(ctx, 1); err != nil {
			return context.Cause(ctx)
		}
		defer s.scans.Release(1)
	}
	started := time.Now()
	ctx, span := querySpan(ctx, q)
	err := s.scanned(ctx, q, scan)
	endSpan(span, err)
	if s.observe != nil {
		s.observe(time.Since(started), err)
	}
	return err
}

func (s *store) scanned(ctx context.Context, q *Query, scan func(driver.Rows) error) error {
	limited := s.limits.context(ctx)
	rows, err := s.Query(limited, q.SQL, q.args()...)
	if err != nil {
		return storeError(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return storeError(ctx, err)
		}
	}
	return storeError(ctx, rows.Err())
}
