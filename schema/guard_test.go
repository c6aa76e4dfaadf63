package schema_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// taken accepts connections, does with each what it is told, and counts them.
func taken(t *testing.T, do func(net.Conn)) (address string, count *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func hang(conn net.Conn)  { _, _ = io.Copy(io.Discard, conn) }
func clash(conn net.Conn) { _ = conn.Close() }

func refusing(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func reach(t *testing.T, address string) (driver.Conn, error) {
	t.Helper()
	home, err := schema.ParseAddress(address, none)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := schema.Reach(t.Context(), home)
	if conn != nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// TestStoresThatAreAway are told as such, whatever they do to a connection.
func TestStoresThatAreAway(t *testing.T) {
	hanging, _ := taken(t, hang)
	clashing, _ := taken(t, clash)
	for name, host := range map[string]string{"hangs": hanging, "closes": clashing, "refuses": refusing(t)} {
		for _, scheme := range []string{"clickhouse", "http"} {
			_, err := reach(t, scheme+"://"+host+"/db?dial_timeout=100ms&read_timeout=100ms")
			if !schema.Unreachable(err) || !strings.Contains(err.Error(), host) {
				t.Errorf("%s that %s: %v", scheme, name, err)
			}
		}
	}
}

// served is a store behind HTTP servers, of which handler makes each.
func served(t *testing.T, wrap func(http.Handler) http.Handler) (server *httptest.Server, database string) {
	t.Helper()
	of := schematest.Server(t)
	server = httptest.NewServer(wrap(of.Handler()))
	t.Cleanup(server.Close)
	return server, of.Migrated(t)
}

func plain(h http.Handler) http.Handler { return h }

// TestADeadStoreIsNotAsked once it has failed: what would ask it fails at once.
func TestADeadStoreIsNotAsked(t *testing.T) {
	server, database := served(t, plain)
	conn, err := reach(t, server.URL+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	address := server.Listener.Addr().String()
	server.Close()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("the port is taken by another process: %v", err)
	}
	defer func() { _ = listener.Close() }()
	var asked atomic.Int64
	go func() {
		for {
			broken, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = broken.Close()
		}
	}()
	for range 5 {
		if err := conn.QueryRow(t.Context(), "SELECT 1").Err(); !schema.Unreachable(err) {
			t.Fatalf("error = %v", err)
		}
	}
	before, started := asked.Load(), time.Now()
	for range 100 {
		err := conn.Exec(t.Context(), "SELECT 1")
		if time.Since(started) < time.Second && !errors.Is(err, schema.ErrAway) { // it is tried again after two
			t.Fatalf("error = %v", err)
		}
	}
	if now := asked.Load(); before == 0 || time.Since(started) < time.Second && now != before {
		t.Errorf("connections: %d, and %d after 100 more statements", before, now)
	}
}

// TestFailover has the next host answer where the first does not.
func TestFailover(t *testing.T) {
	server := schematest.Server(t)
	for scheme, host := range map[string]string{"http": server.HTTP.Address(), "clickhouse": server.Native.Address()} {
		hanging, tried := taken(t, hang)
		for _, first := range []string{refusing(t), hanging} {
			conn, err := reach(t, scheme+"://"+first+","+host+"/default?dial_timeout=100ms&conn_max_lifetime=1ms")
			if err != nil {
				t.Errorf("%s behind %s: %v", scheme, first, err)
				continue
			}
			for range 20 {
				if err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
					t.Error(scheme, err)
				}
			}
		}
		if tried.Load() == 0 || tried.Load() > 5 {
			t.Errorf("%s: the host that hangs was tried %d times, want once in a while", scheme, tried.Load())
		}
	}
}

// breaking cuts off the answers that it is told to, done or not.
type breaking struct {
	http.Handler
	text  string // of the statement
	done  bool
	left  atomic.Int64
	asked atomic.Int64
}

func (b *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !strings.Contains(r.URL.RawQuery+string(body), b.text) {
		b.Handler.ServeHTTP(w, r)
		return
	}
	b.asked.Add(1)
	if b.left.Add(-1) >= 0 {
		if b.done {
			b.Handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}
	b.Handler.ServeHTTP(w, r)
}

// TestReadsAreAskedAgainAndChangesAreNot when a connection breaks.
func TestReadsAreAskedAgainAndChangesAreNot(t *testing.T) {
	var b *breaking
	server, database := served(t, func(h http.Handler) http.Handler { b = &breaking{Handler: h, text: "marked"}; return b })
	conn, err := reach(t, server.URL+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	b.left.Store(1)
	var one uint8
	if err := conn.QueryRow(t.Context(), "SELECT 1 /* marked */").Scan(&one); err != nil || one != 1 || b.asked.Load() != 2 {
		t.Errorf("a read: %d, %v, asked %d times", one, err, b.asked.Load())
	}
	b.left.Store(1)
	b.asked.Store(0)
	if err := conn.Exec(t.Context(), "INSERT INTO rejects (reason) SELECT 'marked'"); !schema.Unreachable(err) || b.asked.Load() != 1 {
		t.Errorf("a change: %v, asked %d times", err, b.asked.Load())
	}
}

// TestAnInsertIsSentAgainUnderItsToken, and what was stored without an answer
// counts once.
func TestAnInsertIsSentAgainUnderItsToken(t *testing.T) {
	for _, done := range []bool{false, true} {
		var b *breaking
		server, database := served(t, func(h http.Handler) http.Handler {
			b = &breaking{Handler: h, text: "INSERT+INTO+events", done: done}
			return b
		})
		conn, err := reach(t, server.URL+"/"+database)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 1000",
			"ALTER TABLE subject_stats MODIFY SETTING non_replicated_deduplication_window = 1000",
		} {
			if err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		b.left.Store(1)
		event := schema.Event{EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView}
		if err := schema.InsertEventsOf(t.Context(), conn, "writer", []schema.Event{event}, time.Now()); err != nil {
			t.Fatal(err)
		}
		var events, counted uint64
		if err := conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM events), (SELECT sum(rows) FROM subject_stats)").Scan(&events, &counted); err != nil {
			t.Fatal(err)
		}
		if events != 1 || counted != 1 || b.asked.Load() < 2 {
			t.Errorf("done %v: %d events, %d counted, asked %d times", done, events, counted, b.asked.Load())
		}
	}
}

// TestTheEndOfARequestIsNoFault of the store: clients that go away do not have
// it left alone.
func TestTheEndOfARequestIsNoFault(t *testing.T) {
	server, database := served(t, plain)
	conn, err := reach(t, server.URL+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if err := conn.Exec(gone, "SELECT 1"); err == nil {
			t.Fatal("no error")
		}
	}
	if err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
}

// keyPair writes a certificate that signed itself, and its key.
func keyPair(t *testing.T) (certFile, keyFile string, parsed *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, parsed
}

// TestTLS has both sides show who they are.
func TestTLS(t *testing.T) {
	certFile, keyFile, certificate := keyPair(t)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(certificate)
	server := httptest.NewUnstartedServer(schematest.Server(t).Handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	address := "https://admin:secret@" + server.Listener.Addr().String() + "/default?dial_timeout=2s&"
	conn, err := reach(t, address+"ca="+certFile+"&cert="+certFile+"&key="+keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if _, err := reach(t, address+"ca="+certFile); !schema.Unreachable(err) {
		t.Errorf("without a client's certificate: %v", err)
	}
	if _, err := reach(t, address); err == nil || !strings.Contains(err.Error(), "is ca= right?") {
		t.Errorf("without the authority: %v", err)
	}
	native := strings.Replace(address, "https", "clickhouses", 1) // whose greeting HTTP closes
	if _, err := reach(t, native); err == nil || !strings.Contains(err.Error(), "is ca= right?") {
		t.Errorf("the native protocol without the authority: %v", err)
	}
}

type unclosing struct {
	driver.Conn
	until chan struct{}
}

// Close is driver.Conn's.
func (c unclosing) Close() error {
	<-c.until
	return nil
}

// TestClosingEnds where the driver does not.
func TestClosingEnds(t *testing.T) {
	until := make(chan struct{})
	defer close(until)
	closed := make(chan error, 1)
	go func() { closed <- schema.Guarded(unclosing{until: until}).Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the driver")
	}
}
