package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// oldCampaign is the catalogue of a campaign that ended long ago.
const oldCampaign = `accounts: [{id: 1, name: Paper, websites: [{id: 1, domain: paper.example.com, campaigns: [
	{id: 2, name: Old, startDate: 2026-01-01, endDate: 2026-02-01, controlShare: 50, variations: [{id: 1, name: New, share: 50}]}]}]}]`

// declareOld adds the old campaign to the catalogue.
func (w *world) declareOld() {
	w.t.Helper()
	file := must.WriteFile(w.t, "old.yaml", oldCampaign)
	w.must("apply", "-f", file)
}

// forget deletes a visitor whose events were acknowledged. Sometimes the server is killed during the deletion, and the
// command is repeated. restart starts the server.
func (w *world) forget(r *rand.Rand, p *process, restart func() *process) *process {
	w.t.Helper()
	l, n := w.leave(r)
	if l == nil {
		return p
	}
	visitor := fmt.Sprint("sent", n)
	args := []string{"forget", "--yes", "--visitor=" + visitor, w.store}
	if r.IntN(2) == 0 {
		p = w.killedWhile(r, p, restart, args)
	}
	w.must(args[:len(args)-1]...)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	l.left = append(l.left, leaving{l.leaving, time.Now()})
	for i := range l.adds {
		l.adds[i] = l.adds[i].minus(l.leaving[i])
	}
	l.leaving, l.frozen = [2]tally{}, false
	return p
}

// leave chooses a visitor to forget, from a load that is not being sent. No client sends the events of the visitor
// again.
func (w *world) leave(r *rand.Rand) (*load, int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for range 20 {
		if len(w.loads) == 0 {
			return nil, 0
		}
		l := w.loads[r.IntN(len(w.loads))]
		n := l.first + r.IntN(l.visitors)
		mark := fmt.Sprintf(`"visitor":"sent%d"`, n)
		if l.file != "" || l.acked.IsZero() || l.sending > 0 || !strings.Contains(l.text, mark) {
			continue
		}
		var rest strings.Builder
		for line := range strings.Lines(l.text) {
			if !strings.Contains(line, mark) {
				rest.WriteString(line)
			}
		}
		l.text, l.frozen = rest.String(), true
		l.leaving[n%2] = tallyOf(n)
		return l, n
	}
	return nil, 0
}

// killedWhile kills the server shortly after it received a command.
func (w *world) killedWhile(r *rand.Rand, p *process, restart func() *process, args []string) *process {
	w.t.Helper()
	cmd := begin(w.t, nil, nil, args...)
	wait(r, 10, 250)
	p.kill()
	_ = cmd.Wait()
	return restart()
}

// retain imports events of the old campaign and deletes them by the retention period. Sometimes the server is killed
// during the deletion.
func (w *world) retain(r *rand.Rand, p *process, restart func() *process) *process {
	w.t.Helper()
	var text strings.Builder
	for n := range 3000 {
		text.WriteString(strings.Replace(visitorLines("old", 3*n), `"campaignId":1`, `"campaignId":2`, 1))
	}
	file := must.WriteFile(w.t, "old.ndjson", text.String())
	w.must("import", file)
	args := []string{"retain", "--days=30", "--yes", w.store}
	if r.IntN(2) == 0 {
		p = w.killedWhile(r, p, restart, args)
		w.agree(p)
	}
	w.must(args[:len(args)-1]...)
	check.Equal(w.t, w.agree(p), 0, "views of what was deleted")
	return p
}

// agree compares the counter of the old campaign with its report. No client sends events of it.
func (w *world) agree(p *process) int64 {
	w.t.Helper()
	var campaign struct{ Views int64 }
	var report struct{ Totals struct{ Views int64 } }
	p.get("/v1/campaigns/2", w.reads, &campaign)
	p.get("/v1/campaigns/2/results", w.reads, &report)
	check.Equal(w.t, campaign.Views, report.Totals.Views, "views")
	return campaign.Views
}

// losePart stops the server and removes or damages a part of the events. Unless what it was merged of is still there,
// the loss is reported. Then all events are sent again.
func (w *world) losePart(r *rand.Rand, p *process, restart func() *process) *process {
	w.t.Helper()
	p.interrupt()
	dir := strings.TrimPrefix(w.store, "--store=embedded:")
	parts := partsOf(w.t, dir, "events")
	part := parts[r.IntN(len(parts))]
	var err error
	if r.IntN(2) == 0 {
		err = os.RemoveAll(part)
	} else {
		err = os.Truncate(filepath.Join(part, "columns.txt"), 3)
	}
	must.OK(w.t, err)
	code, out, complaints := other(w.t, nil, "check", "--deep", w.store)
	check.That(w.t, code == exitOK || strings.Contains(out, "are lost"), "a lost part: exit %d, %s%s", code, out,
		complaints)
	w.mutex.Lock()
	for _, l := range w.loads {
		if !l.acked.IsZero() {
			l.acked = time.Time{}
			if l.file == "" {
				w.waiting = append(w.waiting, l)
			}
		}
	}
	loads := slices.Clone(w.loads)
	w.mutex.Unlock()
	p = restart()
	for _, l := range loads {
		if l.file != "" {
			w.imported(l)
		} else {
			w.mustSend(p.url, l)
		}
	}
	return p
}

// notice looks for a part that a full disk has broken, and that no report has read yet. A restart repairs it: the parts
// that it was to replace are still there.
func (w *world) notice() {
	w.t.Helper()
	if code, out, _ := other(w.t, nil, "check", "--deep", w.store); code != exitOK && strings.Contains(out,
		"WRONG    part ") {
		w.damaged.Store(true)
	}
}

// check compares the facts with the events. The long tests call it after every fault.
func (w *world) check() {
	w.t.Helper()
	if tier.IsLong() {
		w.must("check", "--deep")
	}
}
