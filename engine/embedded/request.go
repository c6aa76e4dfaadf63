package embedded

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

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
	// Inserts are synchronous: once an insert has returned, its rows survive the process. An
	// asynchronous insert with waiting would not guarantee more.
	"async_insert": true, "wait_for_async_insert": true,
}

// refused are the parameters of a request's URL that need a feature that the
// library does not have.
var refused = map[string]string{
	"compress":   "compression between driver and engine; leave Options.Compression empty",
	"decompress": "compression between driver and engine; leave Options.Compression empty",
	"session_id": "HTTP sessions",
	"role":       "roles",
	"readonly":   "read-only sessions",
}

// insertFormat matches the format at the end of an INSERT.
var insertFormat = regexp.MustCompile(`(?is)^(.*\S)\s+FORMAT\s+([A-Za-z][A-Za-z0-9_]*)\s*;?\s*$`)

func newRequest(r *http.Request) (*request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("query string: %v", err)
	}
	if r.Header.Get("Content-Encoding") != "" || r.Header.Get("Accept-Encoding") != "" {
		return nil, badRequest("the embedded engine does not support %s", refused["compress"])
	}
	q := &request{
		database: values.Get("database"), format: values.Get("default_format"),
		settings: make(map[string]string),
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, badRequest("the embedded engine does not support external tables")
	}
	for name := range values {
		value := values.Get(name)
		parameterName, isParameter := strings.CutPrefix(name, "param_")
		switch {
		case isParameter:
			q.parameters = append(q.parameters, parameter{name: parameterName, value: value})
		case refused[name] != "":
			return nil, badRequest("the embedded engine does not support %s", refused[name])
		case !notSettings[name]:
			q.settings[name] = value
		}
	}
	return q, q.readStatement(values.Get("query"), r.Body)
}

// readStatement reads the statement from the URL, or from the body if the URL
// has none. The driver puts the statement into the URL if the body contains
// rows.
func (q *request) readStatement(statement string, body io.ReadCloser) error {
	if statement == "" {
		if body == nil {
			return badRequest("the request contains no statement")
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("embedded: read the statement: %w", err)
		}
		q.sql = string(text)
		return nil
	}
	m := insertFormat.FindStringSubmatch(statement)
	if m == nil {
		return badRequest("invalid statement: a statement with rows must end with FORMAT and the name of the format")
	}
	q.sql, q.format, q.rows = m[1], m[2], body
	return nil
}

func badRequest(format string, values ...any) error {
	return &clickhouse.Exception{Code: codeBadArguments, Name: "DB::Exception", CodeName: "BAD_ARGUMENTS", Message: fmt.Sprintf(format, values...)}
}
