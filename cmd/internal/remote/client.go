// Package remote lets one process execute a command line of another over a Unix
// socket. The process that holds an embedded store listens. Other lifthouse commands
// for the same store are forwarded to that process.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// SocketName is the name of the socket in the directory of an embedded store.
const SocketName = "lifthouse.sock"

// Command is a command line to execute, with the client's standard streams. The
// streams are passed as open files, so the command reads and writes the client's own
// terminal and pipes.
type Command struct {
	Dir  string            `json:"dir"` // working directory of the client
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"` // variables listed in Env

	In, Out, Err *os.File `json:"-"`
}

// Env lists the environment variables that are forwarded. They describe the client's
// terminal. The store and its settings are those of the server.
var Env = []string{"NO_COLOR", "TERM"}

// message is a message from the server. The first one says that the server is ready
// for a command, the second one has the exit code. A server that hangs must not
// receive the client's streams, so the client waits for the first message.
type message struct {
	Ready bool `json:"ready,omitempty"`
	Code  int  `json:"code"`
}

const (
	streams      = 3       // standard input, output and error
	maxCommand   = 1 << 20 // bytes; longer than any command line
	readyTimeout = 10 * time.Second
)

// RunCommand executes a command in the process that listens on the socket, and returns
// its exit code. The command is cancelled when the context ends.
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
	if err := awaitReady(conn, messages, socket); err != nil {
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

// awaitReady waits until the server accepts a command.
func awaitReady(conn net.Conn, messages *json.Decoder, socket string) error {
	if err := conn.SetReadDeadline(time.Now().Add(readyTimeout)); err != nil {
		return err
	}
	var first message
	if err := messages.Decode(&first); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the server at %s does not answer: it accepted no command within %v", socket, readyTimeout)
	} else if err != nil {
		return err
	}
	return conn.SetReadDeadline(time.Time{})
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
