package schema_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// listen accepts connections until the test ends, calls do for each, and counts them.
func listen(t *testing.T, do func(net.Conn)) (address string, count *atomic.Int64) {
	t.Helper()
	listener := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			go do(conn)
		}
	}()
	return listener.Addr().String(), count
}

func hang(conn net.Conn)      { _, _ = io.Copy(io.Discard, conn) }
func closeConn(conn net.Conn) { _ = conn.Close() }

func reach(t *testing.T, address string) (driver.Conn, error) {
	t.Helper()
	home := must.Get(schema.ParseAddress(address, none))(t)
	conn, err := schema.OpenConnection(t.Context(), home)
	if conn != nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// TestUnreachable connects to servers that fail in different ways.
func TestUnreachable(t *testing.T) {
	hanging, _ := listen(t, hang)
	closing, _ := listen(t, closeConn)
	for name, host := range map[string]string{
		"hangs": hanging, "closes": closing,
		"refuses": schematest.FreeAddress(t),
	} {
		for _, scheme := range []string{"clickhouse", "http"} {
			_, err := reach(t, scheme+"://"+host+"/db?dial_timeout=100ms&read_timeout=100ms")
			check.That(t, schema.IsUnreachable(err), "%s that %s: %v", scheme, name, err)
			check.Contains(t, err.Error(), host, "%s that %s: %v", scheme, name, err)
		}
	}
}

// serve returns an HTTP server for a migrated store. Its handler is wrapped.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) (server *httptest.Server, database string) {
	t.Helper()
	of := schematest.SharedServer(t)
	server = httptest.NewServer(wrap(of.ProxyHandler()))
	t.Cleanup(server.Close)
	return server, of.CreateMigrated(t)
}

func unchanged(h http.Handler) http.Handler { return h }

// TestFailedStoreIsNotContacted checks that statements fail immediately, without a connection, after connections have
// failed.
func TestFailedStoreIsNotContacted(t *testing.T) {
	server, database := serve(t, unchanged)
	conn := must.Get(reach(t, server.URL+"/"+database))(t)
	address := server.Listener.Addr().String()
	server.Close()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("the port is taken by another process: %v", err)
	}
	defer func() { _ = listener.Close() }()
	var requests atomic.Int64
	go func() {
		for {
			broken, err := listener.Accept()
			if err != nil {
				return
			}
			requests.Add(1)
			_ = broken.Close()
		}
	}()
	for range 5 {
		err := conn.QueryRow(t.Context(), "SELECT 1").Err()
		must.That(t, schema.IsUnreachable(err), "error = %v", err)
	}
	before, started := requests.Load(), time.Now()
	for range 100 {
		err := conn.Exec(t.Context(), "SELECT 1")
		if time.Since(started) < time.Second &&
			!errors.Is(err, schema.ErrUnavailable) { // connections are retried after 2 s
			t.Fatalf("error = %v", err)
		}
	}
	now := requests.Load()
	check.That(t, before != 0, "connections: %d, and %d after 100 more statements", before, now)
	check.That(t, (time.Since(started) >= time.Second || now == before),
		"connections: %d, and %d after 100 more statements", before, now)
}

// TestFailover has a first host that does not respond.
func TestFailover(t *testing.T) {
	server := schematest.SharedServer(t)
	for scheme, host := range map[string]string{
		"http":       server.HTTP.ListenAddress(),
		"clickhouse": server.Native.ListenAddress(),
	} {
		hanging, tried := listen(t, hang)
		for _, first := range []string{schematest.FreeAddress(t), hanging} {
			conn, err := reach(t, scheme+"://"+first+","+host+"/default?dial_timeout=2s&conn_max_lifetime=1ms")
			if err != nil {
				t.Errorf("%s behind %s: %v", scheme, first, err)
				continue
			}
			for range 20 {
				must.OK(t, conn.Exec(t.Context(), "SELECT 1"), "%v", scheme)
			}
		}
		check.That(t, tried.Load() != 0, "%s: %d connections to the host that hangs, want 1 to 5", scheme, tried.Load())
		check.That(t, tried.Load() <= 5, "%s: %d connections to the host that hangs, want 1 to 5", scheme, tried.Load())
	}
}

// faultyHandler closes the connection instead of sending a response, for the next requests whose statement contains a
// text.
type faultyHandler struct {
	http.Handler
	text     string
	done     bool         // execute the statement first
	left     atomic.Int64 // number of requests that fail
	requests atomic.Int64
}

