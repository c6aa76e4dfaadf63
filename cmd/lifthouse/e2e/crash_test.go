package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema/schematest/tier"
)

func TestCountersAreRightAfterACrash(t *testing.T) {
	tier.Parallel(t)
	tier.SkipShort(t)
	const lines = 300_000
	dir := filepath.Join(t.TempDir(), "data")
	store := "--store=embedded:" + dir
	must := func(args ...string) (out, complaints string) {
		t.Helper()
		return succeed(t, nil, append(args, store)...)
	}
	if _, complaints := must("apply", "-f", "../testdata/thirty.catalog.yaml"); strings.Contains(complaints, "end cleanly") {
		t.Errorf("a new store is repaired: %q", complaints)
	}
	out, _ := must("token", "create")
	token := strings.TrimSpace(out)
	var events strings.Builder
	for i := range lines {
		_, _ = fmt.Fprintf(&events, `{"time":"2026-05-%02dT10:00:00Z","websiteId":1,"visitor":"v%d","event":"view","campaignId":1,"variationId":0}`+"\n", 1+i%28, i)
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(events.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	importing := begin(t, nil, nil, "import", file, store)
	for { // until it has the store open, and then some
		if _, err := os.Stat(filepath.Join(dir, app.OpenMark)); err == nil {
			break
		}
	}
	<-time.After(400 * time.Millisecond)
	if err := importing.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = importing.Wait()

	if _, complaints := must("import", file); !strings.Contains(complaints, "did not end cleanly") {
		t.Errorf("the store was not repaired: %q", complaints)
	}
	if _, complaints := must("migrate"); strings.Contains(complaints, "end cleanly") {
		t.Errorf("the store was repaired twice: %q", complaints)
	}
	p := start(t, "serve", store)
	var campaign struct{ Views int64 }
	if p.get("/v1/campaigns/1", token, &campaign); campaign.Views != lines {
		t.Errorf("%d views; want %d", campaign.Views, lines)
	}
}
