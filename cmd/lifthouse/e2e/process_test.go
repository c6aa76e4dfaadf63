package e2e

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lifthouse/cmd/internal/remote"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// process is a running lifthouse.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	said bytes.Buffer // before it was ready
	log  safeBuffer   // standard error
	done chan error
}

func lifthouse(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = os.Environ()
	return cmd
}

// safeBuffer can be read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // if someone awaits a text: closed by the next write
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more != nil {
		close(b.more)
		b.more = nil
	}
	return b.text.Write(p)
}

// await returns the first match of the text, once there is one.
func (b *safeBuffer) await(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	for {
		b.mu.Lock()
		found := pattern.FindString(b.text.String())
		if b.more == nil {
			b.more = make(chan struct{})
		}
		more := b.more
		b.mu.Unlock()
		if found != "" {
			return found
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("the log lacks %s", pattern)
		}
	}
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startAndAwaitLog starts a command, and returns its log once a line of it contains a text. It fails the test if the
// command ends before that.
func startAndAwaitLog(t *testing.T, cmd *exec.Cmd, text string) *safeBuffer {
	t.Helper()
	stderr := must.Get(cmd.StderrPipe())(t)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	log := &safeBuffer{}
	lines := bufio.NewScanner(io.TeeReader(stderr, log))
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			go func() { _, _ = io.Copy(log, stderr) }()
			return log
		}
	}
	t.Fatalf("%q ended without the line %q: %s", cmd.Args, text, log.String())
	return nil
}

var answersAt = regexp.MustCompile(`answers at (https?://[^/]+)/v1`)

// start runs a command that serves until the test ends. It returns when the server answers. A demo has no visitors
// unless args ask for them.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	if args[0] == "demo" && !slices.Contains(args, "--traffic") {
		args = append(args, "--traffic=false")
	}
	return startCommand(t, lifthouse(t, append(args, "--listen", "127.0.0.1:0")...))
}

// startCommand is start for a command of another program or another user.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan error, 1)}
	out := must.Get(p.cmd.StdoutPipe())(t)
	p.cmd.Stderr = &p.log
	must.OK(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the end of its log:\n%s", lastLines(p.log.String(), 30))
		}
	})
	lines := bufio.NewScanner(out)
	for p.url == "" && lines.Scan() {
		p.said.WriteString(lines.Text() + "\n")
		if found := answersAt.FindStringSubmatch(lines.Text()); found != nil {
			p.url = found[1]
		}
	}
	must.That(t, p.url != "", "it never answered; it said:\n%s", p.said.String())
	rest := make(chan struct{})
	go func() {
		for lines.Scan() {
			p.said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "curl") {
				break
			}
		}
		close(rest)
		_, _ = io.Copy(io.Discard, out)
		p.done <- p.cmd.Wait()
	}()
	if cmd.Args[1] == "demo" {
		<-rest
	}
	return p
}

// lastLines returns the last lines of a text.
func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// interrupt ends the process like Ctrl-C and returns the elapsed time.
func (p *process) interrupt() time.Duration {
	p.t.Helper()
	started := time.Now()
	must.OK(p.t, p.cmd.Process.Signal(os.Interrupt))
	must.OK(p.t, <-p.done)
	return time.Since(started)
}

// other runs lifthouse to its end.
func other(t *testing.T, stdin io.Reader, args ...string) (code int, out, complaints string) {
	t.Helper()
	cmd := lifthouse(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// run executes lifthouse, which must succeed, and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, _ := succeed(t, nil, args...)
	return out
}

// onStore returns a function that runs lifthouse on a store, which must succeed, and returns the output.
func onStore(t *testing.T, store string) func(args ...string) string {
	t.Helper()
	return func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(run(t, append(args, store)...))
	}
}

// succeed runs lifthouse, which must exit with 0.
func succeed(t *testing.T, stdin io.Reader, args ...string) (out, complaints string) {
	t.Helper()
	code, out, complaints := other(t, stdin, args...)
	must.Equal(t, code, exitOK, "lifthouse %q: %s%s", args, out, complaints)
	return out, complaints
}

// send sends a request with a token, if there is one, and further headers as pairs of a name and a value.
func send(ctx context.Context, client *http.Client, method, url, token, body string,
	headers ...string,
) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// get requests a URL, with a token if there is one.
func get(t *testing.T, url, token string, headers ...string) (status int, text string) {
	t.Helper()
	status, text, err := send(t.Context(), http.DefaultClient, http.MethodGet, url, token, "", headers...)
	must.OK(t, err)
	return status, text
}

