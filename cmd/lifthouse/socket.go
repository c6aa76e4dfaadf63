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
	"sync"
	"syscall"
)

// socketName is where, beside its data, the process that holds an embedded
// store takes commands from others of the same user.
const socketName = "lifthouse.sock"

// errand is a command that another process carries out. The client's standard
// streams travel beside it as open files, so that output, progress and pipes
// are the client's own.
type errand struct {
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
}

// outcome is the answer to an errand.
type outcome struct {
	Code int `json:"code"`
}

const (
	streams   = 3       // standard input, output and error
	maxErrand = 1 << 20 // bytes; a command line is shorter
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
	text, err := json.Marshal(errand{p.dir, p.args})
	if err != nil {
		return exitFailed, err
	}
	rights := syscall.UnixRights(int(p.in.Fd()), int(p.out.Fd()), int(p.err.Fd()))
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return exitFailed, err
	}
	var answer outcome
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return exitFailed, fmt.Errorf("the process that holds the store went away before it was done: %w", err)
	}
	return answer.Code, nil
}

// takeErrands carries out commands of other processes until the context
// ends, and returns when the last of them has ended.
func takeErrands(ctx context.Context, listener net.Listener, s *store) {
	var running sync.WaitGroup
	defer running.Wait()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				slog.ErrorContext(ctx, "socket closed", "error", err)
			}
			return
		}
		running.Go(func() {
			defer func() { _ = conn.Close() }()
			if err := carryOut(ctx, conn.(*net.UnixConn), s); err != nil {
				slog.WarnContext(ctx, "command from the socket", "error", err)
			}
		})
	}
}

func carryOut(ctx context.Context, conn *net.UnixConn, s *store) error {
	e, files, err := receive(conn)
	for _, file := range files {
		defer func() { _ = file.Close() }()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the client sends nothing more: an end means that it is gone
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	noEnv := func(string) string { return "" }
	p := &program{in: files[0], out: files[1], err: files[2], dir: e.Dir, args: e.Args, getenv: noEnv, running: s}
	return json.NewEncoder(conn).Encode(outcome{p.run(ctx)})
}

// receive reads an errand and the files that came with it.
func receive(conn *net.UnixConn) (errand, []*os.File, error) {
	var text []byte
	var files []*os.File
	buffer, control := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(streams*4))
	for !bytes.HasSuffix(text, []byte("\n")) {
		n, controlled, _, _, err := conn.ReadMsgUnix(buffer, control)
		if err != nil {
			return errand{}, files, err
		}
		received, err := received(control[:controlled])
		files = append(files, received...)
		if err != nil {
			return errand{}, files, err
		}
		if n == 0 || len(text)+n > maxErrand {
			return errand{}, files, errors.New("not a command")
		}
		text = append(text, buffer[:n]...)
	}
	if len(files) != streams {
		return errand{}, files, fmt.Errorf("have %d open files, want %d", len(files), streams)
	}
	var e errand
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

// listenForErrands opens the socket of an embedded store, for this user only.
func listenForErrands(ctx context.Context, path string) (net.Listener, error) {
	// The store's lock is ours, so that a socket found here is a dead one.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	mask := syscall.Umask(0o177)
	defer syscall.Umask(mask)
	var config net.ListenConfig
	return config.Listen(ctx, "unix", path)
}
