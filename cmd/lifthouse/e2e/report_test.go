package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/must"
)

// TestReportWatchesThroughTheSocket watches a served store while events arrive,
// and interrupts the command.
func TestReportWatchesThroughTheSocket(t *testing.T) {
	t.Parallel()
	server, _, store := serving(t)
	read, write := pipe(t)
	watch := begin(t, nil, write, "report", "campaign", "1", "--watch", "--every=1s", store)
	_ = write.Close()
	lines := bufio.NewReader(read)
	visitors := func() int64 {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("it ended: %v", err)
		}
		var r result.Report
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return r.Totals.Visitors
	}
	if n := visitors(); n != 0 {
		t.Errorf("%d visitors of an empty store", n)
	}
	if code, _, complaints := other(t, nil, "import", "../testdata/thirty.ndjson", store); code != exitOK {
		t.Fatal(complaints)
	}
	for n := visitors(); n != 10; n = visitors() { // it may have looked before
		if n != 0 {
			t.Fatalf("%d visitors, want 10", n)
		}
	}
	must.OK(t, watch.Process.Signal(os.Interrupt))
	if err := watch.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v, want exit 0", err)
	}
	server.interrupt()
	for _, args := range [][]string{{"report", "campaign", "1", "--watch", store}, {"events", "--follow", store}} {
		if code, _, complaints := other(t, nil, args...); code != exitFailed || !strings.Contains(complaints, "this store is not served") {
			t.Errorf("%q, not served: exit %d, %s", args, code, complaints)
		}
	}
}
