package watch_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// priorCampaign is a campaign of TestLearnedPriorStays with its days, of 300 visitors of each variation.
type priorCampaign struct {
	id, goal    int64
	methodology string
	prior       *catalogue.Prior
	from, end   int     // days; end 0: it is running
	lift        int64   // converted visitors a day more than 30
	learned     []int64 // the campaigns from which it learns its prior; nil: it learns none
}

var priorCampaigns = []priorCampaign{
	{id: 1, goal: 10, methodology: catalogue.Frequentist, end: 9, lift: 6},
	{id: 2, goal: 10, methodology: catalogue.Frequentist, end: 9, lift: -5},
	{id: 3, goal: 10, methodology: catalogue.Bayesian, prior: &catalogue.Prior{StandardDeviation: 5}, end: 9, lift: 9},
	{id: 4, goal: 10, methodology: catalogue.Frequentist, end: 19, lift: -20}, // ends later
	{id: 5, goal: 20, methodology: catalogue.Frequentist, end: 9, lift: 3},
	{id: 6, goal: 10, methodology: catalogue.Bayesian, prior: &catalogue.Prior{IsLearned: true}, from: 12, lift: 4, learned: []int64{1, 2, 3}},
	{id: 7, goal: 20, methodology: catalogue.Bayesian, prior: &catalogue.Prior{IsLearned: true}, from: 12, lift: 4, learned: []int64{5}},
	{id: 8, goal: 30, methodology: catalogue.Bayesian, prior: &catalogue.Prior{IsLearned: true}, from: 12, lift: 4, learned: []int64{}},
}

// effect returns the effect in all full days of an ended campaign.
func (c *priorCampaign) effect() stats.PooledEffect {
	days := int64(c.end - c.from) // the last day is not full
	return stats.NewPooledEffect([]stats.Stratum{{
		Control:   stats.Rate{Visitors: 300 * days, Converted: 30 * days},
		Treatment: stats.Rate{Visitors: 300 * days, Converted: (30 + c.lift) * days},
	}})
}

