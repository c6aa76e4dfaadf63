package mcp

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// ServeStreams answers messages, one per line, until the input or the context ends. It closes both streams.
func (s *Server) ServeStreams(ctx context.Context, c Caller, requests io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams := &sdk.IOTransport{Reader: requests, Writer: out, MaxLineLength: MaxMessage}
	return s.sdk.Run(withCall(ctx, c), answeringTransport{streams, s})
}

// answeringTransport passes on the end of the input when all requests are answered, because the SDK cancels those in
// progress.
type answeringTransport struct {
	sdk.Transport
	server *Server
}

// Connect implements sdk.Transport.
func (t answeringTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	return &answeringConn{conn, ctx, t.server, semaphore.NewWeighted(allRequests)}, err
}

type answeringConn struct {
	sdk.Connection
	ctx     context.Context
	server  *Server
	waiting *semaphore.Weighted // has 1 for each request without an answer
}

// allRequests is more than the number of requests at the same time.
const allRequests = math.MaxInt64

// Read implements sdk.Connection. At the end of the input, it waits for the answers as long as a call of a tool may
// take.
func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, is := m.(*jsonrpc.Request); is && r.IsCall() {
		err = c.waiting.Acquire(ctx, 1)
	}
	if errors.Is(err, io.EOF) {
		limited, cancel := c.server.results.LimitTime(c.ctx)
		defer cancel()
		_ = c.waiting.Acquire(limited, allRequests)
	}
	return m, err
}

// Write implements sdk.Connection.
func (c *answeringConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, is := m.(*jsonrpc.Response); is {
		c.waiting.Release(1)
	}
	return err
}
