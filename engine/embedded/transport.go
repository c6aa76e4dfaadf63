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

// transport answers the requests of one connection of the driver.
type transport struct {
	engine  *Engine
	greeted atomic.Bool
}

// greeting is the driver's first question on a connection.
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
			return nil, fmt.Errorf("embedded: this version of clickhouse-go opens a connection with %q; this package expects %q", q.sql, greeting)
		}
		t.greeted.Store(true)
		return t.greet(r)
	}
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

// greet says who the engine is. It names revision 0, at which the driver then
// reads all results of this connection; this one it reads at the revision it
// asked for.
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

// failure answers with an exception of the engine; any other error is one of
// the transport.
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

// answer starts a statement, which runs until its end, until ctx ends or until
// the answer is closed.
func (e *Engine) answer(ctx context.Context, q *request) (*answer, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(e.ctx, func() { cancel(ErrClosed) })
	a := &answer{ctx: ctx, cancel: cancel, chunks: make(chan *result), ended: make(chan struct{})}
	go func() {
		// The engine keeps what it knows of a statement in its thread: all
		// calls for one statement come from the same.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer e.running.Done()
		defer unhook()
		a.err = e.run(ctx, q, a.emit)
		close(a.ended)
	}()
	return a, nil
}
