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
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"lifthouse/engine/embedded"
	"lifthouse/engine/embedded/server"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// serverVariable makes a test binary a ClickHouse server, with the variable's
// value for its configuration.
const serverVariable = "LIFTHOUSE_TEST_SERVER"

// Granted is the database that the users Serving and Migrating of a Server may
// work on, with the grants that lifthouse grants prints.
const Granted = "granted"

// The users of Granted.
var (
	Serving   = schema.User{Name: "serving", Password: "s"}
	Migrating = schema.User{Name: "migrating", Password: "m"}
)

const admin = "admin:secret@"

// ClickHouse is a server on this machine.
type ClickHouse struct {
	Native, HTTP *Proxy // its ports, through which it outlives clients that reset their connections

	command *exec.Cmd
	input   io.Closer
	ended   chan struct{}
}

// theServer is the process's one.
var theServer struct {
	sync.Mutex
	*ClickHouse
}

// Server returns the ClickHouse server of the test process, which starts it
// when the first test asks for it.
func Server(tb testing.TB) *ClickHouse {
	tb.Helper()
	theServer.Lock()
	defer theServer.Unlock()
	if theServer.ClickHouse == nil {
		s, err := startServer(context.Background(), filepath.Join(folder, "server"))
		if err != nil {
			tb.Fatal(err)
		}
		theServer.ClickHouse = s
	}
	return theServer.ClickHouse
}

// Address is that of a database, over the native protocol.
func (s *ClickHouse) Address(database string) string {
	return "clickhouse://" + admin + s.Native.Address() + "/" + database
}

// HTTPAddress is that of a database, over HTTP.
func (s *ClickHouse) HTTPAddress(database string) string {
	return "http://" + admin + s.HTTP.Address() + "/" + database
}

// Handler passes on requests of its HTTP interface, for what changes some.
func (s *ClickHouse) Handler() http.Handler {
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.HTTP.Address()})
}

// As is the address of Granted for one of its users.
func (s *ClickHouse) As(user schema.User) string {
	return "clickhouse://" + user.Name + ":" + user.Password + "@" + s.Native.Address() + "/" + Granted
}

// Database makes a database without tables; it goes when the test ends, unless
// the test failed.
func (s *ClickHouse) Database(tb testing.TB) string {
	tb.Helper()
	conn := Reach(tb, s.Address("default"))
	return newDatabase(tb, conn)
}

// Open returns a connection to a new database with all tables, over the native
// protocol.
func (s *ClickHouse) Open(tb testing.TB) driver.Conn {
	tb.Helper()
	return Reach(tb, s.Address(s.Migrated(tb)))
}

// Migrated makes a database with all tables.
func (s *ClickHouse) Migrated(tb testing.TB) string {
	tb.Helper()
	database := s.Database(tb)
	if _, err := schema.Migrate(tb.Context(), Reach(tb, s.Address(database))); err != nil {
		tb.Fatal(err)
	}
	return database
}

// Reach connects to an address.
func Reach(tb testing.TB, address string) driver.Conn {
	tb.Helper()
	home, err := schema.ParseAddress(address, func(string) string { return "" })
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := schema.Reach(tb.Context(), home)
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

// startServer starts this test binary again as a server that keeps its data in
// a folder.
func startServer(ctx context.Context, dir string) (*ClickHouse, error) {
	native, web, err := freePorts(ctx)
	if err != nil {
		return nil, err
	}
	configuration := filepath.Join(dir, "server.xml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	grants, err := grantsOf(Serving, Migrating)
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
	library, err := embedded.Locate("")
	if err != nil {
		return nil, err
	}
	s := &ClickHouse{ended: make(chan struct{})}
	if err := s.start(ctx, configuration, library, filepath.Join(dir, "output.txt")); err != nil {
		return nil, err
	}
	if err := s.answers(ctx, native, web); err != nil {
		return nil, err
	}
	if s.Native, err = listen(ctx, "127.0.0.1:"+native, nil); err == nil {
		s.HTTP, err = listen(ctx, "127.0.0.1:"+web, nil)
	}
	return s, err
}

// start runs the process, whose output goes to a file.
func (s *ClickHouse) start(ctx context.Context, configuration, library, output string) error {
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
	if s.input, err = s.command.StdinPipe(); err != nil {
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

// startTime is how long a server may take to answer, on a machine that is busy.
const startTime = 30 * time.Second

// answers waits until connections to the ports are taken.
func (s *ClickHouse) answers(ctx context.Context, ports ...string) error {
	deadline := time.After(startTime)
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
				return errors.New("the ClickHouse server does not answer")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// stop ends the process.
func (s *ClickHouse) stop() {
	_ = s.Native.Close()
	_ = s.HTTP.Close()
	_ = s.input.Close()
	<-s.ended
}

// freePorts are two that nobody listens at.
func freePorts(ctx context.Context) (first, second string, err error) {
	var ports [2]string
	for i := range ports {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = l.Close() }()
		if _, ports[i], err = net.SplitHostPort(l.Addr().String()); err != nil {
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

// granted is a user and what it is granted.
type granted struct {
	schema.User
	Grants []string
}

// grantsOf are what lifthouse grants prints, as a users.xml has them: this
// server makes no users by statements.
func grantsOf(serving, migrating schema.User) ([]granted, error) {
	statements, err := schema.Grants{Database: Granted, Serving: serving, Migrating: migrating}.Statements()
	if err != nil {
		return nil, err
	}
	users := []granted{{User: serving}, {User: migrating}}
	for _, statement := range statements {
		at := strings.LastIndex(statement, "GRANT ")
		if at < 0 {
			continue
		}
		for i := range users {
			if what, found := strings.CutSuffix(statement[at:], " TO `"+users[i].Name+"`"); found {
				users[i].Grants = append(users[i].Grants, what)
			}
		}
	}
	return users, nil
}

// runServer is the process that start starts.
func runServer(configuration string) int {
	library, err := embedded.Locate("")
	if err == nil {
		err = server.Run(library, configuration)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
