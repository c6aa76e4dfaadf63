package schematest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"lifthouse/engine/embedded"
	"lifthouse/schema"
	"lifthouse/schema/schematest/server"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// serverVariable is the environment variable that makes a test binary run as a ClickHouse server. Its value is the path
// of the configuration.
const serverVariable = "LIFTHOUSE_TEST_SERVER"

// Granted is the database on which the users Serving and Migrating have the privileges of the files in deploy.
const Granted = "lifthouse"

// User is a ClickHouse user.
type User struct{ Name, Password string }

// The users of Granted.
var (
	Serving   = User{Name: "lifthouse", Password: "s"}
	Migrating = User{Name: "lifthouse_migrating", Password: "m"}
)

const admin = "admin:secret@"

// ClickHouse is a ClickHouse server on this machine.
type ClickHouse struct {
	Native, HTTP *Proxy // proxies of the ports, which protect the server from connection resets

	command *exec.Cmd
	input   io.Closer
	ended   chan struct{}
}

// sharedServer is the server of the test process.
var sharedServer struct {
	sync.Mutex
	*ClickHouse
}

// SharedServer returns the ClickHouse server of the test process, and starts it on the first call.
func SharedServer(tb testing.TB) *ClickHouse {
	tb.Helper()
	sharedServer.Lock()
	defer sharedServer.Unlock()
	if sharedServer.ClickHouse == nil {
		s, err := startServer(context.Background(), filepath.Join(folder, "server"))
		if err != nil {
			tb.Fatal(err)
		}
		sharedServer.ClickHouse = s
	}
	return sharedServer.ClickHouse
}

// DatabaseAddress returns the address of a database, for the native protocol.
func (s *ClickHouse) DatabaseAddress(database string) string {
	return "clickhouse://" + admin + s.Native.ListenAddress() + "/" + database
}

// HTTPAddress returns the address of a database, for HTTP.
func (s *ClickHouse) HTTPAddress(database string) string {
	return "http://" + admin + s.HTTP.ListenAddress() + "/" + database
}

// ProxyHandler returns a handler that forwards requests to the server's HTTP interface. Tests wrap it to cause faults.
func (s *ClickHouse) ProxyHandler() http.Handler {
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.HTTP.ListenAddress()})
}

// UserAddress returns the address of the database Granted for one of its users.
func (s *ClickHouse) UserAddress(user User) string {
	return "clickhouse://" + user.Name + ":" + user.Password + "@" + s.Native.ListenAddress() + "/" + Granted
}

// CreateDatabase creates a database without tables and returns its name. The database is dropped when the test ends,
// unless the test failed.
func (s *ClickHouse) CreateDatabase(tb testing.TB) string {
	tb.Helper()
	conn := OpenConnection(tb, s.DatabaseAddress("default"))
	return newDatabase(tb, conn)
}

// OpenMigrated returns a connection to a new database with all tables, over the native protocol.
func (s *ClickHouse) OpenMigrated(tb testing.TB) driver.Conn {
	tb.Helper()
	return OpenConnection(tb, s.DatabaseAddress(s.CreateMigrated(tb)))
}

// CreateMigrated creates a database with all tables and returns its name.
func (s *ClickHouse) CreateMigrated(tb testing.TB) string {
	tb.Helper()
	database := s.CreateDatabase(tb)
	if _, err := schema.Migrate(tb.Context(), OpenConnection(tb, s.DatabaseAddress(database))); err != nil {
		tb.Fatal(err)
	}
	return database
}