// TestLearnedPriorStays runs Bayesian campaigns after others. Each learns its prior from those of its pool that had
// ended by its first view: at once when a report is read, and then for good, whatever happens later.
func TestLearnedPriorStays(t *testing.T) {
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -30)
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	site := catalogue.Website{ID: 1, Domain: "a.example.com", Currency: "EUR"}
	for _, goal := range []int64{10, 20, 30} {
		site.Goals = append(site.Goals, catalogue.Goal{ID: goal, WebsiteID: 1, Name: "Purchase"})
	}
	for _, of := range priorCampaigns {
		campaign := running(of.id, 1, of.goal, first.AddDate(0, 0, of.from))
		campaign.Methodology, campaign.Prior, campaign.Active = of.methodology, of.prior, of.end == 0
		if of.end > 0 {
			campaign.EndDate = &catalogue.Date{Time: first.AddDate(0, 0, of.end).Add(12 * time.Hour)}
		}
		site.Campaigns = append(site.Campaigns, campaign)
	}
	must.Get(c.ApplyFile(t.Context(),
		catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}},
		false))(t)
	server := newServer(t, conn, c)
	e, recorder := server.Engine, server.recorder
	other := must.Get(catalogue.Open(t.Context(), conn))(t) // of a second server, which knows no prior yet
	insert := func(day int) {
		var events []schema.Event
		for _, of := range priorCampaigns {
			for i := range int64(600) {
				if day < of.from || of.end > 0 && day > of.end {
					continue
				}
				variation, n := i%2, i/2
				view := viewOf(uint64((of.id*100+int64(day))*1000+i), of.id, variation,
					first.AddDate(0, 0, day).Add(time.Duration(i)*time.Minute))
				events = append(events, view)
				if n < 30+variation*of.lift {
					events = append(events, goalAfter(view, of.goal, time.Second))
				}
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, events, first.AddDate(0, 0, day).Add(23*time.Hour)))
		must.OK(t, server.facts.RefreshFacts(t.Context()))
	}
	inForce := func(e *engine.Engine, c *catalogue.Catalogue, id int64) *catalogue.Prior {
		t.Helper()
		subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: id}
		p := must.Get(plan.New(plan.ResultsRequest(1, subject), c.Snapshot().AccountResources(1)))(t)
		rules := must.Get(e.PlanInForce(t.Context(), p))(t).Rules
		if rules.StatedPrior.Campaigns == nil {
			return nil
		}
		if rules.Prior.StandardDeviation != rules.StatedPrior.StandardDeviation/100 || rules.Prior.Mean != 0 {
			t.Errorf("campaign %d has the prior %v, and states %v", id, *rules.Prior, rules.StatedPrior)
		}
		return &rules.StatedPrior
	}
	want := map[int64]*catalogue.Prior{}
	for _, of := range priorCampaigns {
		if of.learned == nil {
			continue
		}
		var pooled [][]stats.PooledEffect
		for _, past := range priorCampaigns {
			if slices.Contains(of.learned, past.id) {
				pooled = append(pooled, []stats.PooledEffect{past.effect()})
			}
		}
		want[of.id] = &catalogue.Prior{
			StandardDeviation: 100 * effects.NewFit(.2, pooled).TypicalEffect().Mean,
			Campaigns:         new(len(pooled)),
		}
	}
	same := func(when string, e *engine.Engine, c *catalogue.Catalogue, kept bool) {
		t.Helper()
		for _, of := range priorCampaigns {
			found, stored := inForce(e, c, of.id), c.Snapshot().AccountResources(1).Campaigns[of.id].LearnedPrior
			wanted := want[of.id]
			check.That(t, reflect.DeepEqual(found, wanted), "%s, campaign %d: the prior is %+v, want %+v", when, of.id,
				found, wanted)
			if wanted := want[of.id]; kept && !reflect.DeepEqual(stored, wanted) || !kept && stored != nil {
				t.Errorf("%s, campaign %d: the catalogue has the prior %+v, want %+v: %t", when, of.id, stored, wanted,
					kept)
			}
		}
	}
	through := func(day int) time.Time { return first.AddDate(0, 0, day+1).Add(time.Hour) }
	for day := range 13 {
		insert(day)
		if day == 8 || day == 11 { // looks and ends are due
			recorder.RecordDue(t.Context(), through(day))
		}
	}
	same("before a server has kept it", e, c, false)
	recorder.RecordDue(t.Context(), through(12))
	same("after a server has kept it", e, c, true)
	newServer(t, conn, other).recorder.RecordDue(t.Context(), through(12))
	var kept []int64
	for _, a := range must.Get(c.ReadAuditLog(t.Context(), 1, first, 1000))(t) {
		if a.By == "learned prior" {
			kept = append(kept, a.ID)
		}
	}
	if slices.Sort(kept); !slices.Equal(kept, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the audit log has learned priors of the campaigns %v", kept)
	}
	excluded := catalogue.Outcome{Outcome: catalogue.Excluded, Date: first.Format(time.DateOnly), Note: "A/A"}
	for _, id := range []int64{1, 5} {
		must.Get(c.SetOutcome(t.Context(), 1, 1, schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: id},
			&excluded))(t)
	}
	for day := 13; day < 24; day++ { // campaign 4 ends, and the others have a look
		insert(day)
	}
	recorder.RecordDue(t.Context(), through(23))
	same("after campaigns were excluded and another ended", e, c, true)
	recorded := must.Get(e.Ledger.SubjectRecords(t.Context(),
		schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 6}))(t)
	must.That(t, len(recorded) != 0, "%d looks are recorded, want some of one declaration", len(recorded))
	check.That(t, !slices.ContainsFunc(recorded, func(r looks.Record) bool { return r.Hash != recorded[0].Hash }),
		"%d looks are recorded, want some of one declaration", len(recorded))
	must.OK(t, conn.Exec(t.Context(), "TRUNCATE TABLE events"))
	again := must.Get(catalogue.Open(t.Context(), conn))(t)
	same("after a restart without events", newServer(t, conn, again).Engine, again, true)
}
