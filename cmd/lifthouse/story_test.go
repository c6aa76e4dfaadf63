package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/must"
)

const storyCatalogue = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}]
        campaigns:
          - {id: 12, name: Banner, type: experiment, primaryGoalId: 3, controlShare: 50, variations: [{id: 1, name: New, share: 50}]}
      - id: 2
        domain: blog.example.com
`

// TestAVisitorsStoryExplainsTypicalMistakes sends eight typical mistakes of tracking. The
// story of each visitor must name the cause.
func TestAVisitorsStoryExplainsTypicalMistakes(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	catalog := filepath.Join(dir, "catalog.yaml")
	must.OK(t, os.WriteFile(catalog, []byte(storyCatalogue), 0o600))
	h.must("apply", "-f", catalog)
	now := time.Now().UTC().Truncate(time.Second)
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	shown := func(ago time.Duration) string { return now.Add(-ago).Format("2006-01-02 15:04:05") }
	var lines []string
	send := func(id, visitor, event string, ago time.Duration, more string) {
		lines = append(lines, fmt.Sprintf(`{"eventId":%q,"visitor":%q,"event":%q,"time":%q%s}`, id, visitor, event, at(ago), more))
	}
	const site, banner = `,"websiteId":1`, `,"websiteId":1,"campaignId":12,"variationId":1`
	const purchase = `,"goalId":3,"value":19.9` + banner
	minute := time.Minute
	for _, visitor := range strings.Fields("early twice late future again edited typo") {
		send("view of "+visitor, visitor, "view", 30*minute, banner)
	}
	send("g1", "early", "goal", 40*minute, purchase)
	send("g2", "twice", "view", 20*minute, site+`,"campaignId":12,"variationId":0`)
	send("g3", "twice", "goal", 10*minute, site+`,"goalId":3,"value":5`)
	send("g4", "elsewhere", "view", 30*minute, `,"websiteId":2,"campaignId":12,"variationId":1`)
	send("g5", "late", "goal", -2*minute, purchase)
	send("g6", "future", "goal", -30*24*time.Hour, purchase)
	send("g7", "again", "goal", 5*minute, purchase)
	send("g8", "edited", "goal", 5*minute, purchase)
	send("g9", "typo", "goal", 5*minute, strings.Replace(purchase, `"goalId":3`, `"goalId":33`, 1))
	send("g10", "stale", "view", 50*time.Hour, banner)
	file := filepath.Join(dir, "mistakes.ndjson")
	imported := func(want int) {
		t.Helper()
		must.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
		if code, _, complaints := h.run("import", "--max-event-skew=24h", file); code != want {
			t.Fatalf("exit %d: %s", code, complaints)
		}
	}
	imported(exitRejected)
	lines = nil
	send("g7", "again", "goal", 5*minute, purchase)
	send("g8", "edited", "goal", 3*minute, strings.Replace(purchase, "19.9", "25", 1))
	imported(exitOK)
	for visitor, want := range map[string]string{
		"early":     "goal 3 +1 +19.9 +no +before the first view, " + shown(30*minute),
		"twice":     "the visitor saw the variations 1 and 0; multi-exposed visitors are excluded",
		"elsewhere": "Website 2, campaign 12: campaign 12 belongs to website 1, not to website 2",
		"late":      "goal 3 .* yes +after the first view +[12] minutes? before its time: check the sender's clock",
		"future":    `Rejected in the last week:\n.* mistakes.ndjson line 13: time: .* must be at most 24h0m0s after now.* \(max-event-skew\)`,
		"again":     `goal 3 +1 +19.9 +no +a copy of an event that arrived before`,
		"edited":    shown(3*minute) + ` +goal 3 +1 +25 +no +a copy, with other content, of an event that arrived before, .*; the first arrival counts`,
		"typo":      "goal 33 +1 +19.9 +no +goal 33 is not declared for website 1",
		"stale":     "view +1 +yes +the first view +2 days late",
		"nobody":    "Nothing has arrived of this visitor",
	} {
		_, out, complaints := h.run("events", "--visitor", visitor)
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the story of %s is\n%s%s\nwant %q", visitor, out, complaints, want)
		}
	}
	_, out, _ := h.run("events", "--summary", "--website", "1")
	for _, want := range []string{"accepted  +17 ", "late: more than an hour after they happened  +1 ", "undeclared: a name is not in the catalogue  +1 ", "1 in the last week: the catalogue declares no goal 33 for website 1; it declares 3"} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the summary is\n%s\nwant %q", out, want)
		}
	}
	h.must("forget", "--yes", "--visitor=edited", "--visitor=again", "--visitor=future")
	for _, visitor := range []string{"edited", "again", "future"} {
		if _, out, _ := h.run("events", "--visitor", visitor); !strings.Contains(out, "Nothing has arrived of this visitor") {
			t.Errorf("an erased visitor has the story\n%s", out)
		}
	}
}
