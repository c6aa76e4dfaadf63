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
		return errorResponse(r, err)
	}
	if !t.greeted.Load() {
		if q.sql != greeting {
			return nil, fmt.Errorf("embedded: this version of clickhouse-go opens a connection with %q; must be %q", q.sql, greeting)
		}
		t.greeted.Store(true)
		return t.respondToGreeting(r)
	}
	a, err := t.engine.startStatement(r.Context(), q)
	if err != nil {
		return nil, err
	}
	err = a.awaitFirstChunk()
	switch {
	case err == nil:
		return newResponse(r, http.StatusOK, a), nil
	case errors.Is(err, io.EOF):
		return newResponse(r, http.StatusOK, nil), nil
	default:
		return errorResponse(r, err)
	}
}

// respondToGreeting responds to the greeting with the engine's name, version, revision and time
// zone. It returns revision 0, so the driver reads all later results of this connection at
// revision 0. The driver reads this first result at the revision that it requested.
func (t *transport) respondToGreeting(r *http.Request) (*http.Response, error) {
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
	return newResponse(r, http.StatusOK, io.NopCloser(bytes.NewReader(buffer.Buf))), nil
}

func newResponse(r *http.Request, status int, body io.ReadCloser) *http.Response {
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

// errorResponse returns a response with an exception of the engine. It returns any
// other error as an error of the transport.
func errorResponse(r *http.Request, err error) (*http.Response, error) {
	var e *clickhouse.Exception
	if !errors.As(err, &e) {
		return nil, err
	}
	text := fmt.Sprintf("Code: %d. %s: %s", e.Code, e.Name, e.Message)
	resp := newResponse(r, http.StatusInternalServerError, io.NopCloser(bytes.NewReader([]byte(text))))
	resp.Header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(int(e.Code)))
	if e.CodeName != "" {
		resp.Header.Set("X-ClickHouse-Exception-Name", e.CodeName)
	}
	return resp, nil
}

// startStatement starts a statement. The statement runs until it ends, until ctx ends,
// or until the answer is closed.
func (e *Engine) startStatement(ctx context.Context, q *request) (*answer, error) {
	if err := e.beginStatement(); err != nil {
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
		a.err = e.runStatement(ctx, q, a.emitChunk)
		close(a.ended)
	}()
	return a, nil
}
