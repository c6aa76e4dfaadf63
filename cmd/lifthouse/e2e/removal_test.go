package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

const twoCampaigns = `accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, goals: [{id: 1, name: Purchase}], campaigns: [
	{id: 1, name: Old, startDate: 2026-01-01, endDate: 2026-02-01, primaryGoalId: 1, controlShare: 50, variations: [{id: 1, name: V, share: 100}]},
	{id: 2, name: Runs, active: true, primaryGoalId: 1, controlShare: 50, variations: [{id: 1, name: V, share: 100}]}]}]}]`

// removals is a store with events to delete.
type removals struct {
	t   *testing.T
	dir string
}

func (r *removals) run(stdin string, args ...string) string {
	r.t.Helper()
	code, out, complaints := other(r.t, strings.NewReader(stdin), append(args, "--store=embedded:"+r.dir)...)
	must.Equal(r.t, code, exitOK, "lifthouse %q: %s%s", args, out, complaints)
	return strings.TrimSpace(out + complaints)
}

// killed starts a command and kills it when it works on the files of tables: when files with the first pattern
// TABLE/NAME exist, and then some with the next one. It reports whether the command was still running.
func (r *removals) killed(patterns []string, args ...string) bool {
	r.t.Helper()
	var files []string
	for _, pattern := range patterns {
		table, name, _ := strings.Cut(pattern, "/")
		files = append(files, filepath.Join(tableDir(r.t, r.dir, table), name))
	}
	cmd := begin(r.t, nil, nil, append(args, "--store=embedded:"+r.dir)...)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		if found, err := filepath.Glob(files[0]); err != nil || len(found) > 0 {
			files = files[1:]
		}
		if len(files) == 0 {
			_ = cmd.Process.Kill()
			return <-done != nil
		}
		select {
		case err := <-done:
			r.t.Fatalf("%q ended without files %s: %v", args, files[0], err)
		default:
		}
	}
}

// TestAKilledRemovalIsFinished kills retain and forget while they delete events, and while they delete facts or merge
// them, which removes those of erased visitors. After the next start, counters and reports agree, and a repetition of
// the command deletes what remains.
func TestAKilledRemovalIsFinished(t *testing.T) {
	tier.OnlyLong(t)
	const visitors = 40_000
	var events strings.Builder
	for i := range visitors {
		for campaign := 1; campaign <= 2; campaign++ {
			_, _ = fmt.Fprintf(&events, `{"eventId":"%[1]d","time":"2026-01-%02[2]dT10:00:00Z","websiteId":1,"visitor":"v%[1]d","event":"view","campaignId":%[3]d,"variationId":%[4]d}`+"\n", i, 1+i%28, campaign, i%2)
		}
	}
	whole := filepath.Join(t.TempDir(), "whole")
	made := &removals{t, whole}
	made.run(twoCampaigns, "apply", "-f", "-")
	made.run(events.String(), "import", "-")
	made.run("", "facts")
	token := made.run("", "token", "create")
	retain, forget := []string{"retain", "--days=30", "--yes"}, []string{"forget", "--visitor=v7", "--yes"}
	var killed int
	const deletion, merge = "mutation_*.txt", "tmp_merge_*"
	for name, kill := range map[string]struct {
		args []string
		when []string
	}{
		"retain of events": {retain, []string{"events/" + deletion}},
		"forget of events": {forget, []string{"events/" + deletion}},
		"retain of facts":  {retain, []string{"facts/" + deletion}},
		"forget of facts":  {forget, []string{"events/" + deletion, "facts/" + merge}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &removals{t, filepath.Join(t.TempDir(), "data")}
			must.OK(t, os.CopyFS(r.dir, os.DirFS(whole)))
			if r.killed(kill.when, kill.args...) {
				killed++
			}
			p := start(t, "serve", "--store=embedded:"+r.dir)
			r.agree(p, token, visitors)
			r.run("", kill.args...)
			views := r.agree(p, token, visitors)
			check.Equal(t, views,
				map[string][2]int64{"retain": {0, visitors}, "forget": {visitors - 1, visitors - 1}}[kill.args[0]],
				"views that %q leaves", kill.args)
			p.interrupt()
			r.run("", "check", "--deep")
		})
	}
	check.That(t, killed != 0, "no command was killed in time")
	t.Logf("%d were killed in the midst", killed)
}

// TestServersNoticeWhatAnotherProcessDeletes deletes a visitor, and then a campaign, by commands on a ClickHouse
// server, and reads from a server of the API that runs at the same time.
func TestServersNoticeWhatAnotherProcessDeletes(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	store := "--store=" + server.DatabaseAddress(server.CreateDatabase(t))
	do := onStore(t, store)
	do("apply", "-f", must.WriteFile(t, "catalog.yaml", twoCampaigns))
	var events strings.Builder
	for i := range 20 {
		_, _ = fmt.Fprintf(&events, `{"eventId":"%[1]d","time":"2026-01-02T10:00:00Z","websiteId":1,"visitor":"v%[1]d","event":"view","campaignId":%[2]d,"variationId":0}`+"\n", i/2, 1+i%2)
	}
	do("import", must.WriteFile(t, "events.ndjson", events.String()))
	do("facts")
	token := do("token", "create")
	p := start(t, "serve", store, "--rate-limit=0")
	shows := func(want string) {
		t.Helper()
		var counted, reported string
		for until := time.Now().Add(patience); time.Now().Before(until); {
			counted, reported = "", ""
			for id := 1; id <= 2; id++ {
				var campaign struct{ Views int64 }
				p.get(fmt.Sprintf("/v1/campaigns/%d", id), token, &campaign)
				var report struct{ Totals struct{ Views int64 } }
				_, text := get(t, fmt.Sprintf("%s/v1/campaigns/%d/results", p.url, id), token)
				must.OK(t, json.Unmarshal([]byte(text), &report))
				counted, reported = counted+fmt.Sprint(campaign.Views, " "), reported+fmt.Sprint(report.Totals.Views,
					" ")
			}
			if counted == want && reported == want {
				return
			}
		}
		t.Errorf("%q views are counted, and the reports have %q; want %q", counted, reported, want)
	}
	shows("10 10 ")
	do("forget", "--visitor=v7", "--yes")
	shows("9 9 ")
	do("retain", "--days=30", "--yes")
	shows("0 9 ")
	do("import", must.WriteFile(t, "events.ndjson", events.String()))
	shows("10 10 ")
	p.interrupt()
	do("check", "--deep")
}

// agree compares the counters of both campaigns with their reports.
func (r *removals) agree(p *process, token string, most int64) (views [2]int64) {
	r.t.Helper()
	for i := range views {
		var campaign struct{ Views int64 }
		var report struct {
			Totals struct{ Visitors, Views int64 }
		}
		p.get(fmt.Sprintf("/v1/campaigns/%d", i+1), token, &campaign)
		p.get(fmt.Sprintf("/v1/campaigns/%d/results", i+1), token, &report)
		check.Equal(r.t, campaign.Views, report.Totals.Views, "campaign %d: %d views are counted, its report has %d of %d visitors", i+1, campaign.Views, report.Totals.Views, report.Totals.Visitors)
		check.Equal(r.t, report.Totals.Visitors, report.Totals.Views, "campaign %d: %d views are counted, its report has %d of %d visitors", i+1, campaign.Views, report.Totals.Views, report.Totals.Visitors)
		check.That(r.t, campaign.Views <= most, "campaign %d: %d views are counted, its report has %d of %d visitors", i+1, campaign.Views, report.Totals.Views, report.Totals.Visitors)
		views[i] = campaign.Views
	}
	return views
}
