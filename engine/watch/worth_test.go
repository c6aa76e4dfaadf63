package watch_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/effects"
	"lifthouse/engine/query"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

const (
	campaignsOfProgramme = 8
	daysOfCampaign       = 17 // with visitors: a partial one, 15 full ones, and a partial one
	visitorsOfDay        = 60 // of a variation
)

// counted are the converted visitors of a campaign by variation: in the full days, and in the first two weeks of them.
type counted struct{ full, weeks [2]int64 }

// TestWorthThroughTheLedger runs websites with several campaigns through events, looks, ends and the ledger. Their worth is
// that of the fit of their counts, also after a restart, after an erasure, and after all events are deleted.
func TestWorthThroughTheLedger(t *testing.T) {
	websites := int64(tier.Of(1, 10))
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -30)
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	account := catalogue.Account{ID: 1, Name: "a"}
	for w := range websites {
		site := catalogue.Website{ID: w + 1, Domain: "a.example.com", Currency: "EUR", Goals: []catalogue.Goal{{ID: 10 * (w + 1), WebsiteID: w + 1, Name: "Purchase"}}}
		for k := range int64(campaignsOfProgramme) {
			campaign := running(10*(w+1)+k, w+1, 10*(w+1), first.Add(-time.Hour))
			if campaign.Active = k%2 == 1; k%2 == 0 { // it ends on its last day, within the third week
				campaign.EndDate = &catalogue.Date{Time: first.AddDate(0, 0, daysOfCampaign-1).Add(12 * time.Hour)}
			}
			site.Campaigns = append(site.Campaigns, campaign)
		}
		account.Websites = append(account.Websites, site)
	}
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{account}}, false))(t)
	server := newServer(t, conn, c)
	counts := map[int64]*counted{}
	random := rand.New(rand.NewPCG(57, 1))
	visitor := uint64(0)
	for day := range daysOfCampaign {
		var events []schema.Event
		for w := range websites {
			for k := range int64(campaignsOfProgramme) {
				id := 10*(w+1) + k
				if counts[id] == nil {
					counts[id] = &counted{}
				}
				for variation := range 2 {
					rate := .12 * (1 + float64(variation)*.1*float64(k-3))
					for range visitorsOfDay {
						visitor++
						view := viewOf(visitor, id, int64(variation),
							first.AddDate(0, 0, day).Add(time.Duration(1+visitor%39_600)*time.Second))
						view.WebsiteID = w + 1
						events = append(events, view)
						if random.Float64() >= rate {
							continue
						}
						goal := goalAfter(view, 10*(w+1), time.Second)
						goal.Value = 500_000
						events = append(events, goal)
						if of := counts[id]; day > 0 && day < daysOfCampaign-1 {
							of.full[variation]++
							if day <= 14 {
								of.weeks[variation]++
							}
						}
					}
				}
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, events, first.AddDate(0, 0, day).Add(23*time.Hour)))
		must.OK(t, server.facts.RefreshFacts(t.Context()))
		if day%7 == 2 { // a look is due
			server.recorder.RecordDue(t.Context(), first.AddDate(0, 0, day+1).Add(time.Hour))
		}
	}
	server.recorder.RecordDue(t.Context(), first.AddDate(0, 0, daysOfCampaign+2))
	read := func(e *engine.Engine, website int64) (*worth.Programme, string) {
		t.Helper()
		p := must.Get(e.ReadProgramme(t.Context(), query.Programme{WebsiteID: website}))(t)
		lasting := *p
		lasting.Advice = nil // is about the traffic of the last weeks, not about what was recorded
		lasting.Sentences = slices.DeleteFunc(slices.Clone(p.Sentences), func(sentence string) bool {
			return strings.Contains(sentence, "an experiment needs") || strings.Contains(sentence, "of 100 ideas")
		})
		return p, string(must.Get(json.Marshal(lasting))(t))
	}
	before := map[int64]string{}
	for w := range websites {
		p, text := read(server.Engine, w+1)
		before[w+1] = text
		compareProgramme(t, p, counts, 10*(w+1))
	}
	same := func(what string, e *engine.Engine) {
		t.Helper()
		for w, want := range before {
			_, got := read(e, w)
			must.That(t, got == want, "%s, website %d:\n%s\nwant\n%s", what, w, got, want)
		}
	}
	again := newServer(t, conn, c)
	same("after a restart", again.Engine)
	must.OK(t, conn.Exec(t.Context(), "ALTER TABLE events DELETE WHERE visitor_id = 7 SETTINGS mutations_sync = 1"))
	must.OK(t, again.facts.EraseVisitors(t.Context(), []schema.Visitor{{WebsiteID: 1, ID: 7}}))
	same("after an erasure", again.Engine)
	must.OK(t, conn.Exec(t.Context(), "TRUNCATE TABLE events"))
	var all []schema.Subject
	for id := range counts {
		all = append(all, schema.Subject{WebsiteID: id / 10, Kind: schema.SubjectCampaign, ID: id})
	}
	must.OK(t, again.facts.DropSubjects(t.Context(), all))
	same("after all events are deleted", again.Engine)
	same("of a store without events", newServer(t, conn, c).Engine)
}

// compareProgramme compares a programme with the fit of the counts of its campaigns: in all full days of those that ended,
// and in two weeks of the others.
func compareProgramme(t *testing.T, p *worth.Programme, counts map[int64]*counted, first int64) {
	t.Helper()
	var pooled [][]stats.PooledEffect
	var scales []float64
	for k := range int64(campaignsOfProgramme) {
		days, converted := 14., counts[first+k].weeks
		if k%2 == 0 {
			days, converted = daysOfCampaign-2, counts[first+k].full
		}
		n := days * visitorsOfDay
		mean := float64(converted[0]+converted[1]) / (2 * n)
		pooled = append(pooled, []stats.PooledEffect{{
			Value: float64(converted[1]-converted[0]) / n / mean, StandardError: math.Sqrt(mean*(1-mean)*2/n) / mean,
		}})
		scales = append(scales, mean*2*visitorsOfDay*30)
	}
	fit := effects.NewFit(.2, pooled)
	near := func(what string, got, want float64) {
		t.Helper()
		check.That(t, math.Abs(got-want) <= 1e-9*math.Max(math.Abs(want), 1e-3), "website %d, %s: %v, want %v",
			p.WebsiteID, what, got, want)
	}
	must.Equal(t, len(p.Items), campaignsOfProgramme, "%+v, %d items", p.Campaigns, len(p.Items))
	must.Equal(t, p.Campaigns.Pooled, campaignsOfProgramme, "%+v, %d items", p.Campaigns, len(p.Items))
	for k := range p.Items {
		item, want := &p.Items[k], fit.TrueEffect(k)
		near("expected", item.Expected.PerMonth.Value, want.Mean*scales[k])
		near("lower", item.Expected.PerMonth.Interval[0], want.Lower*scales[k])
		near("upper", item.Expected.ValuePerMonth.Interval[1], want.Upper*scales[k]*50)
		near("observed", *item.Observed.PerMonth, pooled[k][0].Value*scales[k])
		near("chance", *item.Chance, want.Chance)
	}
	near("typical effect", p.TypicalEffect.Value, fit.TypicalEffect().Mean)
}