// OpenConnection connects to an address.
func OpenConnection(tb testing.TB, address string) driver.Conn {
	tb.Helper()
	parsed, err := schema.ParseAddress(address, func(string) string { return "" })
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := schema.OpenConnection(tb.Context(), parsed)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

//go:embed server.xml
var serverXML string

//go:embed users.xml
var usersXML string

// startServer starts this test binary as a ClickHouse server with its data in dir.
func startServer(ctx context.Context, dir string) (*ClickHouse, error) {
	native, web, err := freePorts(ctx)
	if err != nil {
		return nil, err
	}
	configuration := filepath.Join(dir, "server.xml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	grants, err := grantedUsers("users.sql")
	if err != nil {
		return nil, err
	}
	for path, file := range map[string]struct {
		text  string
		slots any
	}{
		configuration:                   {serverXML, map[string]any{"Dir": dir, "Native": native, "HTTP": web}},
		filepath.Join(dir, "users.xml"): {usersXML, grants},
	} {
		if err := writeTemplate(path, file.text, file.slots); err != nil {
			return nil, err
		}
	}
	library, err := embedded.LocateLibrary()
	if err != nil {
		return nil, err
	}
	s := &ClickHouse{ended: make(chan struct{})}
	if err := s.startProcess(ctx, configuration, library, filepath.Join(dir, "output.txt")); err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx, native, web); err != nil {
		return nil, err
	}
	s.Native, err = startProxy(ctx, "127.0.0.1:"+native, nil)
	if err == nil {
		s.HTTP, err = startProxy(ctx, "127.0.0.1:"+web, nil)
	}
	return s, err
}

// startProcess starts the process. Its output goes to a file.
func (s *ClickHouse) startProcess(ctx context.Context, configuration, library, output string) error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	s.command = exec.CommandContext(ctx, binary)
	s.command.Env = append(os.Environ(), serverVariable+"="+configuration, "LIFTHOUSE_LIBCHDB="+library)
	s.command.Stdout, s.command.Stderr = out, out
	s.input, err = s.command.StdinPipe()
	if err != nil {
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	go func() {
		_ = s.command.Wait()
		_ = out.Close()
		close(s.ended)
	}()
	return nil
}

// startTimeout is the maximum time for a server to accept connections, on a busy machine.
const startTimeout = 30 * time.Second

// waitReady waits until the ports accept connections.
func (s *ClickHouse) waitReady(ctx context.Context, ports ...string) error {
	deadline := time.After(startTimeout)
	for _, port := range ports {
		for {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
			if err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-s.ended:
				text, _ := os.ReadFile(s.command.Stderr.(*os.File).Name())
				return fmt.Errorf("the ClickHouse server ended: %s", text)
			case <-deadline:
				return errors.New("the ClickHouse server does not accept connections")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// stopProcess ends the process.
func (s *ClickHouse) stopProcess() {
	_ = s.Native.Close()
	_ = s.HTTP.Close()
	_ = s.input.Close()
	<-s.ended
}

// freePorts returns two free ports.
func freePorts(ctx context.Context) (first, second string, err error) {
	var ports [2]string
	for i := range ports {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = l.Close() }()
		_, ports[i], err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			return "", "", err
		}
	}
	return ports[0], ports[1], nil
}

func writeTemplate(path, text string, slots any) error {
	parsed, err := template.New(filepath.Base(path)).Parse(text)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := parsed.Execute(&b, slots); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// grantedUser is a user and its grants.
type grantedUser struct {
	User
	Grants []string
}

// grantedUsers returns the users with the grants of a file of SQL in deploy, for users.xml. These servers cannot create
// users by statements.
func grantedUsers(file string) ([]grantedUser, error) {
	text, err := os.ReadFile(findAbove(filepath.Join("deploy", file)))
	if err != nil {
		return nil, err
	}
	users := []grantedUser{{User: Serving}, {User: Migrating}}
	for statement := range strings.SplitSeq(strings.TrimSpace(string(text)), ";\n") {
		at := strings.LastIndex(statement, "GRANT ")
		if at < 0 {
			continue
		}
		what, names, _ := strings.Cut(strings.TrimSuffix(statement[at:], ";"), " TO ")
		what = strings.Replace(what, " ON CLUSTER "+clusterName, "", 1)
		for i := range users {
			if slices.Contains(strings.Split(names, ", "), users[i].Name) {
				users[i].Grants = append(users[i].Grants, what)
			}
		}
	}
	return users, nil
}

// findAbove returns the path of a file that is named relative to a parent of the working directory, or an empty path.
func findAbove(name string) string {
	working, err := os.Getwd()
	for at := working; err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		path := filepath.Join(at, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// runServer runs the process as a ClickHouse server.
func runServer(configuration string) int {
	library, err := embedded.LocateLibrary()
	if err == nil {
		err = server.Run(library, configuration)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
