package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// transport serves the requests of one connection of the driver.
type transport struct {
	engine  *Engine
	greeted atomic.Bool
}

// greeting is the first statement of the driver on a connection.
const greeting = "SELECT displayName(), version(), revision(), timezone()"

// RoundTrip runs the statement of a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	q, err := newRequest(r)
	if err != nil {
		return failure(r, err)
	}
	if !t.greeted.Load() {
		if q.sql != greeting {
			return nil, fmt.Errorf("embedded: this version of clickhouse-go opens a connection with %q; must be %q", q.sql, greeting)
		}
		t.greeted.Store(true)
		return t.greet(r)
	}
	if key, is := t.engine.described.keyOf(q); is {
		return t.describe(r, q, key)
	}
	return t.respond(r, q)
}

// respond runs the statement of a request.
func (t *transport) respond(r *http.Request, q *request) (*http.Response, error) {
	a, err := t.engine.answer(r.Context(), q)
	if err != nil {
		return nil, err
	}
	err = a.start()
	switch {
	case err == nil:
		return response(r, http.StatusOK, a), nil
	case errors.Is(err, io.EOF):
		return response(r, http.StatusOK, nil), nil
	default:
		return failure(r, err)
	}
}

// greet responds to the greeting with the engine's name, version, revision and
// time zone. It returns revision 0, at which the driver then reads all results
// of this connection. The driver reads this result at the revision that it
// requested.
func (t *transport) greet(r *http.Request) (*http.Response, error) {
	revision, err := strconv.ParseUint(r.URL.Query().Get("client_protocol_version"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("embedded: client_protocol_version: %w", err)
	}
	block := proto.NewBlock()
	err = errors.Join(
		block.AddColumn("displayName()", "String"), block.AddColumn("version()", "String"),
		block.AddColumn("revision()", "UInt32"), block.AddColumn("timezone()", "String"))
	if err != nil {
		return nil, err
	}
	if err := block.Append("embedded", t.engine.version, uint32(0), t.engine.timezone); err != nil {
		return nil, err
	}
	buffer := new(chproto.Buffer)
	if err := block.Encode(buffer, revision); err != nil {
		return nil, err
	}
	return response(r, http.StatusOK, io.NopCloser(bytes.NewReader(buffer.Buf))), nil
}

func response(r *http.Request, status int, body io.ReadCloser) *http.Response {
	resp := &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: body, ContentLength: -1, Request: r,
	}
	if body == nil {
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	return resp
}

// failure returns a response with an exception of the engine. It returns any
// other error as an error of the transport.
func failure(r *http.Request, err error) (*http.Response, error) {
	var e *clickhouse.Exception
	if !errors.As(err, &e) {
		return nil, err
	}
	text := fmt.Sprintf("Code: %d. %s: %s", e.Code, e.Name, e.Message)
	resp := response(r, http.StatusInternalServerError, io.NopCloser(bytes.NewReader([]byte(text))))
	resp.Header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(int(e.Code)))
	if e.CodeName != "" {
		resp.Header.Set("X-ClickHouse-Exception-Name", e.CodeName)
	}
	return resp, nil
}

// answer starts a statement. The statement runs until it ends, until ctx ends,
// or until the answer is closed.
func (e *Engine) answer(ctx context.Context, q *request) (*answer, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(e.ctx, func() { cancel(ErrClosed) })
	a := &answer{ctx: ctx, cancel: cancel, chunks: make(chan *result), ended: make(chan struct{})}
	go func() {
		// The engine keeps the state of a statement in its thread, so all calls
		// for one statement must come from the same thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer e.running.Done()
		defer unhook()
		a.err = e.described.around(q.sql, func() error { return e.run(ctx, q, a.emit) })
		close(a.ended)
	}()
	return a, nil
}
