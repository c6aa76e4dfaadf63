package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestProcessesImportOneFileAtOnce imports files with four processes through the server of an embedded store. In half
// of the rounds one process is killed.
func TestProcessesImportOneFileAtOnce(t *testing.T) {
	tier.OnlyLong(t)
	dir := filepath.Join(t.TempDir(), "data")
	start(t, "serve", "--store=embedded:"+dir)
	importAtOnce(t, "embedded:"+dir, 20, 1_000)
}

// TestProcessesImportOneFileIntoAServerAtOnce does the same with a ClickHouse server.
func TestProcessesImportOneFileIntoAServerAtOnce(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	importAtOnce(t, server.DatabaseAddress(server.CreateDatabase(t)), 20, 1_000)
}

// TestProcessesImportOneFileIntoAClusterAtOnce does the same with a cluster.
func TestProcessesImportOneFileIntoAClusterAtOnce(t *testing.T) {
	importAtOnce(t, schematest.NewCluster(t).Address, 20, 300)
}

// importAtOnce imports the same files into a store with four concurrent processes, and into an embedded store, and
// compares reports.
func importAtOnce(t *testing.T, address string, rounds, visitors int) {
	t.Helper()
	shared, alone := "--store="+address, "--store=embedded:"+filepath.Join(t.TempDir(), "alone")
	do := func(args ...string) string { return run(t, args...) }
	for _, store := range []string{shared, alone} {
		do("apply", "-f", "../testdata/thirty.catalog.yaml", store)
	}
	r := rand.New(rand.NewPCG(seedOf(t), 17))
	killed := 0
	for round := range rounds {
		path := must.WriteFile(t, "events.ndjson", exposedVisitors(round, visitors))
		do("import", path, alone)
		var importing sync.WaitGroup
		for i := range 4 {
			cmd := lifthouse(t, "import", path, shared)
			if i == 0 && round%2 == 1 {
				after := time.Duration(r.IntN(1_000)) * time.Millisecond
				importing.Go(func() {
					if killedAfter(t.Context(), cmd, after) {
						killed++
					}
				})
				continue
			}
			importing.Go(func() {
				out, err := cmd.CombinedOutput()
				check.That(t, err == nil, "round %d: %v\n%s", round, err, out)
			})
		}
		importing.Wait()
	}
	do("facts", shared)
	do("check", "--deep", shared)
	for _, extra := range [][]string{
		nil,
		{"--dimension=device"},
		{"--interval=day"},
		{"--filter=zScore=1"},
		{"--metric=valuePerVisitor", "--filter=dateFrom=1980-01-01"},
	} {
		args := append([]string{"report", "campaign", "1", "--json"}, extra...)
		check.Equal(t, timeless(t, do(append(args, shared)...)), timeless(t, do(append(args, alone)...)), "%q", args)
	}
	t.Logf("%d rounds, %d processes were killed", rounds, killed)
}

// killedAfter starts a command and kills it after a time. It reports whether the command was still running.
func killedAfter(ctx context.Context, cmd *exec.Cmd, after time.Duration) bool {
	if cmd.Start() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	return cmd.Wait() != nil
}

// timeless returns a report without generatedAt and dataThrough.
func timeless(t *testing.T, report string) string {
	t.Helper()
	body := must.JSON[map[string]any](t, report)
	delete(body, "generatedAt")
	delete(body, "dataThrough")
	text := must.Get(json.Marshal(body))(t)
	return string(text)
}

// exposedVisitors returns the events of the visitors of a round, within two months. Each visitor sees a variation and
// most buy, half of them without naming the variation.
func exposedVisitors(round, visitors int) string {
	var lines strings.Builder
	for n := range visitors {
		who := fmt.Sprintf("%d-%d", round, n)
		fmt.Fprintf(&lines, `{"eventId":"v%[1]s","time":"2026-0%[2]d-01T10:00:00Z","websiteId":1,"visitor":"%[1]s","event":"view","campaignId":1,"variationId":%[3]d,"device":"%[4]s"}`+"\n",
			who, 4+n%2, n%2, []string{"mobile", "desktop", "tablet"}[n%3])
		switch n % 4 {
		case 1, 3:
			fmt.Fprintf(&lines, `{"eventId":"g%[1]s","time":"2026-05-02T10:00:00Z","websiteId":1,"visitor":"%[1]s","event":"goal","goalId":1,"value":%[2]d.5,"campaignId":1,"variationId":%[3]d}`+"\n", who, n%97, n%2)
		case 2:
			fmt.Fprintf(&lines, `{"eventId":"g%[1]s","time":"2026-05-02T11:00:00Z","websiteId":1,"visitor":"%[1]s","event":"goal","goalId":1,"value":%[2]d}`+"\n", who, n%89)
		}
	}
	return lines.String()
}
