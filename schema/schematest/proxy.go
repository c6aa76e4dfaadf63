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

// Proxy passes connections on to a server. The server sees a client that
// resets its connection, as one does that is killed, close it.
type Proxy struct {
	Away atomic.Bool // connections are refused, and those that are there broken

	fate Fate

	listener net.Listener
	upstream string
	mutex    sync.Mutex
	clients  map[net.Conn]bool
}

// Fate is asked before each piece that a client sends or is sent: how long it
// takes, and whether the connection breaks instead.
type Fate func() (wait time.Duration, cut bool)

// Between returns a proxy before an address, until the test ends. Without a
// fate it passes on all.
func Between(tb testing.TB, upstream string, fate Fate) *Proxy {
	tb.Helper()
	p, err := listen(tb.Context(), upstream, fate)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

func listen(ctx context.Context, upstream string, fate Fate) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{fate: fate, listener: listener, upstream: upstream, clients: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close refuses connections, and breaks those that are there.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Break()
	return err
}

// Break breaks the connections that are there.
func (p *Proxy) Break() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for client := range p.clients {
		_ = client.Close()
	}
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.upstream)
		if err != nil || p.Away.Load() {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.mutex.Lock()
		p.clients[client] = true
		p.mutex.Unlock()
		go p.pass(client, server.(*net.TCPConn))
	}
}

func (p *Proxy) pass(client net.Conn, server *net.TCPConn) {
	go func() {
		_ = p.copy(server, client)
		_ = client.Close()
		_ = server.CloseWrite()
	}()
	if p.copy(client, server) != nil {
		_ = client.Close()
		_, _ = io.Copy(io.Discard, server) // to leave what it sends unread would reset the connection
	}
	_ = client.Close()
	_ = server.Close()
	p.mutex.Lock()
	delete(p.clients, client)
	p.mutex.Unlock()
}

// copy passes on what comes, piece by piece, with the fate of each.
func (p *Proxy) copy(to, from net.Conn) error {
	if p.fate == nil {
		_, err := io.Copy(to, from)
		return err
	}
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return err
		}
		wait, cut := p.fate()
		if cut || p.Away.Load() {
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
