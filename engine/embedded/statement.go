package embedded

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// appendSize is the maximum number of bytes of an INSERT that are passed to the
// library at once.
const appendSize = 1 << 20

// runStatement runs a statement on a session of the pool. It passes the chunks of the
// result to emit, which then owns them.
func (e *Engine) runStatement(ctx context.Context, q *request, emit func(*result) error) error {
	s, err := e.pool.takeSession(ctx)
	if err != nil {
		return err
	}
	err = e.runOn(ctx, s, q, emit)
	// A session is not reused after an error. The library returns rows of a
	// failed statement to the next statement of the connection, and keeps a
	// cancelled insert in system.processes.
	if err != nil {
		e.pool.discardSession(s)
	} else {
		e.pool.returnSession(s)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (e *Engine) runOn(ctx context.Context, s *session, q *request, emit func(*result) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.applySettings(q.database, q.settings, e.initial); err != nil {
		return err
	}
	if q.rows != nil {
		return e.insertRows(ctx, s, q)
	}
	if q.format == "Native" {
		if err := e.streamResult(ctx, s, q, emit); !notStreamable(err) {
			return err
		}
	}
	return e.runToEnd(ctx, s, q, emit)
}

// streamResult runs a query and passes its result to emit chunk by chunk.
func (e *Engine) streamResult(ctx context.Context, s *session, q *request, emit func(*result) error) error {
	var stream *result
	e.guardCall(ctx, s, func() { stream = s.startStream(q.sql, q.format, q.parameters) })
	defer stream.free()
	if err := stream.err(); err != nil {
		return err
	}
	for {
		var chunk *result
		e.guardCall(ctx, s, func() { chunk = s.fetchChunk(stream) })
		if err := chunk.err(); err != nil {
			chunk.free()
			return err
		}
		if len(chunk.bytes()) == 0 {
			chunk.free()
			return nil
		}
		if err := emit(chunk); err != nil {
			e.guardCall(ctx, s, func() { s.cancelStream(stream) })
			return err
		}
	}
}

// runToEnd runs a statement to its end and then passes its complete result to
// emit.
func (e *Engine) runToEnd(ctx context.Context, s *session, q *request, emit func(*result) error) error {
	var r *result
	e.guardCall(ctx, s, func() { r = s.runQuery(q.sql, q.format, q.parameters) })
	if err := r.err(); err != nil {
		r.free()
		return err
	}
	if len(r.bytes()) == 0 {
		r.free()
		return nil
	}
	return emit(r)
}

// errRefused means that the engine does not accept more rows of an INSERT.
var errRefused = errors.New("embedded: the engine accepted only some of the rows")

// insertRows appends the rows of a request to a table.
func (e *Engine) insertRows(ctx context.Context, s *session, q *request) error {
	var i *insertion
	e.guardCall(ctx, s, func() { i = s.startInsert(q.sql, q.format, q.parameters) })
	defer i.free()
	if err := i.err(); err != nil {
		return err
	}
	n, err := e.appendRows(ctx, s, q.rows, i)
	if err == nil && n == 0 && q.format == "Native" {
		// The driver sends no body if it fails to encode a block. Without this
		// error it would report that the rows were inserted.
		err = &clickhouse.Exception{Code: codeNoData, Name: "DB::Exception", CodeName: "NO_DATA_TO_INSERT", Message: "the driver sent no rows"}
	}
	if err != nil && !errors.Is(err, errRefused) {
		e.guardCall(ctx, s, i.discardRows)
		return err
	}
	var reason error
	e.guardCall(ctx, s, func() { reason = i.commitRows() })
	if reason != nil {
		return reason
	}
	return err
}

// appendRows appends all bytes of rows and returns their number. If it returns
// errRefused, commitRows returns the reason.
func (e *Engine) appendRows(ctx context.Context, s *session, rows io.ReadCloser, i *insertion) (int64, error) {
	unblock := context.AfterFunc(ctx, func() { _ = rows.Close() }) // ends a Read that waits for rows
	defer unblock()
	buffer := make([]byte, appendSize)
	var total int64
	for {
		n, err := readFull(rows, buffer)
		if cause := context.Cause(ctx); cause != nil {
			return total, cause
		}
		if n > 0 {
			total += int64(n)
			accepted := false
			e.guardCall(ctx, s, func() { accepted = i.appendBytes(buffer[:n]) })
			if !accepted {
				return total, errRefused
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// readFull reads until the buffer is full. Unlike io.ReadFull it returns the
// reader's own error, because io.ErrUnexpectedEOF from a reader does not mean
// its end.
func readFull(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var k int
		k, err = r.Read(buffer[n:])
		n += k
	}
	return n, err
}

// guardCall calls the library. From the end of ctx until the call returns, guardCall
// kills the session's statement repeatedly, because a statement may not be
// visible to the first kill. After guardCall has returned, no kill is in progress
// that could hit the session's next statement.
func (e *Engine) guardCall(ctx context.Context, s *session, call func()) {
	ended, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
			e.killStatement(s)
			select {
			case <-ended:
				return
			case <-time.After(pause):
			}
		}
	})
	call()
	close(ended)
	if !stop() {
		<-quiet
	}
}

// killStatement asks the engine to stop the session's statement. Its error is ignored because
// guardCall tries again.
func (e *Engine) killStatement(s *session) {
	e.control.Lock()
	defer e.control.Unlock()
	_ = e.control.execStatement("KILL QUERY WHERE Settings[" + quoteText(markSetting) + "] = " + quoteText(s.mark) + " ASYNC")
}

// notStreamable reports whether the library refused to stream a statement. It
// streams only SELECT, and refuses other statements before it runs them.
func notStreamable(err error) bool {
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == codeBadArguments && strings.HasPrefix(e.Message, "Streaming query is not supported")
}

// killGrace is the maximum time that a caller whose context has ended waits for
// its statement to stop. Most statements stop within milliseconds, and the
// caller then finds the engine free. After killGrace the caller returns, and
// the statement is still killed in the background. Its connection remains in
// use until then.
const killGrace = time.Second

var errAbandoned = errors.New("embedded: the answer was closed")

// answer is the result of a statement as the body of a response. The statement
// runs one chunk ahead of the reader.
type answer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	chunks chan *result
	ended  chan struct{}
	err    error // the statement's error; set before ended is closed

	mu     sync.Mutex
	chunk  *result // the chunk being read; rest is its unread part
	rest   []byte
	final  error
	closed bool
}

// emitChunk passes a chunk to the reader. It is called by the statement's goroutine.
func (a *answer) emitChunk(r *result) error {
	select {
	case a.chunks <- r:
		return nil
	case <-a.ctx.Done():
		r.free()
		return context.Cause(a.ctx)
	}
}

// nextChunk waits for a chunk or for the end of the statement.
func (a *answer) nextChunk() (*result, error) {
	select {
	case r := <-a.chunks:
		return r, nil
	case <-a.ended:
		return nil, a.finalError()
	case <-a.ctx.Done():
	}
	select {
	case <-a.ended:
		return nil, a.finalError()
	case <-time.After(killGrace):
		return nil, context.Cause(a.ctx)
	}
}

func (a *answer) finalError() error {
	if a.err == nil {
		return io.EOF
	}
	return a.err
}

// awaitFirstChunk waits for the first bytes of the answer. It returns io.EOF if the
// statement ended without a result.
func (a *answer) awaitFirstChunk() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.loadChunk()
	if err != nil {
		a.cancel(errAbandoned)
	}
	return err
}

func (a *answer) loadChunk() error {
	r, err := a.nextChunk()
	if err != nil {
		a.final = err
		return err
	}
	a.chunk, a.rest = r, r.bytes()
	return nil
}

// Read reads the result. If the statement failed, it returns an error other than io.EOF. A
// partial result is thus never mistaken for a complete one.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, errAbandoned
	}
	for len(a.rest) == 0 {
		a.releaseChunk()
		if a.final != nil {
			return 0, a.final
		}
		if err := a.loadChunk(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *answer) releaseChunk() {
	if a.chunk != nil {
		a.chunk.free()
		a.chunk, a.rest = nil, nil
	}
}

// Close stops the statement if it is still running.
func (a *answer) Close() error {
	a.cancel(errAbandoned) // before the lock, to make a waiting Read return
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.releaseChunk()
	select {
	case <-a.ended:
	case <-time.After(killGrace):
	}
	return nil
}
