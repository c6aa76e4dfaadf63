package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	if code != exitOK {
		r.t.Fatalf("lifthouse %q: exit %d\n%s%s", args, code, out, complaints)
	}
	return strings.TrimSpace(out + complaints)
}

// killed starts a command and kills it some time after it recorded the start of
// a deletion. It reports whether the command was still running.
func (r *removals) killed(after time.Duration, args ...string) bool {
	r.t.Helper()
	cmd := begin(r.t, nil, nil, append(args, "--store=embedded:"+r.dir)...)
	done := make(chan struct{})
	var failure error
	go func() { failure = cmd.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return false
		default:
		}
		if _, err := os.Stat(filepath.Join(r.dir, "lifthouse.removal")); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	select {
	case <-done:
		return false
	case <-time.After(after):
	}
	_ = cmd.Process.Kill()
	<-done
	return failure != nil
}

// TestAKilledRemovalIsFinished kills retain and forget at several moments.
// After the next start, counters and reports agree, and a repetition of the
// command deletes the remaining events.
func TestAKilledRemovalIsFinished(t *testing.T) {
	tier.Parallel(t)
	tier.SkipShort(t)
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
	token := made.run("", "token", "create")
	retain, forget := []string{"retain", "--days=30", "--yes"}, []string{"forget", "--visitor=v7", "--yes"}
	var killed int
	kills := []struct {
		after time.Duration
		args  []string
	}{{0, retain}, {5 * time.Millisecond, forget}, {15 * time.Millisecond, retain}, {60 * time.Millisecond, retain}, {200 * time.Millisecond, forget}}
	for _, kill := range kills[:tier.Of(2, 2, len(kills))] {
		after, args := kill.after, kill.args
		r := &removals{t, filepath.Join(t.TempDir(), "data")}
		if err := os.CopyFS(r.dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		if r.killed(after, args...) {
			killed++
		}
		p := start(t, "serve", "--rollup-interval=10ms", "--store=embedded:"+r.dir)
		r.agree(p, token, visitors)
		r.run("", args...)
		views := r.agree(p, token, visitors)
		if want := map[string][2]int64{"retain": {0, visitors}, "forget": {visitors - 1, visitors - 1}}[args[0]]; views != want {
			t.Errorf("%q again leaves %v views, want %v", args, views, want)
		}
		p.interrupt()
		if said := r.run("", "check", "--deep"); strings.Contains(said, "WRONG") {
			t.Errorf("killed %v after: %s", after, said)
		}
	}
	if killed == 0 {
		t.Error("no command was killed in time")
	}
	t.Logf("%d were killed in the midst", killed)
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
		if campaign.Views != report.Totals.Views || report.Totals.Visitors != report.Totals.Views || campaign.Views > most {
			r.t.Errorf("campaign %d: %d views are counted, its report has %d of %d visitors", i+1, campaign.Views, report.Totals.Views, report.Totals.Visitors)
		}
		views[i] = campaign.Views
	}
	return views
}
