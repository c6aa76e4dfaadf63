package schema

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/sony/gobreaker/v2"
)

// ErrUnavailable means that no server was contacted, because recent connections failed.
var ErrUnavailable = errors.New("the store is unavailable; connections are retried every 2 seconds")

// dialError is a failure to connect: nothing was sent.
type dialError struct{ error }

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.error }

// IsUnreachable reports whether an error is a failure of the connection, not an error that a server returned.
func IsUnreachable(err error) bool {
	if err == nil || errors.As(err, new(*clickhouse.Exception)) || errors.Is(err, context.Canceled) {
		return false
	}
	if errors.As(err, new(*dialError)) || errors.As(err, new(net.Error)) {
		return true
	}
	isConnectionError := func(target error) bool { return errors.Is(err, target) }
	return slices.ContainsFunc(connectionErrors, isConnectionError)
}

// connectionErrors are the errors of a connection that was refused, closed or cut, beside those of the network.
var connectionErrors = []error{
	ErrUnavailable, net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, clickhouse.ErrConnectionClosed,
}

// breakerTimeout is how long no connection is tried after repeated failures. After that, one statement is tried.
const breakerTimeout = 2 * time.Second

func newBreaker[T any](name string, failures uint32) *gobreaker.CircuitBreaker[T] {
	return gobreaker.NewCircuitBreaker[T](gobreaker.Settings{
		Name: name, Timeout: breakerTimeout,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { return !IsUnreachable(err) },
	})
}

// breakerError replaces the error of an open circuit breaker with ErrUnavailable.
func breakerError(err error) error {
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrUnavailable
	}
	return err
}

// setDialing makes the driver try the hosts, which have the same data, in their order. A host that cannot be reached is
// skipped for breakerTimeout, so only one request has to wait for its dial timeout. The dial timeout of the driver
// becomes the sum of those of all hosts.
func setDialing(o *clickhouse.Options) {
	hosts, timeout := o.Addr, o.DialTimeout
	breakers := map[string]*gobreaker.CircuitBreaker[clickhouse.DialResult]{}
	for _, address := range hosts {
		breakers[address] = newBreaker[clickhouse.DialResult](address, 1)
	}
	o.DialTimeout *= time.Duration(len(hosts))
	o.DialStrategy = func(ctx context.Context, _ int, o *clickhouse.Options, dial clickhouse.Dial) (
		clickhouse.DialResult, error,
	) {
		with := *o
		with.DialTimeout = timeout
		var errs []error
		for _, address := range hosts {
			result, err := breakers[address].Execute(func() (clickhouse.DialResult, error) {
				one, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				result, err := dial(one, address, &with)
				switch {
				case err == nil || ctx.Err() != nil || errors.As(err, new(*clickhouse.Exception)):
					return result, err
				case errors.As(err, new(*tls.CertificateVerificationError)):
					err = fmt.Errorf("the certificate is not trusted; check ca=: %w", err)
				}
				return result, &dialError{fmt.Errorf("%s: %w", address, err)}
			})
			if err == nil {
				return result, nil
			}
			errs = append(errs, breakerError(err))
			if !IsUnreachable(breakerError(err)) { // for example a wrong password, which every host would reject
				break
			}
		}
		return clickhouse.DialResult{}, errors.Join(errs...)
	}
}

// guarded retries statements that are safe to repeat, and stops contacting servers that fail.
//
// Query, QueryRow, Ping and PrepareBatch are retried if the connection breaks before the first row. Statements that may
// change data are retried only if nothing was sent.
type guarded struct {
	driver.Conn
	breaker  *gobreaker.CircuitBreaker[any]
	attempts int
}

func newGuarded(conn driver.Conn, hosts int) *guarded {
	return &guarded{Conn: conn, breaker: newBreaker[any]("store", 3), attempts: hosts + 1}
}

// retryCall calls do until it succeeds, while retryable reports true, up to g.attempts times.
func retryCall[T any](ctx context.Context, g *guarded, retryable func(error) bool, do func() (T, error)) (T, error) {
	var result T
	_, err := g.breaker.Execute(func() (any, error) {
		var last error
		for attempt := 1; ; attempt++ {
			var err error
			result, err = do()
			if last != nil && errors.Is(err, ErrUnavailable) {
				err = last // last names the cause
			}
			last = err
			mayPass := retryable(err) && !errors.Is(err, ErrUnavailable)
			if attempt >= g.attempts || !mayPass || ctx.Err() != nil {
				if err != nil && errors.Is(ctx.Err(), context.Canceled) { // not a failure of the servers
					err = fmt.Errorf("%w: %w", context.Canceled, err)
				}
				return nil, err
			}
		}
	})
	return result, breakerError(err)
}

func (g *guarded) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	return retryCall(ctx, g, IsUnreachable, func() (driver.Rows, error) { return g.Conn.Query(ctx, query, args...) })
}

func (g *guarded) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	row, err := retryCall(ctx, g, IsUnreachable, func() (driver.Row, error) {
		row := g.Conn.QueryRow(ctx, query, args...)
		return row, row.Err()
	})
	if row == nil {
		return errRow{err}
	}
	return row
}

func (g *guarded) Ping(ctx context.Context) error {
	_, err := retryCall(ctx, g, IsUnreachable, func() (any, error) { return nil, g.Conn.Ping(ctx) })
	return err
}

// changeTimeout is the maximum duration of a statement that changes stored data. Such a statement sends no progress.
const changeTimeout = time.Hour

func (g *guarded) Exec(ctx context.Context, query string, args ...any) error {
	long, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	nothingSent := func(err error) bool { return errors.As(err, new(*dialError)) }
	_, err := retryCall(ctx, g, nothingSent, func() (any, error) { return nil, g.Conn.Exec(long, query, args...) })
	return err
}

// PrepareBatch implements driver.Conn. It sends no rows, so it can be retried. It reads the columns of the table also
// if they are known, which finds out whether the connection is broken before rows are sent.
func (g *guarded) PrepareBatch(ctx context.Context, query string,
	opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes(nil))
	return retryCall(ctx, g, IsUnreachable, func() (driver.Batch, error) {
		return g.Conn.PrepareBatch(ctx, query, opts...)
	})
}

// closeTimeout is the maximum time to wait for the driver to close. clickhouse-go 2.50.0 may deadlock in Close while it
// drops old connections (issue 1990). No statement is running then.
const closeTimeout = time.Second

func (g *guarded) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- g.Conn.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTimeout):
		slog.Warn("close of store connections timed out", "timeout", closeTimeout)
		return nil
	}
}

// errRow is a row that returns an error.
type errRow struct{ err error }

func (r errRow) Err() error { return r.err }

func (r errRow) Scan(...any) error { return r.err }

func (r errRow) ScanStruct(any) error { return r.err }
