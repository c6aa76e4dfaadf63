package schematest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lifthouse/engine/embedded"
	"lifthouse/schema"
	"lifthouse/schema/schematest/tier"
)

// clusterTool is the path of the tool that starts a cluster of two shards with two replicas each on this machine. The
// path is relative to a parent of the working directory.
const clusterTool = "shared/cluster/cluster"

// Cluster is a ClickHouse cluster that runs until the test ends.
type Cluster struct {
	Address string // address of the store, with all servers

	tb        testing.TB
	tool, lib string
	dir       string
}

// NewCluster starts a cluster. It skips the test if a required tool is missing.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	if !tier.IsLong() {
		tb.Skip("SKIP: this test starts a ClickHouse cluster: run make test-long")
	}
	c := &Cluster{tb: tb, dir: tb.TempDir(), tool: findAbove(clusterTool)}
	if c.tool == "" {
		tb.Skip("SKIP: the cluster tool does not exist (../" + clusterTool + ")")
	}
	for _, needed := range []string{"java", "gcc", "apt-get"} {
		if _, err := exec.LookPath(needed); err != nil {
			tb.Skipf("SKIP: a cluster needs %s", needed)
		}
	}
	var err error
	c.lib, err = embedded.LocateLibrary()
	if err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.CommandContext(tb.Context(), "apt-get", "-qq", "update").CombinedOutput(); err != nil {
		tb.Skipf("SKIP: apt-get update failed, so ZooKeeper cannot be installed: %v\n%s", err, out)
	}
	waitForCluster(tb)
	c.copyTool()
	tb.Cleanup(func() { _, _ = c.runTool(context.Background(), "stop", c.dir) })
	out, err := c.runTool(tb.Context(), "start", c.dir, c.lib)
	if err != nil {
		tb.Fatalf("start a cluster: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	c.Address = lines[len(lines)-1]
	return c
}

// copyTool copies the tool. In the copy, the servers have the usual number of background threads, and the users have
// the grants of deploy/users.cluster.sql. The original has two threads, with which mutations take seconds.
func (c *Cluster) copyTool() {
	c.tb.Helper()
	from, to := filepath.Dir(c.tool), c.tb.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		c.tb.Fatal(err)
	}
	tool := filepath.Join(to, filepath.Base(c.tool))
	text, err := os.ReadFile(tool)
	if err != nil {
		c.tb.Fatal(err)
	}
	users, err := grantedUsers("users.cluster.sql")
	if err != nil {
		c.tb.Fatal(err)
	}
	const limit, end = "<max_server_memory_usage>", "</users></clickhouse>"
	more := strings.Replace(string(text), limit, "<background_pool_size>16</background_pool_size>"+limit, 1)
	more = strings.Replace(more, end, usersOfCluster(users)+end, 1)
	if err := errors.Join(os.Remove(tool), os.WriteFile(tool, []byte(more), 0o700)); err != nil { //nolint:gosec // a program
		c.tb.Fatal(err)
	}
	c.tool = tool
}

// clusterName is the name of the cluster in remote_servers.
const clusterName = "lift"

// usersOfCluster returns the users for users.xml, as text in a shell script.
func usersOfCluster(users []grantedUser) string {
	var text strings.Builder
	for _, u := range users {
		fmt.Fprintf(&text,
			"<%[1]s><password>%[2]s</password><networks><ip>::/0</ip></networks><profile>default</profile>"+
				"<quota>default</quota><grants>", u.Name, u.Password)
		for _, grant := range u.Grants {
			text.WriteString("<query>" + strings.ReplaceAll(grant, "`", "\\`") + "</query>")
		}
		fmt.Fprintf(&text, "</grants></%s>", u.Name)
	}
	return text.String()
}

// UserAddress returns the address of the database Granted for one of its users.
func (c *Cluster) UserAddress(user User) string {
	_, rest, _ := strings.Cut(c.Address, "@")
	return "clickhouse://" + user.Name + ":" + user.Password + "@" + rest
}

// waitForCluster waits until no other test process has a cluster, because the ports of a cluster are fixed. The lock is
// released when the test ends.
func waitForCluster(tb testing.TB) {
	tb.Helper()
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "lifthouse-cluster.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // small
		tb.Fatal(err)
	}
}

// runTool executes a command of the tool and returns its output. The output goes to a file: the servers inherit it, so
// reading a pipe would block until they end.
func (c *Cluster) runTool(ctx context.Context, args ...string) (string, error) {
	out, err := os.CreateTemp("", "cluster-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	cmd := exec.CommandContext(ctx, c.tool, args...)
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text, _ := os.ReadFile(out.Name())
	return string(text), err
}

// KillReplica kills the server of a replica.
func (c *Cluster) KillReplica(shard, replica int) {
	c.tb.Helper()
	if out, err := c.runTool(c.tb.Context(), "kill", c.dir, strconv.Itoa(shard), strconv.Itoa(replica)); err != nil {
		c.tb.Fatalf("%v\n%s", err, out)
	}
}

// RestartReplica restarts the server of a replica with its data.
func (c *Cluster) RestartReplica(shard, replica int) {
	c.tb.Helper()
	if out, err := c.runTool(c.tb.Context(), "node", c.dir, c.lib, strconv.Itoa(shard),
		strconv.Itoa(replica)); err != nil {
		c.tb.Fatalf("%v\n%s", err, out)
	}
}

// SyncReplicas waits until all servers of the cluster at an address have fetched the events and facts of the other
// replicas, so that they can be compared. It asks each server itself, because ON CLUSTER would also wait for the
// servers to execute earlier statements.
func SyncReplicas(tb testing.TB, address string) {
	tb.Helper()
	parsed, err := schema.ParseAddress(address, os.Getenv)
	if err != nil {
		tb.Fatal(err)
	}
	shards, err := schema.OpenReplicas(tb.Context(), OpenConnection(tb, address), parsed)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = schema.CloseReplicas(shards) }()
	for _, server := range slices.Concat(shards...) {
		for _, table := range []string{"events", "facts"} {
			if err := server.Exec(tb.Context(), "SYSTEM SYNC REPLICA "+schema.LocalTable(table)); err != nil {
				tb.Fatal(err)
			}
		}
	}
}
