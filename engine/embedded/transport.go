package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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
			return nil, fmt.Errorf("embedded: this version of clickhouse-go opens a connection with %q; must be %q",
				q.sql, greeting)
		}
		t.greeted.Store(true)
		return t.respondToGreeting(r)
	}
	a, err := t.engine.startStatement(r.Context(), q)
	if err != nil {
		return nil, err
	}
	_, err = a.Peek(1)
	if err == nil { // the first bytes of the answer
		return newResponse(r, http.StatusOK, a), nil
	}
	defer func() { _ = a.Close() }()
	if errors.Is(err, io.EOF) { // the statement ended without a result
		return newResponse(r, http.StatusOK, nil), nil
	}
	return errorResponse(r, a.causeOf(err))
}

// respondToGreeting responds to the greeting with the engine's name, version, revision and time zone. It returns
// revision 0, so the driver reads all later results of this connection at revision 0. The driver reads this first
// result at the revision that it requested.
func (t *transport) respondToGreeting(r *http.Request) (*http.Response, error) {
	revision, err := strconv.ParseUint(r.URL.Query().Get("client_protocol_version"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("embedded: client_protocol_version: %w", err)
	}
	block := proto.NewBlock()
	buffer := new(chproto.Buffer)
	err = errors.Join(
		block.AddColumn("displayName()", "String"), block.AddColumn("version()", "String"),
		block.AddColumn("revision()", "UInt32"), block.AddColumn("timezone()", "String"),
		block.Append("embedded", t.engine.version, uint32(0), t.engine.timezone), block.Encode(buffer, revision))
	if err != nil {
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
		resp.Body = http.NoBody
		resp.ContentLength = 0
	}
	return resp
}

// errorResponse returns a response with an exception of the engine. It returns any other error as an error of the
// transport.
func errorResponse(r *http.Request, err error) (*http.Response, error) {
	e, isException := errors.AsType[*clickhouse.Exception](err)
	if !isException {
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

// request is a statement as sent by the driver.
type request struct {
	sql        string
	format     string
	database   string
	settings   map[string]string
	parameters []parameter
	rows       io.ReadCloser // the rows of an INSERT; nil if the statement contains all its data
}

// notSettings are the parameters of a request's URL that are not settings.
var notSettings = map[string]bool{
	"database": true, "default_format": true, "client_protocol_version": true, "query": true,
	"query_id": true, markSetting: true,
	// Inserts are synchronous: once an insert has returned, its rows survive the process. An asynchronous insert with
	// waiting would not guarantee more.
	"async_insert": true, "wait_for_async_insert": true,
}

// insertFormat matches the format at the end of an INSERT.
var insertFormat = regexp.MustCompile(`(?is)^(.*\S)\s+FORMAT\s+([A-Za-z][A-Za-z0-9_]*)\s*;?\s*$`)

func newRequest(r *http.Request) (*request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("query string: %v", err)
	}
	q := &request{
		database: values.Get("database"), format: values.Get("default_format"),
		settings: make(map[string]string),
	}
	for name := range values {
		value := values.Get(name)
		parameterName, isParameter := strings.CutPrefix(name, "param_")
		switch {
		case isParameter:
			q.parameters = append(q.parameters, parameter{name: parameterName, value: value})
		case !notSettings[name]:
			q.settings[name] = value
		}
	}
	// The driver puts the statement into the URL if the body has rows.
	statement := values.Get("query")
	if statement == "" {
		if r.Body == nil {
			return q, badRequest("the request contains no statement")
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return q, fmt.Errorf("embedded: read the statement: %w", err)
		}
		q.sql = string(text)
		return q, nil
	}
	m := insertFormat.FindStringSubmatch(statement)
	if m == nil {
		return q, badRequest("invalid statement: a statement with rows must end with FORMAT and the name of the format")
	}
	q.sql, q.format, q.rows = m[1], m[2], r.Body
	return q, nil
}

func badRequest(format string, values ...any) error {
	return &clickhouse.Exception{
		Code: codeBadArguments, Name: "DB::Exception", CodeName: "BAD_ARGUMENTS",
		Message: fmt.Sprintf(format, values...),
	}
}

// Error codes of ClickHouse that this package returns or checks.
const (
	codeBadArguments = 36
	codeNoData       = 108
)

var (
	exceptionStart = regexp.MustCompile(`^Code: (\d+)\. (DB::[A-Za-z:]*Exception): `)
	exceptionName  = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)(?: \(version [^)]*\))?\.?\s*$`)
)

// newException parses an error text of the engine, such as
//
//	Code: 60. DB::Exception: Unknown table expression identifier 't'. (UNKNOWN_TABLE)
//
// A text without a code gets code 1002, UNKNOWN_EXCEPTION.
func newException(text string) *clickhouse.Exception {
	e := &clickhouse.Exception{Code: 1002, Name: "DB::Exception", Message: text}
	if m := exceptionStart.FindStringSubmatch(text); m != nil {
		if code, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			e.Code = int32(code)
		}
		e.Name = m[2]
		e.Message = text[len(m[0]):]
	}
	if m := exceptionName.FindStringSubmatch(text); m != nil {
		e.CodeName = m[1]
	}
	return e
}
