package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds/boundstest"
	"lifthouse/cmd/internal/config"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
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
	s := must.Get(app.NewStore(t.Context(), conn, schema.Address{},
		app.Options{Limits: source.DefaultLimits, SecretFolder: os.TempDir()}))(t)
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
	p := &program{
		stdin: in, stdout: stdout.write, stderr: stderr.write, dir: ".", args: args,
		getenv: func(name string) string { return h.env[name] }, running: h.store,
	}
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

// results returns a report of the API.
func (h *house) results(path string) result.Report {
	h.t.Helper()
	must.OK(h.t, h.store.Facts.RefreshFacts(h.t.Context())) // as a server does
	request := must.Get(http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, http.NoBody))(h.t)
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token)
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(h.t, err)
	defer func() { _ = response.Body.Close() }()
	text := must.Get(io.ReadAll(response.Body))(h.t)
	must.Equal(h.t, response.StatusCode, http.StatusOK, "GET %s %.500s", path, text)
	return must.JSON[result.Report](h.t, text)
}

const anyID = "an id is any positive integer of 64 bits"

var meaningful = map[string]string{
	"shipped=9223372036854775807": anyID, "account=9223372036854775807": anyID,
	"website=9223372036854775807": anyID, "webhook=9223372036854775807": anyID,
}

// runAlone executes a command line whose context has ended, so that one that is not refused ends, too. It fails the
// test if the command creates a file.
func runAlone(t *testing.T, env map[string]string, args ...string) (code int, complaints string) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	end()
	dir := t.TempDir()
	stderr := capture(t)
	p := &program{
		stdout: stderr.write, stderr: stderr.write, dir: dir, args: args,
		getenv: func(name string) string { return env[name] },
	}
	code = p.runCommand(ctx)
	complaints = stderr.text()
	files, err := os.ReadDir(dir)
	must.That(t, err == nil, "%q creates %v: %v", args, files, err)
	check.Equal(t, len(files), 0, "%q creates %v: %v", args, files, err)
	return code, complaints
}

func TestFlagsHaveBounds(t *testing.T) {
	p := boundstest.Program{
		Root: (&program{getenv: func(string) string { return "" }}).rootCommand(),
		Run:  func(args ...string) (int, string) { return runAlone(t, nil, args...) },
		Arguments: map[string][]string{
			"lifthouse import": {"x"}, "lifthouse source add": {"segment"}, "lifthouse backup": {"x"},
			"lifthouse restore": {"x"}, "lifthouse token revoke": {"1"}, "lifthouse share": {"campaign", "1"},
			"lifthouse webhook resend": {"x"}, "lifthouse outcome": {"campaign", "1"}, "lifthouse webhook test": {"1"},
			"lifthouse report": {"campaign", "1"}, "lifthouse reconcile": {"orders.csv", "campaign", "1"}, "lifthouse looks": {"campaign", "1"}, "lifthouse ask": {"x"},
			"lifthouse note": {"x"}, "lifthouse opinion": {"x"}, "lifthouse picture": {"x"}, "lifthouse readout": {"campaign", "1"}, "lifthouse rates import": {"x"},
			"lifthouse compare": {"--control=1/2", "--treatment=1/2"},
		},
		Meaningful: meaningful,
	}
	p.CheckFlags(t)
}

// TestSettingsHaveBounds sets extremes in the environment and in a file.
func TestSettingsHaveBounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lifthouse.yaml")
	for _, s := range config.SettingsOf((&program{getenv: func(string) string { return "" }}).rootCommand()) {
		for _, value := range boundstest.ExtremeValues(s.Flag) {
			must.OK(t, os.WriteFile(file, []byte(s.Name+": "+value+"\n"), 0o600))
			code, complaints := runAlone(t, map[string]string{s.VariableName(): value}, "check")
			want := fmt.Sprintf("%s %q: must be ", s.VariableName(), value)
			check.Equal(t, code, exitUsage, "exit %d, %q; want %d and %q", code, complaints, exitUsage, want)
			check.Contains(t, complaints, want, "exit %d, %q; want %d and %q", code, complaints, exitUsage, want)
			code, complaints = runAlone(t, map[string]string{config.FileVariable: file}, "token", "list")
			want = file + ": " + s.Name
			check.Equal(t, code, exitUsage, "%s: exit %d, %q; want %d and %q", value, code, complaints, exitUsage, want)
			check.Contains(t, complaints, want, "%s: exit %d, %q; want %d and %q", value, code, complaints, exitUsage,
				want)
			check.Contains(t, complaints, "must be ", "%s: exit %d, %q; want %d and %q", value, code, complaints,
				exitUsage, want)
		}
	}
}

