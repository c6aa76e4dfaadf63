package bench_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/loadgentest"
	"lifthouse/loadgen/population"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	schematest.Main(m)
}

// newShop starts a server with a campaign with visitors, a campaign without visitors, and a widget with an experiment.
func newShop(t *testing.T) *loadgentest.Server {
	t.Helper()
	start := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10)
	campaign := func(id int64) catalogue.Campaign {
		return catalogue.Campaign{
			ID: id, WebsiteID: 1, Name: "Banner", Type: "experiment", TargetMode: "live", ControlShare: 50,
			TrafficAllocation: new(100), PrimaryGoalID: 3,
			Methodology: catalogue.Frequentist, SignificanceLevel: 95, Power: 80, MDE: 20,
			Variations: []catalogue.Variation{{ID: 1, Name: "New", Share: 100}},
			Initial:    catalogue.Initial{Active: true, StartDate: &catalogue.Date{Time: start}},
		}
	}
	widget := catalogue.Widget{
		ID: 4, WebsiteID: 1, Name: "Form", Type: "bar", PrimaryGoalID: 3, Variations: []catalogue.WidgetVariation{{ID: 1, Name: "Short", Share: 100}},
		Experiments: []catalogue.Experiment{{ID: 5, Name: "Length", ControlShare: 50, Variations: []catalogue.WidgetVariation{{ID: 2, Name: "Long", Share: 100}}}},
	}
	s := loadgentest.StartServer(t,
		catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "Shop", Websites: []catalogue.Website{{
			ID: 1, Domain: "shop.example.com", Goals: []catalogue.Goal{{ID: 3, WebsiteID: 1, Name: "Purchase"}},
			Campaigns: []catalogue.Campaign{campaign(12), campaign(13)}, Widgets: []catalogue.Widget{widget},
		}}}}})
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 400, Start: start, Days: 9, Seed: 1,
		Variations: []population.SimpleVariation{
			{ID: 0, Share: 50, ConversionRate: 0.1, MeanValue: 50},
			{ID: 1, Share: 50, ConversionRate: 0.1, MeanValue: 50},
		},
	}
	must.OK(t, s.Writer.WriteEvents(t.Context(), slices.Collect(simulated.GenerateEvents())))
	return s
}

func TestRunSendsAllKinds(t *testing.T) {
	s := newShop(t)
	o := bench.Defaults
	o.URL, o.AdminURL, o.Token, o.IngestToken = s.URL, s.AdminURL, s.Read, s.Ingest
	o.Mix = bench.Mix{}
	for _, kind := range bench.Kinds {
		o.Mix[kind] = 1
	}
	o.Rate, o.Duration, o.WarmUp = 280, 500*time.Millisecond, 300*time.Millisecond // the number of requests depends only on the seed
	r := must.Get(bench.Run(t.Context(), o))(t)
	step := r.Steps[0]
	err := r.Err()
	must.That(t, err == nil, "%v; %+v; notes %q", err, step.All, r.Notes)
	must.Equal(t, step.All.FailedShare(), 0, "%v; %+v; notes %q", err, step.All, r.Notes)
	must.Equal(t, len(step.Kinds), len(bench.Kinds), "%v; %+v; notes %q", err, step.All, r.Notes)
	for _, f := range step.Kinds {
		check.That(t, f.Succeeded >= 5, "%+v", f)
		check.That(t, f.Latency.P50 > 0, "%+v", f)
		check.That(t, f.Latency.Max >= f.Latency.P50, "%+v", f)
		notModified := f.Statuses["304"]
		if f.Kind == bench.BulkPoll { // events of the mix change the results of all
			continue
		}
		check.That(t, (f.Kind == bench.Dashboard) == (notModified > 0), "%s: %d responses with status 304; only dashboard requests are conditional", f.Kind, notModified)
	}
	server := step.Server
	check.That(t, server.Cores > 0, "server metrics: %+v", server)
	check.That(t, server.ResidentBytes > 0, "server metrics: %+v", server)
	check.That(t, server.StoreQueries > 0, "server metrics: %+v", server)
	check.That(t, server.Results["miss"] > 0, "server metrics: %+v", server)
}

func TestCampaigns(t *testing.T) {
	s := newShop(t)
	o := bench.Defaults
	o.URL, o.Token, o.Mix = s.URL, s.Read, bench.Mix{bench.List: 1}
	o.Rate, o.Duration, o.WarmUp, o.Campaigns = 100, 200*time.Millisecond, 0, []int64{13}
	r, err := bench.Run(t.Context(), o)
	must.That(t, err == nil, "%v: %+v", err, r)
	check.Equal(t, r.Mix, "list=1", "%v: %+v", err, r)
	check.Equal(t, len(r.Steps[0].Kinds), 1, "%v: %+v", err, r)
	o.Campaigns = []int64{99}
	_, err = bench.Run(t.Context(), o)
	check.That(t, err != nil, "no error for an unknown campaign")
}
