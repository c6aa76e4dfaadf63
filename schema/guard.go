package schema

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/sony/gobreaker/v2"
)

// ErrAway says that servers were not asked, since they have just failed.
var ErrAway = errors.New("the store is away, and is asked again in a moment")

// unreachedError is a connection that could not be made: nothing was sent.
type unreachedError struct{ error }

// Unwrap returns why.
func (e *unreachedError) Unwrap() error { return e.error }

// Unreachable says whether an error is the way to a server and not its answer.
func Unreachable(err error) bool {
	var exception *clickhouse.Exception
	if err == nil || errors.As(err, &exception) || errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error
	var unreached *unreachedError
	return errors.Is(err, ErrAway) || errors.As(err, &unreached) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, clickhouse.ErrConnectionClosed)
}

// away is how long servers that failed are left alone; then one statement tries
// them.
const away = 2 * time.Second

// most failures of connections that work in a row, until all are left alone.
const maxFailures = 3

func newBreaker[T any](name string, failures uint32) *gobreaker.CircuitBreaker[T] {
	return gobreaker.NewCircuitBreaker[T](gobreaker.Settings{
		Name: name, Timeout: away,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { return !Unreachable(err) },
	})
}

// held makes ErrAway of a breaker's refusal.
func held(err error) error {
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrAway
	}
	return err
}

// hosts are servers that have the same data. A host that cannot be reached is
// passed over for a while, so that it costs one timeout and not each request
// one.
type hosts struct {
	addresses []string
	breakers  map[string]*gobreaker.CircuitBreaker[clickhouse.DialResult]
	timeout   time.Duration // of one host
	strategy  clickhouse.ConnOpenStrategy
	turn      atomic.Int64
}

// newHosts makes the driver wait for all hosts as long as for one each.
func newHosts(o *clickhouse.Options) *hosts {
	h := &hosts{addresses: o.Addr, breakers: map[string]*gobreaker.CircuitBreaker[clickhouse.DialResult]{}, timeout: o.DialTimeout, strategy: o.ConnOpenStrategy}
	for _, address := range o.Addr {
		h.breakers[address] = newBreaker[clickhouse.DialResult](address, 1)
	}
	o.DialTimeout *= time.Duration(len(o.Addr))
	return h
}

// inTurn are the hosts in the order in which they are tried.
func (h *hosts) inTurn() []string {
	first := 0
	switch h.strategy {
	case clickhouse.ConnOpenRoundRobin:
		first = int(h.turn.Add(1)) % len(h.addresses)
	case clickhouse.ConnOpenRandom:
		first = rand.N(len(h.addresses)) //nolint:gosec // no secret
	case clickhouse.ConnOpenInOrder:
	}
	return slices.Concat(h.addresses[first:], h.addresses[:first])
}

// dial is the driver's DialStrategy.
func (h *hosts) dial(ctx context.Context, _ int, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	with := *o
	with.DialTimeout = h.timeout
	var errs []error
	for _, address := range h.inTurn() {
		result, err := h.breakers[address].Execute(func() (clickhouse.DialResult, error) {
			one, cancel := context.WithTimeout(ctx, h.timeout)
			defer cancel()
			result, err := dial(one, address, &with)
			return result, unreached(ctx, address, err)
		})
		if err == nil {
			return result, nil
		}
		errs = append(errs, held(err))
		if !Unreachable(held(err)) { // such as a wrong password, which is wrong everywhere
			break
		}
	}
	return clickhouse.DialResult{}, errors.Join(errs...)
}

func unreached(ctx context.Context, address string, err error) error {
	var exception *clickhouse.Exception
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil || ctx.Err() != nil || errors.As(err, &exception):
		return err
	case errors.As(err, &certificate):
		return &unreachedError{fmt.Errorf("%s: its certificate is not trusted; is ca= right? %w", address, err)}
	}
	return &unreachedError{fmt.Errorf("%s: %w", address, err)}
}

// guarded asks servers again where that is safe, and leaves them alone when
// they are away.
//
// A query is read only, and is asked again when its connection breaks before
// the first row came. What changes something is asked again only when nothing
// was sent.
type guarded struct {
	driver.Conn
	breaker  *gobreaker.CircuitBreaker[any]
	attempts int
}

func guard(conn driver.Conn, hosts int) *guarded {
	return &guarded{Conn: conn, breaker: newBreaker[any]("store", maxFailures), attempts: hosts + 1}
}

// ask does something until it succeeds, again while again says that it may.
func ask[T any](ctx context.Context, g *guarded, again func(error) bool, do func() (T, error)) (T, error) {
	var result T
	_, err := g.breaker.Execute(func() (any, error) {
		var last error
		for attempt := 1; ; attempt++ {
			var err error
			result, err = do()
			if last != nil && errors.Is(err, ErrAway) {
				err = last // says more
			}
			last = err
			if attempt >= g.attempts || !again(err) || errors.Is(err, ErrAway) || ctx.Err() != nil {
				return nil, endOf(ctx, err)
			}
		}
	})
	return result, held(err)
}

// endOf says of an error that came with the end of the request that it is no
// fault of the servers.
func endOf(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	return err
}

func nothingSent(err error) bool {
	var unreached *unreachedError
	return errors.As(err, &unreached)
}

// Query is driver.Conn's.
func (g *guarded) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	return ask(ctx, g, Unreachable, func() (driver.Rows, error) { return g.Conn.Query(ctx, query, args...) })
}

// QueryRow is driver.Conn's.
func (g *guarded) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	row, err := ask(ctx, g, Unreachable, func() (driver.Row, error) {
		row := g.Conn.QueryRow(ctx, query, args...)
		return row, row.Err()
	})
	if row == nil {
		return noRow{err}
	}
	return row
}

// Select is driver.Conn's.
func (g *guarded) Select(ctx context.Context, dest any, query string, args ...any) error {
	_, err := ask(ctx, g, nothingSent, func() (any, error) { return nil, g.Conn.Select(ctx, dest, query, args...) })
	return err
}

// Ping is driver.Conn's.
func (g *guarded) Ping(ctx context.Context) error {
	_, err := ask(ctx, g, Unreachable, func() (any, error) { return nil, g.Conn.Ping(ctx) })
	return err
}

// mostChange is how long a change of stored data may take, which sends no
// progress.
const changeTimeout = time.Hour

// Exec is driver.Conn's.
func (g *guarded) Exec(ctx context.Context, query string, args ...any) error {
	long, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	_, err := ask(ctx, g, nothingSent, func() (any, error) { return nil, g.Conn.Exec(long, query, args...) })
	return err
}

// PrepareBatch is driver.Conn's. It sends no rows.
func (g *guarded) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	return ask(ctx, g, Unreachable, func() (driver.Batch, error) { return g.Conn.PrepareBatch(ctx, query, opts...) })
}

// mostClose is how long the driver is waited for when it is closed. It may
// never come back where it drops old connections at the same moment
// (clickhouse-go's issue 1990, of 2.50.0); nothing is under way then.
const closeTimeout = time.Second

// Close is driver.Conn's.
func (g *guarded) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- g.Conn.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTimeout):
		slog.Warn("the driver does not close its connections; they end with this process")
		return nil
	}
}

// noRow is the answer of servers that were not asked.
type noRow struct{ err error }

// Err is driver.Row's.
func (r noRow) Err() error { return r.err }

// Scan is driver.Row's.
func (r noRow) Scan(...any) error { return r.err }

// ScanStruct is driver.Row's.
func (r noRow) ScanStruct(any) error { return r.err }