func TestCompareEndsWhileItWaits(t *testing.T) {
	in, write, err := os.Pipe()
	must.OK(t, err)
	defer func() { _ = write.Close() }()
	stdout, stderr := capture(t), capture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &program{
		stdin: in, stdout: stdout.write, stderr: stderr.write, args: []string{"compare", "--json"},
		getenv: func(string) string { return "" },
	}
	code := p.runCommand(ctx)
	check.Equal(t, code, exitFailed, "exit %d, want %d", code, exitFailed)
	check.Equal(t, stdout.text(), "", "exit %d, want %d", code, exitFailed)
	check.Equal(t, stderr.text(), "lifthouse: interrupted\n", "exit %d, want %d", code, exitFailed)
}

// TestAServerThatDoesNotStopIsCutOff has a background task that ignores the end of its context, on a store that does
// not answer until it is released.
func TestAServerThatDoesNotStopIsCutOff(t *testing.T) {
	var deaf atomic.Bool
	asked, released := make(chan struct{}, 1), make(chan struct{})
	conn := schematest.HookedConn{Conn: schematest.OpenMigrated(t), Before: func(context.Context, string) error {
		if deaf.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-released
		}
		return nil
	}}
	h := houseOn(t, conn)
	out := capture(t)
	p := &program{
		stdin: os.Stdin, stdout: out.write, stderr: out.write, dir: ".",
		getenv: func(string) string { return "" }, overdue: make(chan struct{}), stopMargin: 100 * time.Millisecond,
	}
	p.rootCommand() // sets what the flags have by default
	p.serving.Listen, p.serving.DrainTimeout, p.serving.logLevel = "127.0.0.1:0", 50*time.Millisecond, "error"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- p.serveStore(ctx, h.store, func(*app.Store, string) {
			deaf.Store(true)
			<-asked // the catalogue is being read
			stop()
		})
	}()
	<-p.overdue
	select {
	case err := <-ended:
		t.Errorf("it ended by itself: %v", err)
	default:
	}
	close(released)
	must.OK(t, <-ended)
	out.text()
}

// TestArgumentsAreUTF8 runs commands with text that is not UTF-8, in arguments, flags and settings.
func TestArgumentsAreUTF8(t *testing.T) {
	h := newHouse(t)
	const wrong = "\xff\xfe"
	for _, args := range [][]string{
		{wrong},
		{"events", "--visitor", wrong},
		{"events", "--visitor=" + wrong},
		{"forget", "--visitor", wrong, "--yes"},
		{"discover", wrong, "--goal", "x"},
		{"discover", "x", "--goal", wrong},
		{"source", "add", wrong},
		{"token", "create", "--scope", "read", "--name", wrong},
		{"report", "campaign", wrong},
		{"import", wrong},
	} {
		code, out, complaints := h.run(args...)
		check.Equal(t, code, exitUsage, "exit code of %q", args)
		check.Equal(t, out, "", "output of %q", args)
		check.Contains(t, complaints, "\\xff\\xfe\": must be UTF-8", "complaint of %q", args)
	}
	h.env = map[string]string{"LIFTHOUSE_PUBLIC_URL": "http://" + wrong}
	code, _, complaints := h.run("token", "list")
	check.Equal(t, code, exitUsage, "exit code with a setting")
	check.Contains(t, complaints, `LIFTHOUSE_PUBLIC_URL "http://\xff\xfe": must be UTF-8`)
	_, err := h.store.Journal.ReadVisitor(t.Context(), wrong, nil, 10)
	check.That(t, err != nil, "a visitor that is not UTF-8 is looked up")
}

// TestNamesOfSendersAreHarmless sends an item whose name has control characters to a source, and lists the sources.
func TestNamesOfSendersAreHarmless(t *testing.T) {
	h := newHouse(t)
	address := strings.TrimSpace(h.must("source", "add", "segment", "--domain", "shop.example.com"))
	_, key, _ := strings.Cut(address, "/in/")
	body := strings.NewReader(`{"anonymousId":"v","event":"a\u001b[2J\nWarning: false"}`)
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/in/"+key, body))(t)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer func() { _ = response.Body.Close() }()
	check.Equal(t, response.StatusCode, http.StatusOK)
	check.Contains(t, h.must("source", "list"), "Ignored of segment: a�[2J Warning: false (1)\n")
}
