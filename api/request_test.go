package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// requestBuilder builds a request: s.Get("/v1/campaigns").Header("Accept", "text/csv").Send(). The request has the token
// of the server unless Token names another one, and it does not accept a compressed response unless a header says so.
type requestBuilder struct {
	server            *server
	method, url, body string
	header            http.Header
	undocumented      bool
}

// Request builds a request with any method.
func (s *server) Request(method, path, body string) *requestBuilder {
	b := &requestBuilder{server: s, method: method, url: s.URL + path, body: body, header: http.Header{}}
	return b.Header("Accept-Encoding", "identity").Token(s.token)
}

// Get builds a GET request.
func (s *server) Get(path string) *requestBuilder { return s.Request(http.MethodGet, path, "") }

// Post builds a POST request.
func (s *server) Post(path, body string) *requestBuilder {
	return s.Request(http.MethodPost, path, body)
}

// PostItems builds the request of a source, whose key is in the path.
func (s *server) PostItems(key, body string) *requestBuilder {
	return s.Post("/in/"+key, body).Token("")
}

// PostEvents builds a request that stores lines of events.
func (s *server) PostEvents(token, body string) *requestBuilder {
	return s.Post("/events", body).Token(token).Type("application/x-ndjson")
}

// Token replaces the token of the server. An empty one sends no token.
func (b *requestBuilder) Token(secret string) *requestBuilder {
	if secret == "" {
		b.header.Del("Authorization")
		return b
	}
	return b.Header("Authorization", "Bearer "+secret)
}

// Header sets a header.
func (b *requestBuilder) Header(name, value string) *requestBuilder {
	b.header.Set(name, value)
	return b
}

// Type sets the content type of the body.
func (b *requestBuilder) Type(kind string) *requestBuilder { return b.Header("Content-Type", kind) }

// Undocumented omits the validation of the response against the OpenAPI document.
func (b *requestBuilder) Undocumented() *requestBuilder {
	b.undocumented = true
	return b
}

// Build returns the request, for a test that sends it in its own way.
func (b *requestBuilder) Build() *http.Request {
	tb := b.server.t
	tb.Helper()
	request := must.Get(http.NewRequestWithContext(tb.Context(), b.method, b.url, strings.NewReader(b.body)))(tb)
	request.Header = b.header.Clone()
	return request
}

// Send sends the request, and validates it and the response against the OpenAPI document.
func (b *requestBuilder) Send() reply {
	tb := b.server.t
	tb.Helper()
	request := b.Build()
	response, err := http.DefaultClient.Do(request)
	must.OK(tb, err)
	defer func() { _ = response.Body.Close() }()
	got := reply{
		t: tb, request: b.method + " " + request.URL.RequestURI(), Status: response.StatusCode, Header: response.Header,
		Text: string(must.Get(io.ReadAll(response.Body))(tb)),
	}
	if !b.undocumented {
		request.Body = io.NopCloser(strings.NewReader(b.body))
		checkDocumented(tb, request, got)
	}
	return got
}

// reply is a response that was read.
type reply struct {
	t       testing.TB
	request string // its method and target
	Status  int
	Header  http.Header
	Text    string // the body
}

// String describes the response in the message of a test.
func (r reply) String() string {
	return fmt.Sprintf("%s = %d %v\n%.500s", r.request, r.Status, r.Header, strings.TrimSpace(r.Text))
}

// JSON decodes the body. The test ends if it is no JSON.
func (r reply) JSON(into any) {
	r.t.Helper()
	must.OK(r.t, json.Unmarshal([]byte(r.Text), into), "%v", r)
}

// Code returns the code of a problem, or "" for another response.
func (r reply) Code() string {
	var problem struct{ Code string }
	_ = json.Unmarshal([]byte(r.Text), &problem)
	return problem.Code
}

// CheckStatus reports a status that is not the wanted one, and returns the response.
func (r reply) CheckStatus(want int) reply {
	r.t.Helper()
	check.Equal(r.t, r.Status, want, "%v", r)
	return r
}

// RequireStatus ends the test if the status is not the wanted one, and returns the response.
func (r reply) RequireStatus(want int) reply {
	r.t.Helper()
	must.Equal(r.t, r.Status, want, "%v", r)
	return r
}
