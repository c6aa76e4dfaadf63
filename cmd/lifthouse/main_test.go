package main

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) {
	schematest.Main(m)
}

// house is a store with its API, on which commands are executed.
type house struct {
	input string            // file that commands read; empty: nothing
	env   map[string]string // of commands
	t     *testing.T
	store *app.Store
	url   string
	token string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return houseOn(t, schematest.OpenMigrated(t))
}

func houseOn(t *testing.T, conn driver.Conn) *house {
	t.Helper()
	s := must.Get(app.NewStore(t.Context(), conn, schema.Address{}, app.Options{Limits: source.DefaultLimits}))(t)
	server := httptest.NewServer(s.API(t.Context(), api.DefaultOptions))
	t.Cleanup(server.Close)
	return &house{t: t, store: s, url: server.URL}
}

// run executes a command line and returns its exit code and output.
func (h *house) run(args ...string) (code int, out, complaints string) {
	h.t.Helper()
	in := must.Get(os.Open(cmp.Or(h.input, os.DevNull)))(h.t)
	defer func() { _ = in.Close() }()
	stdout, stderr := capture(h.t), capture(h.t)
	p := &program{stdin: in, stdout: stdout.write, stderr: stderr.write, dir: ".", args: args, getenv: func(name string) string { return h.env[name] }, running: h.store}
	code = p.runCommand(h.t.Context())
	return code, stdout.text(), stderr.text()
}

// must executes a command line that must succeed.
func (h *house) must(args ...string) string {
	h.t.Helper()
	code, out, complaints := h.run(args...)
	must.Equal(h.t, code, exitOK, "lifthouse %s: exit %s%s", strings.Join(args, " "), out, complaints)
	return out
}

type captured struct {
	write *os.File
	done  chan string
}

func capture(t *testing.T) *captured {
	t.Helper()
	read, write, err := os.Pipe()
	must.OK(t, err)
	c := &captured{write: write, done: make(chan string, 1)}
	go func() {
		text, _ := io.ReadAll(read)
		_ = read.Close()
		c.done <- string(text)
	}()
	return c
}

func (c *captured) text() string {
	_ = c.write.Close()
	return <-c.done
}

// get sends a request and decodes the response, which must be 200, into body.
func (h *house) get(path string, body any) {
	h.t.Helper()
	if err := h.store.Facts.RefreshFacts(h.t.Context()); err != nil { // as a server does
		h.t.Fatal(err)
	}
	request := must.Get(http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, http.NoBody))(h.t)
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token)
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(h.t, err)
	defer func() { _ = response.Body.Close() }()
	text := must.Get(io.ReadAll(response.Body))(h.t)
	must.Equal(h.t, response.StatusCode, http.StatusOK, "GET %s %.500s", path, text)
	must.OK(h.t, json.Unmarshal(text, body), "GET %s: %.500s", path, text)
}
