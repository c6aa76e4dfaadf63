package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// chaosTime is the duration of each of the two chaos tests.
const chaosTime = time.Minute

// seedOf returns the seed in LIFTHOUSE_SEED, or a fixed one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LIFTHOUSE_SEED")
	if text == "" {
		return 10
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	must.OK(t, err, "LIFTHOUSE_SEED")
	return seed
}

// cellsByDayFrom is a number of visitors from which a campaign has sums by day.
const cellsByDayFrom = 20_000

// aDisk is the environment variable with the mount point of a small disk, in the process that may mount one.
const aDisk = "LIFTHOUSE_TEST_DISK"

const diskFull = "disk full"

// TestAServerInChaos sends events and reads reports while the server is killed, restarted, paused, and its disk is
// full. Acknowledged events are counted exactly once, every report is correct at its time, and nothing leaks.
func TestAServerInChaos(t *testing.T) {
	tier.OnlyLong(t)
	disk := os.Getenv(aDisk)
	if disk == "" {
		inAWorldOfItsOwn(t)
		return
	}
	must.OK(t, syscall.Mount("none", disk, "tmpfs", 0, "size=1g"))
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 26))
	w := newWorld(t, "--store=embedded:"+filepath.Join(disk, "data"))
	serve := func() *process {
		return w.serve(0, "--admin-address=127.0.0.1:0", "--rate-limit=0")
	}
	w.declareOld()
	p := serve()
	w.imported(w.file(cellsByDayFrom))
	w.begin()
	troubles := map[string]int{}
	trouble := func(kind string, make func()) {
		troubles[kind]++
		make()
		if kind == diskFull {
			w.notice()
		}
		if w.damaged.Swap(false) {
			troubles["damaged, and started again"]++
			p.interrupt()
			p = serve()
		}
		w.check()
	}
	kinds := []struct {
		name string
		make func()
	}{
		{"killed", func() { p.kill(); p = serve() }},
		{"killed", func() { p.kill(); p = serve() }},
		{"stopped", func() { p.interrupt(); p = serve() }},
		{"paused", func() { p.standStill(r) }},
		{diskFull, func() { fillDisk(t, disk, r) }},
		{"import killed", func() { w.killedImport(r) }},
		{"forget", func() { p = w.forget(r, p, serve) }},
		{"retain", func() { p = w.retain(r, p, serve) }},
		{"part lost", func() { p = w.losePart(r, p, serve) }},
	}
	order := r.Perm(len(kinds)) // each comes before one comes again
	for until := time.Now().Add(chaosTime * 2 / 3); time.Now().Before(until); wait(r, 100, 1500) {
		if len(order) == 0 {
			order = r.Perm(len(kinds))
		}
		trouble(kinds[order[0]].name, kinds[order[0]].make)
		order = order[1:]
	}
	base := p.held()
	for until := time.Now().Add(chaosTime / 3); time.Now().Before(until); wait(r, 100, 1500) {
		was := p
		if r.IntN(3) > 0 {
			trouble("paused", func() { p.standStill(r) })
		} else {
			trouble(diskFull, func() { fillDisk(t, disk, r) })
		}
		if p != was {
			base = p.held()
		}
	}
	w.end()
	p.heldAgain(base)
	p.interrupt()
	p = serve()
	w.allCounted(p)
	p.interrupt()
	w.must("check", "--deep")
	t.Logf("%v; %s", troubles, w)
}

// inAWorldOfItsOwn runs the test in a namespace in which it may mount a disk.
func inAWorldOfItsOwn(t *testing.T) {
	t.Helper()
	needsADisk(t)
	self := must.Get(os.Executable())(t)
	args := []string{"-rm", self, "-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=10m"}
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Env = append(os.Environ(), aDisk+"="+t.TempDir())
	said, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, said)
	must.That(t, strings.Contains(string(said), "--- PASS: "+t.Name()), "%v\n%s", err, said)
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "chaos_test.go") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// wait waits for a random number of milliseconds between the bounds.
func wait(r *rand.Rand, least, most int) {
	<-time.After(time.Duration(least+r.IntN(most-least)) * time.Millisecond)
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	p.t.Helper()
	must.OK(p.t, p.cmd.Process.Kill())
	err := <-p.done
	must.That(p.t, err != nil, "it ended by itself")
}

// standStill pauses the process for a while, like a machine that swaps.
func (p *process) standStill(r *rand.Rand) {
	p.t.Helper()
	for _, signal := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		must.OK(p.t, p.cmd.Process.Signal(signal))
		if signal == syscall.SIGSTOP {
			wait(r, 50, 1200)
		}
	}
}

// fillDisk fills the disk for a while.
func fillDisk(t *testing.T, disk string, r *rand.Rand) {
	t.Helper()
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		return // it is full already
	}
	var room syscall.Statfs_t
	must.OK(t, syscall.Statfs(disk, &room))
	_ = syscall.Fallocate(int(f.Fd()), 0, 0, int64(room.Bavail)*room.Bsize) //nolint:gosec // of a small disk
	for block := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(block)
	}
	wait(r, 200, 1500)
	_ = f.Close()
	must.OK(t, os.Remove(filler))
}

