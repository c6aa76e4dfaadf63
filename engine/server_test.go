package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"lifthouse/engine/source"
	"lifthouse/schema"
)

// serverImages are the tested releases of ClickHouse.
var serverImages = []string{"clickhouse/clickhouse-server:25.8", "clickhouse/clickhouse-server:latest"}

const keeperImage = "clickhouse/clickhouse-keeper:25.8"

// needDocker skips a test if no container engine runs.
func needDocker(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts ClickHouse servers in containers: not with -short")
	}
	testcontainers.SkipIfProviderIsNotHealthy(t)
}

// startServer starts a ClickHouse server and returns its native address.
func startServer(t *testing.T, image string, options ...testcontainers.ContainerCustomizer) (testcontainers.Container, string) {
	t.Helper()
	options = append([]testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts("9000/tcp", "8123/tcp"),
		testcontainers.WithEnv(map[string]string{"CLICKHOUSE_USER": "admin", "CLICKHOUSE_PASSWORD": "secret", "CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT": "1"}),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/ping").WithPort("8123/tcp").WithStartupTimeout(2 * time.Minute)),
	}, options...)
	container, err := testcontainers.Run(t.Context(), image, options...)
	testcontainers.CleanupContainer(t, container)
	if err != nil {
		t.Fatal(err)
	}
	address, err := container.PortEndpoint(t.Context(), "9000/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	return container, address
}

// atServer creates the database and its tables, and connects to it.
func atServer(t *testing.T, hosts, query string) driver.Conn {
	t.Helper()
	none := func(string) string { return "" }
	home, err := schema.ParseAddress("clickhouse://admin:secret@"+hosts+"/lifthouse"+query, none)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := schema.ParseAddress("clickhouse://admin:secret@"+hosts+"/default", none)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := schema.Reach(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	statements, err := schema.Grants{
		Database: "lifthouse", Cluster: home.Cluster,
		Serving: schema.User{Name: "serving", Password: "s"}, Migrating: schema.User{Name: "migrating", Password: "m"},
	}.Statements()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	connect := func(user, password string) driver.Conn {
		home.Options.Auth.Username, home.Options.Auth.Password = user, password
		conn, err := schema.Connect(t.Context(), home)
		if err != nil {
			t.Fatalf("as %s: %v", user, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	connect("migrating", "m")
	return connect("serving", "s") // who may make no table, and need not
}

// holdAgainstFold inserts the events of a world and compares some reports with
// the plain fold.
func holdAgainstFold(t *testing.T, conn driver.Conn) {
	t.Helper()
	w := world{rand.New(rand.NewPCG(25, 8))}
	var events []schema.Event
	for range 1_000 {
		events = append(events, w.event(1))
	}
	insert(t, conn, events)
	s := &source.Store{Conn: conn, Limits: source.DefaultLimits, Shards: source.ShardsOf(conn)}
	owned := w.owned(1)
	for i := range 30 {
		compareWithFold(t, stored{Store: s, events: events}, owned, w.request(1))
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}

// TestReportsOfAServer checks migrations, grants, the native protocol and
// reports on servers of several releases.
func TestReportsOfAServer(t *testing.T) {
	needDocker(t)
	for _, image := range serverImages {
		t.Run(strings.ReplaceAll(image, "/", "_"), func(t *testing.T) {
			_, address := startServer(t, image)
			holdAgainstFold(t, atServer(t, address, ""))
		})
	}
}

// TestAnotherServerTakesOver stops the first of two servers.
func TestAnotherServerTakesOver(t *testing.T) {
	needDocker(t)
	first, one := startServer(t, serverImages[0])
	_, two := startServer(t, serverImages[0])
	home, err := schema.ParseAddress("clickhouse://admin:secret@"+one+","+two+"/default?dial_timeout=1s", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := schema.Reach(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	uuid := func() string {
		var id string
		if err := conn.QueryRow(t.Context(), "SELECT toString(serverUUID())").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	before := uuid()
	if again := uuid(); again != before {
		t.Errorf("asked %s, then %s, while the first was there", before, again)
	}
	if err := first.Stop(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if after := uuid(); after == before {
		t.Error("the stopped server answers")
	}
}

const keeperXML = `<clickhouse><listen_host>0.0.0.0</listen_host><keeper_server><tcp_port>9181</tcp_port><server_id>1</server_id>
<log_storage_path>/var/lib/clickhouse-keeper/log</log_storage_path><snapshot_storage_path>/var/lib/clickhouse-keeper/snapshots</snapshot_storage_path>
<raft_configuration><server><id>1</id><hostname>keeper</hostname><port>9234</port></server></raft_configuration></keeper_server></clickhouse>`

const shardXML = `<clickhouse><listen_host>0.0.0.0</listen_host><macros><shard>%d</shard><replica>1</replica></macros>
<zookeeper><node><host>keeper</host><port>9181</port></node></zookeeper><distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
<remote_servers replace="true"><lift><secret>between servers</secret>
<shard><internal_replication>true</internal_replication><replica><host>shard1</host><port>9000</port></replica></shard>
<shard><internal_replication>true</internal_replication><replica><host>shard2</host><port>9000</port></replica></shard>
</lift></remote_servers></clickhouse>`

func withFile(text, path string) testcontainers.ContainerCustomizer {
	return testcontainers.WithFiles(testcontainers.ContainerFile{Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o644})
}

// TestReportsOfACluster compares reports of two shards with the plain fold, and
// checks that both shards have visitors.
func TestReportsOfACluster(t *testing.T) {
	needDocker(t)
	net, err := network.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testcontainers.CleanupNetwork(t, net)
	keeper, err := testcontainers.Run(t.Context(), keeperImage, withFile(keeperXML, "/etc/clickhouse-keeper/keeper_config.xml"),
		network.WithNetwork([]string{"keeper"}, net), testcontainers.WithExposedPorts("9181/tcp"), testcontainers.WithWaitStrategy(wait.ForListeningPort("9181/tcp")))
	testcontainers.CleanupContainer(t, keeper)
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for shard := 1; shard <= 2; shard++ {
		name := fmt.Sprintf("shard%d", shard)
		_, address := startServer(t, serverImages[0], withFile(fmt.Sprintf(shardXML, shard), "/etc/clickhouse-server/config.d/cluster.xml"), network.WithNetwork([]string{name}, net))
		addresses = append(addresses, address)
	}
	conn := atServer(t, addresses[0], "?cluster=lift")
	holdAgainstFold(t, conn)
	for _, address := range addresses {
		if got := eventsOf(t, address); got == 0 || got == 1_000 {
			t.Errorf("a shard has %d of 1000 events", got)
		}
	}
}

// eventsOf returns the number of events on one shard.
func eventsOf(t *testing.T, address string) (events uint64) {
	t.Helper()
	home, err := schema.ParseAddress("clickhouse://admin:secret@"+address+"/lifthouse", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := schema.Reach(context.WithoutCancel(t.Context()), home)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM events_local").Scan(&events); err != nil {
		t.Fatal(err)
	}
	return events
}