func (b *faultyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !strings.Contains(r.URL.RawQuery+string(body), b.text) {
		b.Handler.ServeHTTP(w, r)
		return
	}
	b.requests.Add(1)
	if b.left.Add(-1) >= 0 {
		if b.done {
			b.Handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}
	b.Handler.ServeHTTP(w, r)
}

// TestOnlyReadsAreRetried breaks connections after the request was sent.
func TestOnlyReadsAreRetried(t *testing.T) {
	var b *faultyHandler
	server, database := serve(t,
		func(h http.Handler) http.Handler { b = &faultyHandler{Handler: h, text: "marked"}; return b })
	conn := must.Get(reach(t, server.URL+"/"+database))(t)
	b.left.Store(1)
	var one uint8
	if err := conn.QueryRow(t.Context(), "SELECT 1 /* marked */").Scan(&one); err != nil || one != 1 ||
		b.requests.Load() != 2 {
		t.Errorf("a read: %d, %v, %d requests", one, err, b.requests.Load())
	}
	b.left.Store(1)
	b.requests.Store(0)
	if err := conn.Exec(t.Context(), "INSERT INTO rejects (reason) SELECT 'marked'"); !schema.IsUnreachable(err) ||
		b.requests.Load() != 1 {
		t.Errorf("a change: %v, %d requests", err, b.requests.Load())
	}
}

// TestInsertsNoticeBrokenConnections breaks the connection before a second insert by the same statement.
func TestInsertsNoticeBrokenConnections(t *testing.T) {
	var b *faultyHandler
	server, database := serve(t,
		func(h http.Handler) http.Handler { b = &faultyHandler{Handler: h, text: "rejects"}; return b })
	conn := must.Get(reach(t, server.URL+"/"+database))(t)
	for website := range int64(2) {
		b.left.Store(1)
		must.OK(t,
			schema.InsertRows(t.Context(), conn, "INSERT INTO rejects (rejected_at, website_id)", []int64{website},
				func(id *int64) []any { return []any{time.Now(), *id} }))
	}
	var stored uint64
	b.left.Store(0)
	err := conn.QueryRow(t.Context(), "SELECT count() FROM rejects").Scan(&stored)
	must.That(t, err == nil, "%d rows, %v, want 2", stored, err)
	check.Equal(t, stored, 2, "%d rows, %v, want 2", stored, err)
}

// TestInsertRetryIsIdempotent breaks the connection of an insert before or after the insert is executed. A copy that
// the retry stores has the same key and time of acceptance.
func TestInsertRetryIsIdempotent(t *testing.T) {
	for _, done := range []bool{false, true} {
		var b *faultyHandler
		server, database := serve(t, func(h http.Handler) http.Handler {
			b = &faultyHandler{Handler: h, text: "INSERT+INTO+events", done: done}
			return b
		})
		conn := must.Get(reach(t, server.URL+"/"+database))(t)
		b.left.Store(1)
		event := schema.Event{
			EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1,
			Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView,
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, []schema.Event{event}, time.Now()))
		var events uint64
		must.OK(t, conn.QueryRow(t.Context(), "SELECT count() FROM events FINAL").Scan(&events))
		check.Equal(t, events, 1, "done %v: %d events, %d requests", done, events, b.requests.Load())
		check.That(t, b.requests.Load() >= 2, "done %v: %d events, %d requests", done, events, b.requests.Load())
	}
}

// TestCanceledRequestsAreNotFailures checks that canceled requests do not open the circuit breaker.
func TestCanceledRequestsAreNotFailures(t *testing.T) {
	server, database := serve(t, unchanged)
	conn := must.Get(reach(t, server.URL+"/"+database))(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		err := conn.Exec(canceled, "SELECT 1")
		must.That(t, err != nil, "no error")
	}
	must.OK(t, conn.Exec(t.Context(), "SELECT 1"))
}

// TestTLS connects with certificates of the server and the client.
func TestTLS(t *testing.T) {
	certFile, keyFile, certificate := schematest.WriteCertificate(t)
	pair := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	clients := x509.NewCertPool()
	clients.AddCert(certificate)
	server := httptest.NewUnstartedServer(schematest.SharedServer(t).ProxyHandler())
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: clients, MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	address := "https://admin:secret@" + server.Listener.Addr().String() + "/default?dial_timeout=2s&"
	conn := must.Get(reach(t, address+"ca="+certFile+"&cert="+certFile+"&key="+keyFile))(t)
	must.OK(t, conn.Exec(t.Context(), "SELECT 1"))
	_, err := reach(t, address+"ca="+certFile)
	check.That(t, schema.IsUnreachable(err), "without a client certificate: %v", err)
	_, err = reach(t, address)
	must.That(t, err != nil, "without the certificate authority: %v", err)
	check.Contains(t, err.Error(), "check ca=", "without the certificate authority: %v", err)
	native := strings.Replace(address, "https", "clickhouses",
		1) // the HTTP server has the certificate, and closes the connection
	_, err = reach(t, native)
	must.That(t, err != nil, "the native protocol without the certificate authority: %v", err)
	check.Contains(t, err.Error(), "check ca=", "the native protocol without the certificate authority: %v", err)
}

// unclosing is a connection whose Close does not return before until is closed.
type unclosing struct {
	driver.Conn
	until chan struct{}
}

// Close implements driver.Conn.
func (c unclosing) Close() error {
	<-c.until
	return nil
}

// TestCloseReturns has a driver whose Close does not return.
func TestCloseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		defer close(until)
		must.OK(t, schema.Guarded(unclosing{until: until}).Close())
	})
}
