// Package remote lets one process execute a command line of another over a Unix socket. The process that holds an
// embedded store listens. Other lifthouse commands for the same store are forwarded to that process.
package remote

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
	"sync"
	"syscall"
	"time"
)

// SocketName is the name of the socket in the directory of an embedded store.
const SocketName = "lifthouse.sock"

// Command is a command line to execute, with the client's standard streams. The streams are passed as open files, so
// the command reads and writes the client's own terminal and pipes.
type Command struct {
	Dir  string            `json:"dir"` // working directory of the client
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"` // variables listed in Env

	In, Out, Err *os.File `json:"-"`
}

// Env lists the environment variables that are forwarded. They describe the client's terminal. The store and its
// settings are those of the server.
var Env = []string{"NO_COLOR", "TERM"}

// message is a message from the server. The first one says that the server is ready for a command, the second one has
// the exit code. A server that hangs must not receive the client's streams, so the client waits for the first message.
type message struct {
	Ready bool `json:"ready,omitempty"`
	Code  int  `json:"code"`
}

const (
	streams      = 3 // standard input, output and error
	readyTimeout = 10 * time.Second
)

// RunCommand executes a command in the process that listens on the socket, and returns its exit code. The command is
// cancelled when the context ends.
func RunCommand(ctx context.Context, socket string, c Command) (code int, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	messages := json.NewDecoder(conn)
	// Wait until the server accepts a command.
	err = conn.SetReadDeadline(time.Now().Add(readyTimeout))
	if err == nil {
		err = messages.Decode(new(message))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the server at %s does not answer: it accepted no command within %v", socket, readyTimeout)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	rights := syscall.UnixRights(int(c.In.Fd()), int(c.Out.Fd()), int(c.Err.Fd()))
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return 0, err
	}
	var last message
	if err := messages.Decode(&last); err != nil {
		return 0, fmt.Errorf("the process that holds the store ended before the command was done: %w", err)
	}
	return last.Code, nil
}

// IsServed reports whether a process listens on the socket.
func IsServed(ctx context.Context, socket string) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// ServeCommands calls execute for each command that arrives, until the context ends. It returns when all running
// commands have ended, at most a second later.
func ServeCommands(ctx context.Context, listener net.Listener, execute func(context.Context, Command) (code int)) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var running sync.WaitGroup
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				slog.ErrorContext(ctx, "command socket closed", "err", err)
			}
			break
		}
		running.Go(func() {
			if err := handleCommand(ctx, conn.(*net.UnixConn), execute); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "forwarded command failed", "err", err)
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
	case <-time.After(time.Second): // a read from a FIFO of the client may never return
	}
}

// handleCommand receives one command, executes it and sends its exit code.
func handleCommand(ctx context.Context, conn *net.UnixConn, execute func(context.Context, Command) int) error {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	switch err := json.NewEncoder(conn).Encode(message{Ready: true}); {
	case errors.Is(err, syscall.EPIPE): // the client only checked whether a process listens
		return nil
	case err != nil:
		return err
	}
	text, files, err := receiveCommand(conn)
	closeFiles := func() {
		for _, file := range files {
			_ = file.Close()
		}
	}
	defer closeFiles()
	if err != nil || text == nil {
		return err
	}
	if len(files) != streams {
		return fmt.Errorf("received %d open files, want %d", len(files), streams)
	}
	for i, access := range [streams]int{os.O_RDONLY, os.O_WRONLY, os.O_WRONLY} {
		files[i] = reopenInterruptible(files[i], access)
	}
	var c Command
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}

	defer context.AfterFunc(ctx, closeFiles)()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	go func() { // the client sends nothing more: the end of the stream means that it has exited
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	c.In, c.Out, c.Err = files[0], files[1], files[2]
	code := execute(ctx, c)
	if ctx.Err() != nil {
		return nil // the client has exited
	}
	return json.NewEncoder(conn).Encode(message{Code: code})
}

// receiveCommand reads the text of a command and the files that are passed with it, which the caller closes, also after
// an error. The text is nil if the client only checked whether a process listens.
func receiveCommand(conn *net.UnixConn) (text []byte, files []*os.File, err error) {
	buffer, control := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(streams*4))
	for !bytes.HasSuffix(text, []byte("\n")) {
		n, controlled, _, _, err := conn.ReadMsgUnix(buffer, control)
		switch {
		case errors.Is(err, io.EOF), len(text) == 0 && errors.Is(err, syscall.ECONNRESET):
			// The client only checked whether a process listens.
			return nil, files, nil
		case err != nil:
			return nil, files, err
		}
		var messages []syscall.SocketControlMessage
		if controlled > 0 {
			messages, err = syscall.ParseSocketControlMessage(control[:controlled])
			if err != nil {
				return nil, files, err
			}
		}
		for i := range messages {
			descriptors, err := syscall.ParseUnixRights(&messages[i])
			if err != nil {
				return nil, files, err
			}
			for _, descriptor := range descriptors {
				syscall.CloseOnExec(descriptor)
				files = append(files, os.NewFile(uintptr(descriptor), "of the client"))
			}
		}
		if n == 0 || len(text)+n > 1<<20 { // longer than any command line
			return nil, files, errors.New("not a command")
		}
		text = append(text, buffer[:n]...)
	}
	return text, files, nil
}

// reopenInterruptible reopens a pipe or a terminal in non-blocking mode, so that closing it interrupts reads and
// writes. The received descriptor must remain blocking, because it shares this flag with the client and its shell. A
// file that cannot be reopened is returned unchanged.
func reopenInterruptible(file *os.File, access int) *os.File {
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
		name := fmt.Sprintf("/proc/self/fd/%d", fd)
		if opened, err := os.OpenFile(name, access|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0); err == nil {
			again = opened
		}
	}); err != nil || again == file {
		return file
	}
	_ = file.Close()
	return again
}

// socket is a listener that removes its path when it is closed.
type socket struct {
	net.Listener
	path string
}

// Close removes the path and ends the listener.
func (s *socket) Close() error {
	return errors.Join(os.Remove(s.path), s.Listener.Close())
}

// maxPath is the maximum length of a socket's path in bytes.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ListenSocket opens the socket at a path, with mode 0600. It replaces the socket of a process that has ended. The
// caller must hold the lock of the store. ListenSocket creates the socket in a private directory and renames it, so
// other users can never connect.
func ListenSocket(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("the socket path %s has %d bytes, the maximum is %d: use a shorter directory", path,
			len(path), maxPath)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s*") // no longer than SocketName
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	created := filepath.Join(dir, "s")
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", created)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(created, 0o600), os.Rename(created, path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &socket{listener, path}, nil
}
