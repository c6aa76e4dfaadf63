package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestReportWatchesThroughTheSocket watches a served store while events arrive, and interrupts the command.
func TestReportWatchesThroughTheSocket(t *testing.T) {
	t.Parallel()
	server, _, store := serving(t)
	read, write := pipe(t)
	watch := begin(t, nil, write, "report", "campaign", "1", "--watch", "--every=1s", store)
	_ = write.Close()
	lines := bufio.NewReader(read)
	visitors := func() int64 {
		line, err := lines.ReadBytes('\n')
		must.OK(t, err)
		var r result.Report
		must.OK(t, json.Unmarshal(line, &r), "%v", line)
		return r.Totals.Visitors
	}
	check.Equal(t, visitors(), 0, "visitors of an empty store")
	ended(t, exitOK, "import", "../testdata/thirty.ndjson", store)
	for n := visitors(); n != 10; n = visitors() { // it may have looked before
		must.Equal(t, n, 0, "visitors")
	}
	must.OK(t, watch.Process.Signal(os.Interrupt))
	must.OK(t, watch.Wait(), "interrupted")
	server.interrupt()
	for _, args := range [][]string{{"report", "campaign", "1", "--watch", store}, {"events", "--follow", store}} {
		if code, _, complaints := other(t, nil, args...); code != exitFailed || !strings.Contains(complaints, "this store is not served") {
			t.Errorf("%q, not served: exit %d, %s", args, code, complaints)
		}
	}
}
