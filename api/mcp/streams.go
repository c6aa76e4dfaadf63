package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStreams answers messages, one per line, until the input or the context ends. It closes both streams.
func (s *Server) ServeStreams(ctx context.Context, c Caller, requests io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams := &sdk.IOTransport{Reader: requests, Writer: out, MaxLineLength: MaxMessage}
	return s.sdk.Run(withCall(ctx, c), answeringTransport{streams})
}

// answeringTransport passes on the end of the input when all requests are answered, because the SDK cancels those in
// progress.
type answeringTransport struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (t answeringTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	waiting, answered := map[jsonrpc.ID]bool{}, make(chan struct{}, 1)
	return &answeringConn{Connection: conn, ended: ctx.Done(), answered: answered, waiting: waiting}, err
}

type answeringConn struct {
	sdk.Connection
	ended    <-chan struct{}
	answered chan struct{} // signals that an answer was written

	mu      sync.Mutex
	waiting map[jsonrpc.ID]bool // requests without an answer; guarded by mu
}

// Read implements sdk.Connection. Each call of a tool has a time limit, so the wait for answers ends.
func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, is := m.(*jsonrpc.Request); is {
		c.setWaiting(r)
	}
	for errors.Is(err, io.EOF) && c.countWaiting() > 0 {
		select {
		case <-c.answered:
		case <-c.ended:
			return m, err
		}
	}
	return m, err
}

func (c *answeringConn) setWaiting(r *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cancelled struct{ RequestID any }
	switch {
	case r.IsCall():
		c.waiting[r.ID] = true
	case r.Method == "notifications/cancelled" && json.Unmarshal(r.Params, &cancelled) == nil:
		id, _ := jsonrpc.MakeID(cancelled.RequestID)
		delete(c.waiting, id)
	}
}

func (c *answeringConn) countWaiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// Write implements sdk.Connection.
func (c *answeringConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, is := m.(*jsonrpc.Response); is {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default: // the last signal is not seen yet
		}
	}
	return err
}