// status returns the status of a request for the list of campaigns.
func (p *process) status(token string) int {
	p.t.Helper()
	status, _ := get(p.t, p.url+"/v1/campaigns", token)
	return status
}

func (p *process) results(token string) (r result.Report) {
	p.t.Helper()
	p.get("/v1/campaigns/1/results", token, &r)
	return r
}

// get requests a path, whose response must not be one that is kept.
func (p *process) get(path, token string, into any) {
	p.t.Helper()
	status, text := get(p.t, p.url+path, token, "Cache-Control", "no-cache")
	err := json.Unmarshal([]byte(text), into)
	must.That(p.t, err == nil, "%s: %d, %v", path, status, err)
	must.Equal(p.t, status, http.StatusOK, "%s: %d, %v", path, status, err)
}

//go:embed testdata/operations.txt
var operations string

// TestAllOperationsOfAStartedProgram starts lifthouse and calls each of the 16 operations over HTTP.
func TestAllOperationsOfAStartedProgram(t *testing.T) {
	t.Parallel()
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	p := start(t, "serve", store)
	do := onStore(t, store)
	do("apply", "-f", "../testdata/operated.catalog.yaml")
	do("import", "testdata/operated.ndjson")
	do("facts")
	token := do("token", "create", "--scope", "write")
	for line := range strings.Lines(operations) {
		request, says, _ := strings.Cut(strings.TrimSpace(line), " => ")
		method, path, _ := strings.Cut(request, " ")
		status, text, err := send(t.Context(), http.DefaultClient, method, p.url+path, token, "")
		var body bytes.Buffer
		must.That(t, err == nil, "%s = %d %.800s, %v; want %s", request, status, text, err, says)
		check.That(t, json.Compact(&body, []byte(text)) == nil, "%s = %d %.800s, %v; want %s", request, status, text,
			err, says)
		check.Equal(t, status, http.StatusOK, "%s = %d %.800s, %v; want %s", request, status, text, err, says)
		check.Contains(t, body.String(), says, "%s = %d %.800s, %v; want %s", request, status, text, err, says)
	}
}

func TestServeTakesCommandsOfOthersAndKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	store := "--store=embedded:" + dir
	p := start(t, "serve", store)
	check.Equal(t, must.Get(os.Stat(filepath.Join(dir, remote.SocketName)))(t).Mode().Perm(), 0o600, "socket")

	do := func(stdin io.Reader, args ...string) string {
		t.Helper()
		out, _ := succeed(t, stdin, append(args, store)...)
		return out
	}
	catalog := must.Get(os.ReadFile("../testdata/thirty.catalog.yaml"))(t)
	check.Contains(t, do(bytes.NewReader(catalog), "apply", "-f", "-"), `+ campaign 1 "Thirty events"`)
	do(nil, "import", "../testdata/thirty.ndjson")
	token := strings.TrimSpace(do(nil, "token", "create"))
	check.Equal(t, p.results(token).Totals.Visitors, 10, "visitors")

	spare := strings.TrimSpace(do(nil, "token", "create", "--name", "spare part", "--expires", "720h"))
	list := do(nil, "token", "list")
	check.Contains(t, list, "spare part", "token list says\n%s", list)
	check.That(t, !strings.Contains(list, spare), "token list says\n%s", list)
	do(nil, "token", "revoke", "2")
	check.Equal(t, p.status(spare), http.StatusUnauthorized, "a revoked token")

	code, _, complaints := other(t, nil, "serve", store)
	check.Equal(t, code, exitFailed, "another server: exit %d, %s", code, complaints)
	check.Contains(t, complaints, "is in use by process", "another server: exit %d, %s", code, complaints)
	elapsed := p.interrupt()
	check.That(t, elapsed <= 2*time.Second, "it took %v to end", elapsed)
	p = start(t, "serve", store)
	totals := p.results(token).Totals
	check.Equal(t, totals.Visitors, 10, "visitors after a second start")
	p.interrupt()

	do(nil, "import", "../testdata/thirty.ndjson")
	var again result.Report
	err := json.Unmarshal([]byte(do(nil, "report", "campaign", "1", "--json")), &again)
	must.That(t, err == nil, "imported again, without a server: %+v, %v; want %+v", again.Totals, err, totals)
	check.Equal(t, fmt.Sprint(again.Totals), fmt.Sprint(totals), "imported again, without a server: %+v, %v; want %+v",
		again.Totals, err, totals)
}

