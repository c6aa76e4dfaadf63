package e2e

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestUnreadOutputEndsACommandCleanly closes the output of a command after its first line, as head does. The store must
// be closed cleanly, and a command that follows a server must end.
func TestUnreadOutputEndsACommandCleanly(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	succeed(t, nil, "apply", "-f", "../testdata/thirty.catalog.yaml", store)
	file := filepath.Join(t.TempDir(), "many.ndjson")
	line := `{"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":1}` + "\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 3_000)), 0o600); err != nil { // more than a pipe holds
		t.Fatal(err)
	}
	succeed(t, nil, "import", file, store)
	readOne := func(args ...string) {
		t.Helper()
		cmd := lifthouse(t, args...)
		out := must.Get(cmd.StdoutPipe())(t)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		must.OK(t, cmd.Start())
		first, err := bufio.NewReader(out).ReadString('\n')
		check.That(t, err == nil && strings.Contains(first, "campaign 1 variation 1"), "the first line is %q, %v", first, err)
		_ = out.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("%q: %v, %q; want success without messages", args, err, complaints.String())
		}
	}
	readOne("events", "--last=3000", store)
	_, complaints := succeed(t, nil, "events", "--last=1", store)
	check.Equal(t, complaints, "", "the next command")
	p := start(t, "serve", store)
	readOne("events", "--last=3000", "--follow", store)
	p.interrupt()
}
