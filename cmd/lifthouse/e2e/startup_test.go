package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lifthouse/cmd/internal/remote"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestTooFewOpenFilesAreRefused checks that the error names the required number.
func TestTooFewOpenFilesAreRefused(t *testing.T) {
	program := lifthouse(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 200 && exec "$0" apply -f ../testdata/thirty.catalog.yaml --store="$1"`, program.Path, "embedded:"+filepath.Join(t.TempDir(), "data"))
	cmd.Env = program.Env
	said, err := cmd.CombinedOutput()
	check.That(t, err != nil, "%v: %s", err, said)
	check.Contains(t, string(said), "needs 4096 open files, and this process may have 200", "%v: %s", err, said)
	check.Equal(t, strings.Count(string(said), "\n"), 1, "%v: %s", err, said)
}

// TestWhatCannotBeReadIsNamed checks that the error names the file and the remedy.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	address, store := newThirty(t)
	ended(t, exitOK, "import", "../testdata/thirty.ndjson", store)
	definition := filepath.Join(address, "metadata", "lifthouse", "events.sql")
	parts := partsOf(t, address, "events")
	must.That(t, len(parts) != 0, "no parts")
	for name, c := range map[string]struct {
		path  string
		spoil func(path string) error
		want  string
	}{
		"a definition that is empty":  {definition, func(path string) error { return os.WriteFile(path, nil, 0o600) }, "events.sql, is damaged: restore a backup"},
		"a definition of something":   {definition, func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }, "events.sql, is damaged: restore a backup"},
		"a definition that is gone":   {definition, os.Remove, "events.sql, is missing: put it back, or restore a backup"},
		"the database's definition":   {filepath.Join(address, "metadata", "lifthouse.sql"), os.Remove, "lifthouse.sql, is missing: put it back"},
		"a part that leads to itself": {parts[0], func(path string) error { _ = os.Rename(path, path+".kept"); return os.Symlink(path, path) }, "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := filepath.Join(t.TempDir(), "kept")
			if info, err := os.Stat(c.path); err != nil {
				t.Fatal(err)
			} else if info.Mode().IsRegular() {
				text, err := os.ReadFile(c.path)
				if err != nil || os.WriteFile(kept, text, 0o600) != nil {
					t.Fatal(err)
				}
			}
			must.OK(t, c.spoil(c.path))
			code, out, said := other(t, nil, "report", "campaign", "1", "--json", store)
			check.Equal(t, code, exitFailed, "exit %d, %s%s; want %q", code, out, said, c.want)
			check.Contains(t, said, c.want, "exit %d, %s%s; want %q", code, out, said, c.want)
			check.Equal(t, strings.Count(said, "\n"), 1, "exit %d, %s%s; want %q", code, out, said, c.want)
			check.Equal(t, out, "", "exit %d, %s%s; want %q", code, out, said, c.want)
			must.OK(t, os.RemoveAll(c.path))
			from := kept
			if _, err := os.Stat(kept); err != nil {
				from = c.path + ".kept"
			}
			must.OK(t, os.Rename(from, c.path))
		})
	}
	ended(t, exitOK, "report", "campaign", "1", store)
}

// TestALibraryThatIsCutOffIsNamed checks a truncated library, which would crash the process.
func TestALibraryThatIsCutOffIsNamed(t *testing.T) {
	for name, content := range map[string]string{"text": "no library", "empty": "", "cut off": "\x7fELF\x02\x01\x01"} {
		path := must.WriteFile(t, "libchdb.so", content)
		cmd := lifthouse(t, "apply", "-f", "../testdata/thirty.catalog.yaml", "--store=embedded:"+t.TempDir())
		cmd.Env = append(cmd.Env, "LIFTHOUSE_LIBCHDB="+path)
		said, err := cmd.CombinedOutput()
		check.That(t, err != nil, "%s: %v: %s", name, err, said)
		check.Contains(t, string(said), path+" cannot be loaded (it is no library, or cut off", "%s: %v: %s", name, err,
			said)
		check.Contains(t, string(said), "npm ci", "%s: %v: %s", name, err, said)
		check.Equal(t, strings.Count(string(said), "\n"), 1, "%s: %v: %s", name, err, said)
	}
}

// TestCommandsWaitForAStartingServer starts commands while a process holds the store and does not serve it yet. Once it
// serves the store, or has ended, the commands are done.
func TestCommandsWaitForAStartingServer(t *testing.T) {
	t.Parallel()
	dir, store := newThirty(t)
	lock := must.Get(os.OpenFile(filepath.Join(dir, "lifthouse.lock"), os.O_RDWR, 0))(t)
	defer func() { _ = lock.Close() }()
	must.OK(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	var commands []*exec.Cmd
	for _, args := range [][]string{{"export"}, {"check"}, {"serve", "--listen=127.0.0.1:0"}} {
		cmd := lifthouse(t, append(args, store)...)
		startAndAwaitLog(t, cmd, "waiting for it for at most")
		commands = append(commands, cmd)
	}
	must.OK(t, lock.Close()) // releases the lock
	for _, cmd := range commands[:2] {
		must.OK(t, cmd.Wait(), "%v", cmd.Args)
	}
}

// TestServeWaitsForAnImport checks that serve waits for an import that holds the store, and reports it.
func TestServeWaitsForAnImport(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	_, store := newThirty(t)
	read, write := pipe(t)
	importing := begin(t, read, nil, "import", "-", store)
	if _, err := io.WriteString(write,
		strings.Repeat("\n", 200_000)); err != nil { // more than a pipe holds: it has the store
		t.Fatal(err)
	}
	server := lifthouse(t, "serve", "--listen=127.0.0.1:0", store)
	out := must.Get(server.StdoutPipe())(t)
	log := startAndAwaitLog(t, server, "waiting for it for at most 1m0s")
	events := must.Get(os.ReadFile("../testdata/thirty.ndjson"))(t)
	must.Get(write.Write(events))(t)
	_ = write.Close()
	must.OK(t, importing.Wait())
	said := make([]byte, 1024)
	n, err := io.ReadAtLeast(out, said, 20)
	if err != nil || !answersAt.Match(said[:n]) {
		t.Fatalf("it says %q, %v\n%s", said[:n], err, log.String())
	}
	code, _, complaints := other(t, nil, "serve", "--listen=127.0.0.1:0", store)
	check.Equal(t, code, exitFailed, "a store that is served is waited for: exit %d, %s", code, complaints)
	check.That(t, !strings.Contains(complaints, "waiting"), "a store that is served is waited for: exit %d, %s", code,
		complaints)
	_ = server.Process.Signal(os.Interrupt)
	_ = server.Wait()
}

// TestServersThatDoNotAnswerAreGivenUp has a paused server, and an address that accepts connections and sends nothing.
func TestServersThatDoNotAnswerAreGivenUp(t *testing.T) {
	t.Parallel()
	tier.OnlyLong(t) // waits ten seconds
	p, dir, store := serving(t)
	must.OK(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var config net.ListenConfig
	silent := must.Get(config.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer func() { _ = silent.Close() }()
	type result struct {
		name, said, want string
		code             int
		took             time.Duration
	}
	results := make(chan result, 2)
	give := func(name, want string, args ...string) {
		began := time.Now()
		code, _, said := other(t, nil, args...)
		results <- result{name, said, want, code, time.Since(began)}
	}
	go give("a server that stands still", filepath.Join(dir, remote.SocketName)+" does not answer", "report",
		"campaign", "1", store)
	go give("an address", "no answer from "+silent.Addr().String(), "report", "campaign", "1",
		"--store=clickhouse://"+silent.Addr().String()+"/x?dial_timeout=60s")
	for range 2 {
		r := <-results
		check.Equal(t, r.code, exitFailed, "%s: exit %d after %v: %s", r.name, r.code, r.took, r.said)
		check.Contains(t, r.said, r.want, "%s: exit %d after %v: %s", r.name, r.code, r.took, r.said)
		check.That(t, r.took <= 12*time.Second, "%s: exit %d after %v: %s", r.name, r.code, r.took, r.said)
	}
	must.OK(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.interrupt()
}

// TestAMisspeltVariableIsNamed checks a name that is nearly that of a setting. What settings are is in the scripts.
func TestAMisspeltVariableIsNamed(t *testing.T) {
	cmd := lifthouse(t, "check", "--store=embedded:"+filepath.Join(t.TempDir(), "none"))
	cmd.Env = append(cmd.Env, "LIFTHOUSE_RESLTS_AGE=1s")
	out, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, out)
	check.Contains(t, string(out), "LIFTHOUSE_RESLTS_AGE is not a setting; did you mean LIFTHOUSE_RESULTS_AGE", "%v\n%s", err, out)
}

func TestServeWithTLSAndAnAdminAddress(t *testing.T) {
	t.Parallel()
	cert, key, certificate := schematest.WriteCertificate(t)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	p := start(t, "serve", "--store=embedded:"+filepath.Join(t.TempDir(), "data"), "--tls-cert="+cert, "--tls-key="+key,
		"--admin-address=127.0.0.1:0", "--log-format=json")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:    pool,
		MinVersion: tls.VersionTLS12,
	}}}
	defer client.CloseIdleConnections()
	get := func(url string) int {
		t.Helper()
		status, _, err := send(t.Context(), client, http.MethodGet, url, "", "")
		must.OK(t, err)
		return status
	}
	check.That(t, strings.HasPrefix(p.url, "https://"), "%s is not ready", p.url)
	check.Equal(t, get(p.url+"/readyz"), http.StatusOK, "%s is not ready", p.url)
	found := regexp.MustCompile(`"url":"(http://[^"]+/metrics)"`).FindStringSubmatch(p.log.String())
	must.That(t, found != nil, "metrics: %q", found)
	check.Equal(t, get(found[1]), http.StatusOK, "metrics: %q", found)
	check.Equal(t, get(strings.Replace(found[1], "metrics", "debug/pprof/", 1)), http.StatusOK, "metrics: %q", found)
	if log := p.log.String(); !strings.Contains(log, `"msg":"configuration"`) || !strings.Contains(log, `"route":"/readyz"`) {
		t.Error("the log lacks the configuration or the request")
	}
	client.CloseIdleConnections()
	p.interrupt()
}

func TestReadySaysWhatTheServerSays(t *testing.T) {
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.URL.Path, "/readyz", "asked for")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	for want, answer := range map[int]int32{exitOK: http.StatusOK, exitFailed: http.StatusServiceUnavailable} {
		status.Store(answer)
		code, _, complaints := other(t, nil, "ready", "--url", server.URL)
		check.That(t, code == want, "%d: exit %d\n%s", answer, code, complaints)
	}
	server.Close()
	code, _, _ := other(t, nil, "ready", "--url", server.URL)
	check.That(t, code == exitFailed, "no server: exit %d", code)
}
