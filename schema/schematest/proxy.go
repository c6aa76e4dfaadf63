package schematest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections to a server. If a client resets its connection, as a killed client does, the server sees
// an ordinary close.
type Proxy struct {
	Down atomic.Bool // new connections are closed; with a FaultFunc, existing ones are closed at the next piece

	fault FaultFunc

	listener net.Listener
	upstream string
	mutex    sync.Mutex
	clients  map[net.Conn]bool
}

// FaultFunc is called before each piece of data in either direction. It returns a delay, and whether to close the
// connection instead.
type FaultFunc func() (wait time.Duration, cut bool)

// NewProxy returns a proxy for an address, which is closed when the test ends. If fault is nil, the proxy forwards
// everything.
func NewProxy(tb testing.TB, upstream string, fault FaultFunc) *Proxy {
	tb.Helper()
	p, err := startProxy(tb.Context(), upstream, fault)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

func startProxy(ctx context.Context, upstream string, fault FaultFunc) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{fault: fault, listener: listener, upstream: upstream, clients: map[net.Conn]bool{}}
	go p.acceptClients()
	return p, nil
}

// ListenAddress returns the address of the proxy.
func (p *Proxy) ListenAddress() string { return p.listener.Addr().String() }

// Close stops listening and closes the existing connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.BreakConnections()
	return err
}

// BreakConnections closes the existing connections.
func (p *Proxy) BreakConnections() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for client := range p.clients {
		_ = client.Close()
	}
}

func (p *Proxy) acceptClients() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.upstream)
		if err != nil || p.Down.Load() {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.mutex.Lock()
		p.clients[client] = true
		p.mutex.Unlock()
		go p.forwardConnection(client, server.(*net.TCPConn))
	}
}

func (p *Proxy) forwardConnection(client net.Conn, server *net.TCPConn) {
	go func() {
		_ = p.forwardData(server, client)
		_ = client.Close()
		_ = server.CloseWrite()
	}()
	if p.forwardData(client, server) != nil {
		_ = client.Close()
		_, _ = io.Copy(io.Discard, server) // unread data would reset the connection
	}
	_ = client.Close()
	_ = server.Close()
	p.mutex.Lock()
	delete(p.clients, client)
	p.mutex.Unlock()
}

// forwardData forwards data in one direction.
func (p *Proxy) forwardData(to, from net.Conn) error {
	if p.fault == nil {
		_, err := io.Copy(to, from)
		return err
	}
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return err
		}
		wait, cut := p.fault()
		if cut || p.Down.Load() {
			return net.ErrClosed
		}
		if wait > 0 {
			<-time.After(wait)
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return err
		}
	}
}
