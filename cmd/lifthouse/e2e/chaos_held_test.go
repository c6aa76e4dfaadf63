package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema/schematest/must"
)

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