// TestServersInChaos does the same with two servers on one store. The store is a ClickHouse server behind a network
// that delays data, cuts connections before and after a request is processed, and is sometimes down. One server uses
// the native protocol, the other HTTP. There are enough visitors for sums by day. Both refresh the facts.
func TestServersInChaos(t *testing.T) {
	tier.OnlyLong(t)
	store := schematest.SharedServer(t)
	database := store.CreateDatabase(t)
	network := slowNetwork{random: rand.New(rand.NewPCG(11, 26))}
	stores := []string{
		"--store=clickhouse://admin:secret@" + network.before(t, store.Native.ListenAddress()) + "/" + database,
		"--store=http://admin:secret@" + network.before(t, store.HTTP.ListenAddress()) + "/" + database,
	}
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(12, 16+seed)) //nolint:gosec // no secret
	w := newWorld(t, "--store="+store.DatabaseAddress(database))
	w.several = true
	serve := func(i int) *process {
		network.quiet.Store(true) // a server wants its store when it starts
		defer network.quiet.Store(false)
		return w.serveFrom(i, stores[i], "--rate-limit=0", "--log-level=warn", "--query-timeout=5s")
	}
	servers := []*process{serve(0), serve(1)}
	w.imported(w.file(cellsByDayFrom))
	w.begin()
	troubles := map[string]int{}
	for until := time.Now().Add(chaosTime); time.Now().Before(until); wait(r, 200, 1500) {
		if !disturb(r, servers, serve, troubles) {
			troubles["store away"]++
			network.away(true)
			wait(r, 300, 2500)
			network.away(false)
		}
	}
	network.quiet.Store(true)
	w.end()
	for _, p := range servers {
		w.allCounted(p)
		p.interrupt()
	}
	w.must("check", "--deep")
	t.Logf("%v; %d of %d pieces slow, %d connections cut off; %s", troubles, network.slow.Load(), network.pieces.Load(),
		network.cut.Load(), w)
}

// disturb kills, stops or pauses one of the servers, and counts what it did. In one of four cases, it does nothing and
// returns false: something else is the trouble.
func disturb(r *rand.Rand, servers []*process, serve func(int) *process, troubles map[string]int) bool {
	i := r.IntN(len(servers))
	switch r.IntN(4) {
	case 0:
		troubles["killed"]++
		servers[i].kill()
		servers[i] = serve(i)
	case 1:
		troubles["stopped"]++
		servers[i].interrupt()
		servers[i] = serve(i)
	case 2:
		troubles["paused"]++
		servers[i].standStill(r)
	default:
		return false
	}
	return true
}

// slowNetwork is a network between servers and their store.
type slowNetwork struct {
	quiet             atomic.Bool
	pieces, slow, cut atomic.Int64
	mutex             sync.Mutex
	random            *rand.Rand
	proxies           []*schematest.Proxy
}

// before returns an address whose connections go through the network to another address.
func (n *slowNetwork) before(t *testing.T, address string) string {
	t.Helper()
	proxy := schematest.NewProxy(t, address, n.fate)
	n.proxies = append(n.proxies, proxy)
	return proxy.ListenAddress()
}

func (n *slowNetwork) away(is bool) {
	for _, proxy := range n.proxies {
		proxy.Down.Store(is)
	}
}

func (n *slowNetwork) number(most int) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.random.IntN(most)
}

// fate returns the fault of one piece of data. A request and its response have about four pieces.
func (n *slowNetwork) fate() (wait time.Duration, cut bool) {
	n.pieces.Add(1)
	if n.quiet.Load() {
		return 0, false
	}
	switch fate := n.number(100); {
	case fate < 1:
		n.cut.Add(1)
		return 0, true
	case fate < 6:
		n.slow.Add(1)
		return time.Duration(n.number(400)) * time.Millisecond, false
	}
	return 0, false
}

var adminAt = regexp.MustCompile(`http://[^" ]+/metrics`)

// held returns the number of goroutines and of open files of the server. It does not count the files of the store's
// thread pool.
func (p *process) held() (held [2]int) {
	p.t.Helper()
	_, text := get(p.t, p.log.await(p.t, adminAt), "") // what it logs may be read after what it says
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindStringSubmatch(text)
	must.That(p.t, found != nil, "no goroutines in\n%s", text)
	held[0], _ = strconv.Atoi(found[1])
	files := must.Get(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid)))(p.t)
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && !strings.Contains(to, "/task/") {
			held[1]++
		}
	}
	return held
}

// heldAgain waits until the server holds at most as many goroutines and files as before, and fails otherwise.
func (p *process) heldAgain(base [2]int) {
	p.t.Helper()
	const tolerance = 8 // connections of the test's own, parts that are being merged
	until := time.Now().Add(20 * time.Second)
	for {
		now := p.held()
		if now[0] <= base[0]+tolerance && now[1] <= base[1]+tolerance {
			return
		}
		if time.Now().After(until) {
			p.t.Errorf("%v goroutines and files are held, %v at first", now, base)
			return
		}
	}
}