func TestDemoIsMadeOnceAndServesWhatItPlanted(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	store := "--store=embedded:" + dir
	request := regexp.MustCompile(`Bearer ([A-Za-z0-9_-]+)' '(http[^']+)'`)
	ask := func(p *process) (string, result.Report) {
		t.Helper()
		found := request.FindStringSubmatch(p.said.String())
		must.That(t, found != nil, "no request to paste in:\n%s", p.said.String())
		status, text := get(t, found[2], found[1])
		var r result.Report
		err := json.Unmarshal([]byte(text), &r)
		must.That(t, err == nil, "%d, %v", status, err)
		must.Equal(t, status, http.StatusOK, "%d, %v", status, err)
		return found[1], r
	}
	p := start(t, "demo", store)
	first, r := ask(p)
	check.Equal(t, r.Variations[1].Comparison.Verdict, "better", "the planted effect")
	p.interrupt()
	check.That(t,
		!strings.Contains(p.said.String(), "curl") || strings.Contains(p.said.String(), "Creating the demo store"),
		"the first start did not make the store")

	p = start(t, "demo", store)
	check.That(t, !strings.Contains(p.said.String(), "Creating the demo store"),
		"the second start made the store again")
	second, again := ask(p)
	check.That(t, second != first, "the second start did not renew the token")
	was, is := r.Totals, again.Totals
	check.Equal(t, is.Visitors, was.Visitors, "second start: totals %+v, were %+v", is, was)
	check.Equal(t, is.Views, was.Views, "second start: totals %+v, were %+v", is, was)
	check.Equal(t, is.GoalsReached, was.GoalsReached, "second start: totals %+v, were %+v", is, was)
	check.Equal(t, is.Value.String(), was.Value.String(), "second start: totals %+v, were %+v", is, was)
	check.Equal(t, p.status(first), http.StatusUnauthorized, "the last start's token")
	must.OK(t, p.cmd.Process.Signal(syscall.SIGTERM))
	must.OK(t, <-p.done, "SIGTERM")
}

func TestDemoLeavesARealStoreAlone(t *testing.T) {
	t.Parallel()
	_, store := newThirty(t)
	code, out, complaints := other(t, nil, "demo", store)
	check.Equal(t, code, exitFailed, "demo: exit %d, %q, %q; want a refusal", code, out, complaints)
	check.Contains(t, complaints, "is not a demo store", "demo: exit %d, %q, %q; want a refusal", code, out, complaints)
	if _, out, _ := other(t, nil, "token", "list", store); !strings.Contains(out, "has no token") {
		t.Errorf("demo made a token: %q", out)
	}
}

func TestMissingLibraryTellsHowToInstallIt(t *testing.T) {
	cmd := lifthouse(t, "serve", "--store=embedded:"+t.TempDir())
	cmd.Env = append(cmd.Env, "LIFTHOUSE_LIBCHDB=/absent/libchdb.so")
	out, err := cmd.CombinedOutput()
	check.That(t, err != nil, "%v, %q; want the command that installs it", err, out)
	check.Contains(t, string(out), "npm ci", "%v, %q; want the command that installs it", err, out)
}

// TestTheDemoHasVisitors checks that visitors arrive at a demo while it is served.
func TestTheDemoHasVisitors(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	p := start(t, "demo", "--traffic", "--store=embedded:"+filepath.Join(t.TempDir(), "demo"))
	token := regexp.MustCompile(`lh_[\w-]+`).FindString(p.said.String())
	first := int64(0)
	for range time.Tick(100 * time.Millisecond) {
		status, text := get(t, p.url+"/v1/campaigns/12/results", token)
		var r result.Report
		err := json.Unmarshal([]byte(text), &r)
		must.That(t, err == nil, "%d, %v", status, err)
		must.Equal(t, status, http.StatusOK, "%d, %v", status, err)
		if first == 0 {
			first = r.Totals.Visitors
		}
		if r.Totals.Visitors > first {
			break
		}
	}
	p.interrupt()
}
