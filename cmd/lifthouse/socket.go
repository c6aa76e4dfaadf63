package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"lifthouse/schema"
)

// socketName is where, beside its data, the process that holds an embedded
// store takes commands from others of the same user.
const socketName = "lifthouse.sock"

// errand is a command that another process carries out. The client's standard
// streams travel beside it as open files, so that output, progress and pipes
// are the client's own.
type remoteCommand struct {
	Dir  string            `json:"dir"`
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"` // of errandEnv
}

// errandEnv are the variables that tell what the client's terminal shows; the
// store and its settings are those of the process that carries out.
var remoteEnv = []string{"NO_COLOR", "TERM"}

// outcome is a message of the server: first that it is ready for a command, then
// the command's exit code. A server that hangs must not receive the client's
// streams, so the client waits for the first message.
type outcome struct {
	Ready bool `json:"ready,omitempty"`
	Code  int  `json:"code"`
}

const (
	streams    = 3       // standard input, output and error
	maxCommand = 1 << 20 // bytes; a command line is shorter
)

// delegate has the process behind the socket carry out this command line, and
// returns its exit code. When the context ends, so does the command.
func (p *program) delegate(ctx context.Context, socket string) (int, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return exitFailed, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	answers := json.NewDecoder(conn)
	if err := awaitReady(conn, answers, socket); err != nil {
		return exitFailed, err
	}
	e := remoteCommand{Dir: p.dir, Args: p.args, Env: map[string]string{}}
	for _, name := range remoteEnv {
		e.Env[name] = p.getenv(name)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return exitFailed, err
	}
	rights := syscall.UnixRights(int(p.in.Fd()), int(p.out.Fd()), int(p.err.Fd()))
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return exitFailed, err
	}
	var answer outcome
	if err := answers.Decode(&answer); err != nil {
		return exitFailed, fmt.Errorf("the process that holds the store went away before it was done: %w", err)
	}
	return answer.Code, nil
}

// awaitReady waits until the server takes a command.
func awaitReady(conn net.Conn, answers *json.Decoder, socket string) error {
	if err := conn.SetReadDeadline(time.Now().Add(schema.ServerTimeout)); err != nil {
		return err
	}
	var answer outcome
	if err := answers.Decode(&answer); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the server at %s does not answer: it took no command for %v", socket, schema.ServerTimeout)
	} else if err != nil {
		return err
	}
	return conn.SetReadDeadline(time.Time{})
}

const (
	remoteTimeout = 10 * time.Second // to arrive
	commandsEnd   = time.Second      // after they were told to
)

// takeErrands carries out commands of other processes until the context
// ends, and returns when the last of them has ended, or has not for errandsEnd.
func serveCommands(ctx context.Context, listener net.Listener, s *store) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var running sync.WaitGroup
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				slog.ErrorContext(ctx, "socket closed", "error", err)
			}
			break
		}
		running.Go(func() {
			if err := execute(ctx, conn.(*net.UnixConn), s); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "command from the socket", "error", err)
			}
		})
	}
	<-ctx.Done()
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(commandsEnd): // a read from the client's FIFO may never return
	}
}

func execute(ctx context.Context, conn *net.UnixConn, s *store) error {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetReadDeadline(time.Now().Add(remoteTimeout)); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(outcome{Ready: true}); err != nil {
		return err
	}
	e, files, err := receive(conn)
	closeFiles := func() {
		for _, file := range files {
			_ = file.Close()
		}
	}
	defer closeFiles()
	switch {
	case errors.Is(err, io.EOF): // it only looked whether somebody is here
		return nil
	case err != nil:
		return err
	}
	defer context.AfterFunc(ctx, closeFiles)()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	go func() { // the client sends nothing more: an end means that it is gone
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	getenv := func(name string) string {
		if slices.Contains(remoteEnv, name) {
			return e.Env[name]
		}
		return ""
	}
	p := &program{in: files[0], out: files[1], err: files[2], dir: e.Dir, args: e.Args, getenv: getenv, running: s}
	code := p.run(ctx)
	if ctx.Err() != nil {
		return nil // nobody waits for it
	}
	return json.NewEncoder(conn).Encode(outcome{Code: code})
}

// receive reads an errand and the files that came with it.
func receive(conn *net.UnixConn) (remoteCommand, []*os.File, error) {
	var text []byte
	var files []*os.File
	buffer, control := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(streams*4))
	for !bytes.HasSuffix(text, []byte("\n")) {
		n, controlled, _, _, err := conn.ReadMsgUnix(buffer, control)
		if err != nil {
			return remoteCommand{}, files, err
		}
		received, err := received(control[:controlled])
		files = append(files, received...)
		if err != nil {
			return remoteCommand{}, files, err
		}
		if n == 0 || len(text)+n > maxCommand {
			return remoteCommand{}, files, errors.New("not a command")
		}
		text = append(text, buffer[:n]...)
	}
	if len(files) != streams {
		return remoteCommand{}, files, fmt.Errorf("have %d open files, want %d", len(files), streams)
	}
	for i, access := range [streams]int{os.O_RDONLY, os.O_WRONLY, os.O_WRONLY} {
		files[i] = interruptible(files[i], access)
	}
	var e remoteCommand
	return e, files, json.Unmarshal(text, &e)
}

// received returns the files of a control message.
func received(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		descriptors, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, descriptor := range descriptors {
			syscall.CloseOnExec(descriptor)
			files = append(files, os.NewFile(uintptr(descriptor), "of the client"))
		}
	}
	return files, nil
}

// interruptible opens a pipe or a terminal anew, so that closing it ends reads
// and writes that wait. For that it has to be non-blocking, a flag that the
// descriptor as received would share with the client and its shell. What
// cannot be opened anew stays as it is.
func interruptible(file *os.File, access int) *os.File {
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return file
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return file
	}
	again := file
	if err := raw.Control(func(fd uintptr) {
		if opened, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), access|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0); err == nil {
			again = opened
		}
	}); err != nil || again == file {
		return file
	}
	_ = file.Close()
	return again
}

// errandSocket is a listener that removes its path.
type commandSocket struct {
	net.Listener
	path string
}

// Close ends the listener.
func (s *commandSocket) Close() error {
	return errors.Join(os.Remove(s.path), s.Listener.Close())
}

// longestSocket is how many bytes the path of a socket may have.
const longestSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

// listenForErrands opens the socket of an embedded store, for this user only.
// It comes to be in a folder that only this user enters, and takes the place
// of a dead one: the store's lock is ours.
func listenForCommands(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > longestSocket {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d for a socket: use a shorter directory", path, len(path), longestSocket)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s*") // no longer than socketName
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, "s")
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &commandSocket{listener, path}, nil
}
