package embedded

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// appendSize is the maximum number of bytes of an INSERT that are passed to the library at once.
const appendSize = 1 << 20

// runStatement runs a statement on a session of the pool. It passes the chunks of the result to emit, which then owns
// them.
func (e *Engine) runStatement(ctx context.Context, q *request, emit func(*result) error) error {
	s, err := e.pool.takeSession(ctx)
	if err != nil {
		return err
	}
	err = context.Cause(ctx)
	if err == nil {
		err = s.applySettings(q.database, q.settings, e.initial)
	}
	switch {
	case err != nil:
	case q.rows != nil:
		err = e.insertRows(ctx, s, q)
	case q.format == "Native":
		// The library streams only SELECT, and refuses other statements before it runs them.
		err = e.streamResult(ctx, s, q, emit)
		refused, is := errors.AsType[*clickhouse.Exception](err)
		if is && refused.Code == codeBadArguments &&
			strings.HasPrefix(refused.Message, "Streaming query is not supported") {
			err = e.runToEnd(ctx, s, q, emit)
		}
	default:
		err = e.runToEnd(ctx, s, q, emit)
	}
	// A session is not reused after an error. The library returns rows of a failed statement to the next statement of
	// the connection, and keeps a cancelled insert in system.processes.
	if err != nil {
		e.pool.discardSession(s)
	} else {
		e.pool.idle <- s
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// streamResult runs a query and passes its result to emit chunk by chunk.
func (e *Engine) streamResult(ctx context.Context, s *session, q *request, emit func(*result) error) error {
	stream := &result{lib: s.lib}
	e.guardCall(ctx, s, func() {
		stream.handle = callStatement(s.handle, s.lib.streamQuery, q.sql, q.format, q.parameters)
	})
	defer stream.freeMemory()
	if err := stream.err(); err != nil {
		return err
	}
	for {
		chunk := &result{lib: s.lib}
		e.guardCall(ctx, s, func() { chunk.handle = s.lib.fetch(s.handle.cPointer(), stream.handle) })
		if err := chunk.err(); err != nil {
			chunk.freeMemory()
			return err
		}
		if len(chunk.dataBytes()) == 0 { // the end of the stream
			chunk.freeMemory()
			return nil
		}
		if err := emit(chunk); err != nil {
			e.guardCall(ctx, s, func() { s.lib.cancel(s.handle.cPointer(), stream.handle) })
			return err
		}
	}
}

// runToEnd runs a statement to its end and then passes its complete result to emit.
func (e *Engine) runToEnd(ctx context.Context, s *session, q *request, emit func(*result) error) error {
	var r *result
	e.guardCall(ctx, s, func() { r = s.runQuery(q.sql, q.format, q.parameters) })
	if err := r.err(); err != nil {
		r.freeMemory()
		return err
	}
	if len(r.dataBytes()) == 0 {
		r.freeMemory()
		return nil
	}
	return emit(r)
}

// errRefused means that the engine does not accept more rows of an INSERT.
var errRefused = errors.New("embedded: the engine accepted only some of the rows")

// insertRows appends the rows of a request to a table.
func (e *Engine) insertRows(ctx context.Context, s *session, q *request) error {
	var stream insertHandle
	e.guardCall(ctx, s, func() { stream = callStatement(s.handle, s.lib.insert, q.sql, q.format, q.parameters) })
	defer s.lib.insertDestroy(stream)
	if text := s.lib.insertError(stream); text != "" {
		return newException(text)
	}
	n, err := e.appendRows(ctx, s, q.rows, stream)
	if err == nil && n == 0 && q.format == "Native" {
		// The driver sends no body if it fails to encode a block. Without this error it would report that the rows were
		// inserted.
		err = &clickhouse.Exception{
			Code: codeNoData, Name: "DB::Exception", CodeName: "NO_DATA_TO_INSERT", Message: "the driver sent no rows",
		}
	}
	if err != nil && !errors.Is(err, errRefused) {
		e.guardCall(ctx, s, func() { s.lib.insertCancel(stream) })
		return err
	}
	committed := &result{lib: s.lib}
	e.guardCall(ctx, s, func() { committed.handle = s.lib.insertDone(stream) })
	defer committed.freeMemory()
	if reason := committed.err(); reason != nil {
		return reason
	}
	return err
}

// appendRows appends all bytes of rows and returns their number. If it returns errRefused, committing the rows fails
// with the reason.
func (e *Engine) appendRows(ctx context.Context, s *session, rows io.ReadCloser, stream insertHandle) (int64, error) {
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
			var state int32
			e.guardCall(ctx, s, func() {
				state = s.lib.insertAppend(stream, unsafe.Pointer(unsafe.SliceData(buffer)), uintptr(n))
			})
			if state != 0 {
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

// readFull reads until the buffer is full. Unlike io.ReadFull it returns the reader's own error, because
// io.ErrUnexpectedEOF from a reader does not mean its end.
func readFull(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var k int
		k, err = r.Read(buffer[n:])
		n += k
	}
	return n, err
}

// guardCall calls the library. From the end of ctx until the call returns, guardCall kills the session's statement
// repeatedly, because a statement may not be visible to the first kill. After guardCall has returned, no kill is in
// progress that could hit the session's next statement.
func (e *Engine) guardCall(ctx context.Context, s *session, call func()) {
	ended, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		kill := "KILL QUERY WHERE Settings[" + quoteText(markSetting) + "] = " + quoteText(s.mark) + " ASYNC"
		for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
			e.control.Lock()
			_ = e.control.execStatement(kill) // it is tried again
			e.control.Unlock()
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

// killGrace is the maximum time that a caller waits for its statement to stop, after its context has ended or it has
// closed the answer. Most statements stop within milliseconds, and the caller then finds the engine free. After
// killGrace the caller returns, and the statement is still killed in the background. Its connection remains in use
// until then.
const killGrace = time.Second

var errAbandoned = errors.New("embedded: the answer was closed")

// answer is the result of a statement as the body of a response.
type answer struct {
	*bufio.Reader
	pipe   *io.PipeReader
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// startStatement starts a statement. The statement runs until it ends, until ctx ends, or until the answer is closed.
func (e *Engine) startStatement(ctx context.Context, q *request) (*answer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	e.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(e.ctx, func() { cancel(ErrClosed) })
	reader, writer := io.Pipe()
	a := &answer{pipe: reader, ctx: ctx, cancel: cancel, ended: make(chan struct{})}
	a.Reader = bufio.NewReaderSize(a.pipe, 64<<10)
	context.AfterFunc(ctx, func() { _ = reader.CloseWithError(context.Cause(ctx)) }) // ends a Write
	go func() {
		// The engine keeps the state of a statement in its thread, so all calls for one statement must come from the
		// same thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer e.running.Done()
		defer unhook()
		defer close(a.ended)
		_ = writer.CloseWithError(e.runStatement(ctx, q, func(chunk *result) error {
			defer chunk.freeMemory()
			_, err := writer.Write(chunk.dataBytes())
			return err
		}))
	}()
	return a, nil
}

// Read reads the result. If the statement failed, it returns an error other than io.EOF. A partial result is thus never
// mistaken for a complete one.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	return n, a.causeOf(err)
}

// causeOf replaces the error of a closed pipe with its cause.
func (a *answer) causeOf(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return context.Cause(a.ctx)
	}
	return err
}

// Close stops the statement if it is still running.
func (a *answer) Close() error {
	a.cancel(errAbandoned)
	select {
	case <-a.ended:
	case <-time.After(killGrace):
	}
	return nil
}

// session is a connection of the library with the state that its statements see. It runs one statement at a time. The
// library has settings and a current database only per connection. So a session changes them if its next statement
// needs different ones. Its methods must not be called concurrently.
type session struct {
	lib      *library
	handle   handle
	mark     string // value of markSetting, which identifies the running statement
	database string
	settings map[string]string
}

// markSetting is a setting that has no effect without an HTTP server. Every session has a unique value of it. The value
// is visible in system.processes.
const markSetting = "http_headers_progress_interval_ms"

const defaultDatabase = "default"

func (s *session) closeSession() {
	if s.handle != 0 {
		s.lib.closeConn(s.handle)
		s.handle = 0
	}
}

// runQuery runs a statement to its end and returns its complete result.
func (s *session) runQuery(sql, format string, parameters []parameter) *result {
	return &result{s.lib, callStatement(s.handle, s.lib.query, sql, format, parameters)}
}

// applySettings sets the database and the settings of the session. After an error the session must be discarded.
func (s *session) applySettings(database string, settings, initial map[string]string) error {
	database = cmp.Or(database, defaultDatabase)
	if database != s.database {
		if err := s.execStatement("USE " + quoteName(database)); err != nil {
			return err
		}
		s.database = database
	}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if value, ok := s.settings[name]; !ok || value != settings[name] {
			changes = append(changes, quoteName(name)+" = "+quoteText(settings[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) { // reset the others
		if _, ok := settings[name]; ok {
			continue
		}
		value := "DEFAULT"
		if text, ok := initial[name]; ok {
			value = quoteText(text)
		}
		changes = append(changes, quoteName(name)+" = "+value)
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.execStatement("SET " + strings.Join(changes, ", ")); err != nil {
		return err
	}
	s.settings = maps.Clone(settings)
	return nil
}

// execStatement runs a statement and discards its result.
func (s *session) execStatement(sql string) error {
	r := s.runQuery(sql, "Null", nil)
	defer r.freeMemory()
	return r.err()
}

// queryText runs a statement and returns its result as tab-separated text.
func (s *session) queryText(sql string) (string, error) {
	r := s.runQuery(sql, "TSVRaw", nil)
	defer r.freeMemory()
	return string(r.dataBytes()), r.err()
}

var (
	textEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	nameEscaper = strings.NewReplacer(`\`, `\\`, "`", "\\`")
)

func quoteText(s string) string { return "'" + textEscaper.Replace(s) + "'" }

func quoteName(s string) string { return "`" + nameEscaper.Replace(s) + "`" }

// pool lends sessions. A session is lent to one statement at a time.
type pool struct {
	open   func() (*session, error)
	opened chan struct{} // one element per open session
	idle   chan *session
}

// takeSession returns a session. If all are lent, it waits for one until ctx ends.
func (p *pool) takeSession(ctx context.Context) (*session, error) {
	select {
	case s := <-p.idle:
		return s, nil
	default:
	}
	select {
	case s := <-p.idle:
		return s, nil
	case p.opened <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s, err := p.open()
	if err != nil {
		<-p.opened
	}
	return s, err
}

// discardSession closes a session whose state is unknown, instead of returning it to the pool.
func (p *pool) discardSession(s *session) {
	s.closeSession()
	<-p.opened
}
