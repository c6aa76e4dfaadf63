package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/tier"
)

// TestRetentionErasesWhatEndedLongAgo has three campaigns with one visitor
// each: a running one, and two that ended 40 and 10 days ago.
func TestRetentionErasesWhatEndedLongAgo(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		code, out, complaints := other(t, strings.NewReader(stdin), append(args, store)...)
		return code, strings.TrimSpace(out + complaints)
	}
	ago := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.RFC3339) }
	declared := fmt.Sprintf(`accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, campaigns: [
		{id: 1, name: Runs, active: true, startDate: "%s", endDate: "%[2]s"},
		{id: 2, name: Old, startDate: "%[1]s", endDate: "%[2]s"},
		{id: 3, name: Recent, startDate: "%[1]s", endDate: "%[3]s"}]}]}]`, ago(60), ago(40), ago(10))
	if code, out := run(declared, "apply", "-f", "-"); code != exitOK {
		t.Fatal(out)
	}
	var events strings.Builder
	for campaign := 1; campaign <= 3; campaign++ {
		for n := range 2 {
			_, _ = fmt.Fprintf(&events, `{"eventId":"%d","time":"2026-05-01T10:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":%d,"variationId":0}`+"\n", n, campaign)
		}
	}
	if code, out := run(events.String(), "import", "-"); code != exitOK {
		t.Fatal(out)
	}
	if code, out := run("", "facts"); code != exitOK {
		t.Fatal(out)
	}
	_, token := run("", "token", "create")
	views := func(p *process) string {
		t.Helper()
		var campaigns []struct{ Views int64 }
		if p.get("/v1/campaigns", token, &campaigns); len(campaigns) != 3 {
			t.Fatalf("%d campaigns", len(campaigns))
		}
		return fmt.Sprint(campaigns)
	}
	p := start(t, "serve", "--retention-days=9", store)
	for look := time.NewTicker(20 * time.Millisecond); views(p) != "[{2} {0} {0}]"; <-look.C {
	}
	p.interrupt()
}
