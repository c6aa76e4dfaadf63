package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lifthouse/cmd/internal/remote"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// newThirty returns the folder of a new store with the catalogue of the thirty events, and the flag that names it.
func newThirty(t *testing.T) (dir, store string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	store = "--store=embedded:" + dir
	ended(t, exitOK, "apply", "-f", "../testdata/thirty.catalog.yaml", store)
	return dir, store
}

// serving starts a server with the catalogue of the thirty events.
func serving(t *testing.T, flags ...string) (p *process, dir, store string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	store = "--store=embedded:" + dir
	p = start(t, append([]string{"serve", store}, flags...)...)
	ended(t, exitOK, "apply", "-f", "../testdata/thirty.catalog.yaml", store)
	return p, dir, store
}

// begin starts lifthouse with a command that does not end by itself.
func begin(t *testing.T, stdin, stdout *os.File, args ...string) *exec.Cmd {
	t.Helper()
	cmd := lifthouse(t, args...)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() {
		_ = read.Close()
		_ = write.Close()
	})
	return read, write
}

// moreThanAPipe exceeds the buffer of a pipe, so a completed write was read.
var moreThanAPipe = strings.Repeat("# nothing\n", 20_000)

func TestServeEndsWhileACommandWaits(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	for name, wait := range map[string]func(t *testing.T, dir, store string){
		"silent connection": func(t *testing.T, dir, _ string) {
			t.Helper()
			var dialer net.Dialer
			conn := must.Get(dialer.DialContext(t.Context(), "unix", filepath.Join(dir, remote.SocketName)))(t)
			t.Cleanup(func() { _ = conn.Close() })
		},
		"open pipe": func(t *testing.T, _, store string) {
			t.Helper()
			read, write := pipe(t)
			begin(t, read, nil, "apply", "-f", "-", store)
			must.Get(io.WriteString(write, moreThanAPipe))(t)
		},
		"FIFO": func(t *testing.T, dir, store string) {
			t.Helper()
			fifo := filepath.Join(dir, "fifo")
			must.OK(t, syscall.Mkfifo(fifo, 0o600))
			begin(t, nil, nil, "apply", "-f", fifo, store)
			write, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits for the reader
			must.OK(t, err)
			t.Cleanup(func() { _ = write.Close() })
		},
		"full output": func(t *testing.T, dir, store string) {
			t.Helper()
			_, write := pipe(t)
			must.OK(t, write.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
			_, err := io.WriteString(write, moreThanAPipe)
			must.That(t, errors.Is(err, os.ErrDeadlineExceeded), "the pipe is not full: %v", err)
			file := filepath.Join(dir, "second.yaml")
			must.OK(t, os.WriteFile(file, []byte("accounts: [{id: 2, name: Second}]"), 0o600))
			begin(t, nil, write, "apply", "-f", file, store)
			for done := false; !done; { // the change is applied before the response is sent
				code, _, _ := other(t, nil, "token", "create", "--account", "2", store)
				done = code == exitOK
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir, store := serving(t)
			wait(t, dir, store)
			elapsed := p.interrupt()
			check.That(t, elapsed <= 2*time.Second, "it took %v to end", elapsed)
		})
	}
}

func TestServerLeavesTheStreamsOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	p, _, store := serving(t)
	read, write := pipe(t)
	its, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", read.Fd()))
	if err != nil {
		t.Skip("there is no /proc to see open files in, nor to reopen them")
	}
	client := begin(t, read, nil, "apply", "-f", "-", store)
	must.Get(io.WriteString(write, moreThanAPipe))(t)
	must.OK(t, client.Process.Signal(os.Interrupt))
	_ = client.Wait()
	until := time.Now().Add(2 * time.Second)
	for holds(t, p.cmd.Process.Pid, its) {
		must.That(t, !time.Now().After(until), "the server still reads the client's input")
	}
}

// holds reports whether the process has the file open.
func holds(t *testing.T, pid int, file string) bool {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must.That(t, err == nil, "open files of %d: %d, %v", pid, len(links), err)
	must.That(t, len(links) != 0, "open files of %d: %d, %v", pid, len(links), err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == file {
			return true
		}
	}
	return false
}

func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	read, write := pipe(t)
	cmd := begin(t, read, nil, "apply", "-f", "-", "--store=embedded:"+t.TempDir())
	must.Get(io.WriteString(write, moreThanAPipe))(t)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
}

func TestSocketPathThatIsTooLong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	cmd := lifthouse(t, "serve", "--listen=127.0.0.1:0", "--store=embedded:"+dir)
	read, write := pipe(t)
	cmd.Stdout = write
	var complaints strings.Builder
	cmd.Stderr = &complaints
	must.OK(t, cmd.Start())
	_ = write.Close()
	said := make([]byte, 1024)
	n, _ := read.Read(said)
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil || !answersAt.Match(said[:n]) ||
		!strings.Contains(complaints.String(), "the maximum is 107") {
		t.Errorf("%v; it says %q and complains %q", err, said[:n], complaints.String())
	}
}
