package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestRetentionErasesWhatEndedLongAgo has three campaigns with one visitor each: a running one, and two that ended 40
// and 10 days ago.
func TestRetentionErasesWhatEndedLongAgo(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	dir := t.TempDir()
	store := "--store=embedded:" + filepath.Join(dir, "data")
	ago := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.RFC3339) }
	declared := fmt.Sprintf(`accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, campaigns: [
		{id: 1, name: Runs, active: true, startDate: "%s", endDate: "%[2]s"},
		{id: 2, name: Old, startDate: "%[1]s", endDate: "%[2]s"},
		{id: 3, name: Recent, startDate: "%[1]s", endDate: "%[3]s"}]}]}]`, ago(60), ago(40), ago(10))
	var events strings.Builder
	for n := range 6 {
		_, _ = fmt.Fprintf(&events, `{"eventId":"%d","time":"2026-05-01T10:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":%d,"variationId":0}`+"\n", n, n%3+1)
	}
	for name, text := range map[string]string{"catalog.yaml": declared, "events.ndjson": events.String()} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	ended(t, exitOK, "apply", "-f", filepath.Join(dir, "catalog.yaml"), store)
	ended(t, exitOK, "import", filepath.Join(dir, "events.ndjson"), store)
	ended(t, exitOK, "facts", store)
	token := strings.TrimSpace(ended(t, exitOK, "token", "create", store))
	views := func(p *process) string {
		t.Helper()
		var campaigns []struct{ Views int64 }
		p.get("/v1/campaigns", token, &campaigns)
		return fmt.Sprint(campaigns)
	}
	p := start(t, "serve", "--retention-days=9", store)
	for look := time.NewTicker(20 * time.Millisecond); views(p) != "[{2} {0} {0}]"; <-look.C {
	}
	p.interrupt()
}
