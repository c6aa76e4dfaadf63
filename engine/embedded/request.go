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

// request is a statement as the driver sent it.
type request struct {
	sql        string
	format     string
	database   string
	settings   map[string]string
	parameters []parameter
	external   []external
	rows       io.ReadCloser // what an INSERT appends; nil if the statement is whole
	whole      bool          // the answer starts when the statement has ended
}

// Values of a request's URL that are not settings.
var notSettings = map[string]bool{
	"database": true, "default_format": true, "client_protocol_version": true, "query": true,
	"query_id": true, "quota_key": true, "wait_end_of_query": true, "buffer_size": true,
	"user": true, "password": true, markSetting: true,
	// An insert that has returned outlives the process, which is no less than
	// waiting for an asynchronous one gives.
	"async_insert": true, "wait_for_async_insert": true,
}

// Values of a request's URL that ask for what the library does not have.
var refused = map[string]string{
	"compress":   "compression between driver and engine; leave Options.Compression empty",
	"decompress": "compression between driver and engine; leave Options.Compression empty",
	"session_id": "HTTP sessions",
	"role":       "roles",
}

// insertFormat finds the format at the end of an INSERT.
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
		settings: make(map[string]string), whole: values.Get("wait_end_of_query") == "1",
	}
	form := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	if form {
		if err := q.readForm(r, values); err != nil {
			return nil, err
		}
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
	if form {
		return q, nil
	}
	return q, q.readStatement(values.Get("query"), r.Body)
}

// readStatement takes the statement from the URL, where the driver puts it
// when the body holds rows, or else from the body.
func (q *request) readStatement(statement string, body io.ReadCloser) error {
	if statement == "" {
		if body == nil {
			return badRequest("no statement")
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
		return badRequest("a statement followed by rows must end with FORMAT and the format's name")
	}
	q.sql, q.format, q.rows = m[1], m[2], body
	return nil
}

func badRequest(format string, values ...any) error {
	return &clickhouse.Exception{Code: codeBadArguments, Name: "DB::Exception", CodeName: "BAD_ARGUMENTS", Message: fmt.Sprintf(format, values...)}
}
