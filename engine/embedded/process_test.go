package embedded

import (
	"bufio"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// process is a child process of the test. The test reads lines of its output.
type process struct {
	*osexec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, child string, args ...string) *process {
	t.Helper()
	return startIn(t, "", nil, child, args...)
}

func startIn(t *testing.T, dir string, env []string, child string, args ...string) *process {
	t.Helper()
	binary := must.Get(os.Executable())(t)
	library := must.Get(LocateLibrary())(t)
	p := &process{Cmd: osexec.CommandContext(t.Context(), binary, args...)}
	p.Dir = dir
	p.Env = append(os.Environ(), childVariable+"="+child, libraryVariable+"="+library)
	p.Env = append(p.Env, env...)
	p.Stderr = os.Stderr
	p.in = must.Get(p.StdinPipe())(t)
	out := must.Get(p.StdoutPipe())(t)
	p.lines = bufio.NewScanner(out)
	must.OK(t, p.Start())
	return p
}

// line returns the next line of the child's output.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the child ended: %v", p.Wait())
	}
	return p.lines.Text()
}

// output ends the child and returns the rest of its output.
func (p *process) output(t *testing.T) string {
	t.Helper()
	must.OK(t, p.in.Close())
	var b strings.Builder
	for p.lines.Scan() {
		fmt.Fprintln(&b, p.lines.Text())
	}
	if err := p.Wait(); err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, "hold", dir)
	must.Equal(t, holder.line(t), "ready")
	got := start(t, "open", dir).output(t)
	want := (&LockedError{Dir: dir, PID: holder.Process.Pid}).Error()
	check.Contains(t, got, want)
	check.Equal(t, holder.output(t), "", "the holder's output")
	check.Equal(t, start(t, "open", dir).output(t), "opened\n", "opening a folder that was released")
}

func TestLibraryMissing(t *testing.T) {
	got := startIn(t, t.TempDir(), []string{libraryVariable + "="}, "open", t.TempDir()).output(t)
	for _, want := range []string{
		"npm ci", "make engine", libraryVariable,
		filepath.Join("node_modules", "@chdb", npmPackage(), "libchdb.so"),
	} {
		check.Contains(t, got, want)
	}
	missing := filepath.Join(t.TempDir(), "missing.so")
	got = startIn(t, "", []string{libraryVariable + "=" + missing}, "open", t.TempDir()).output(t)
	check.Contains(t, got, missing, "with a wrong %s", libraryVariable)
	text := must.WriteFile(t, "text.so", "text")
	got = startIn(t, "", []string{libraryVariable + "=" + text}, "open", t.TempDir()).output(t)
	check.Contains(t, got, text, "a file that is not a library")
}

func TestLibraryBesideWorkingDirectory(t *testing.T) {
	root := t.TempDir()
	modules := filepath.Join(root, "node_modules", "@chdb", npmPackage())
	below := filepath.Join(root, "a", "b")
	for _, dir := range []string{modules, below} {
		must.OK(t, os.MkdirAll(dir, 0o755))
	}
	data := must.Get(os.Create(filepath.Join(modules, "libchdb.so")))(t)
	must.OK(t, data.Close())
	t.Chdir(below)
	t.Setenv(libraryVariable, "")
	want := must.Get(filepath.EvalSymlinks(data.Name()))(t)
	got, err := LocateLibrary()
	must.That(t, err == nil, "LocateLibrary() = %q, %v, want %q", got, err, want)
	check.That(t, (got == data.Name() || got == want), "LocateLibrary() = %q, %v, want %q", got, err, want)
}

// TestKill checks that the rows of every acknowledged insert survive a SIGKILL.
func TestKill(t *testing.T) {
	rounds := tier.Of(1, 3)
	for round := range rounds {
		dir := t.TempDir()
		p := start(t, "insert", dir)
		var acknowledged uint64
		for range 5 + 10*round {
			n := must.Get(strconv.ParseUint(strings.TrimPrefix(p.line(t), "acknowledged "), 10, 64))(t)
			acknowledged = n
		}
		must.OK(t, p.Process.Kill())
		for p.lines.Scan() {
			if n, err := strconv.ParseUint(strings.TrimPrefix(p.lines.Text(), "acknowledged "), 10, 64); err == nil {
				acknowledged = n
			}
		}
		if err := p.Wait(); err == nil {
			t.Fatal("the child ended well")
		}
		var n, distinct uint64
		got := start(t, "count", dir).output(t)
		_, err := fmt.Sscan(got, &n, &distinct)
		must.That(t, err == nil, "%q: %v", got, err)
		// One insert may have been running; its rows may be stored or not.
		check.Equal(t, n, distinct, "%d rows, %d different ones, of %d acknowledged", n, distinct, acknowledged)
		check.Equal(t, n%batchRows, 0, "%d rows, %d different ones, of %d acknowledged", n, distinct, acknowledged)
		check.That(t, n >= acknowledged, "%d rows, %d different ones, of %d acknowledged", n, distinct, acknowledged)
		check.That(t, n <= acknowledged+batchRows, "%d rows, %d different ones, of %d acknowledged", n, distinct,
			acknowledged)
	}
}

func TestSignals(t *testing.T) {
	p := start(t, "signals", t.TempDir())
	must.Equal(t, p.line(t), "ready")
	must.OK(t, p.Process.Signal(os.Interrupt))
	check.Equal(t, p.line(t), "interrupted and closed")
	must.Equal(t, p.line(t), "waiting")
	must.OK(t, p.Process.Signal(os.Interrupt))
	_ = p.Wait()
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	must.That(t, ok, "without signal.Notify SIGINT gives %v", p.ProcessState)
	check.Equal(t, status.Signal(), syscall.SIGINT, "without signal.Notify SIGINT gives %v", p.ProcessState)
}

func TestClose(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	got := start(t, "close", first, second).output(t)
	want := fmt.Sprintf(`second: embedded: this process has %s open; close it before opening %s
closed
statements ended by it: true true
later statement: true
opened again
`, first, second)
	check.Equal(t, got, want)
}

// TestForeignConfiguration checks that the engine does not read another program's configuration.
func TestForeignConfiguration(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	const foreign = "<clickhouse><max_server_memory_usage>1000000</max_server_memory_usage></clickhouse>"
	must.OK(t, os.Mkdir(filepath.Join(home, ".clickhouse-local"), 0o755))
	for _, path := range []string{
		filepath.Join(dir, "config.xml"),
		filepath.Join(home, ".clickhouse-local", "config.xml"),
	} {
		must.OK(t, os.WriteFile(path, []byte(foreign), 0o600))
	}
	got := startIn(t, dir, []string{"HOME=" + home}, "options", t.TempDir(), "0").output(t)
	check.That(t, !strings.Contains(got, "memory 1000000\n"), "with a foreign configuration: %q", got)
	check.Contains(t, got, fmt.Sprintf("connections %d\n", defaultConnections), "with a foreign configuration: %q", got)
}

func TestOptions(t *testing.T) {
	got := start(t, "options", t.TempDir(), "3").output(t)
	check.That(t, strings.HasSuffix(got, "connections 3\n"), "got %q", got)
}

// TestFsync checks that an insert requests the system to write to the disk. It cannot test a loss of power.
func TestFsync(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		got := start(t, "fsync", t.TempDir(), strconv.FormatBool(fsync)).output(t)
		check.Equal(t, fmt.Sprintf("synced %v\n", fsync), got, "with Fsync %v", fsync)
	}
}

func TestShutdown(t *testing.T) {
	p := start(t, "end", t.TempDir())
	check.Equal(t, p.line(t), "ended")
	must.OK(t, p.Wait())
}
