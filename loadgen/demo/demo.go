// Package demo has the data and the mark of the demo store: a small shop with planted effects.
package demo

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Ids of the shop, and its name. The documentation quotes numbers of Campaign.
const (
	Account  = 1
	Name     = "Demo shop" // of the account
	Campaign = 12
	Days     = 28 // with events

	widget     = 7
	experiment = 2
	purchase   = 3
	signUp     = 4
	support    = 5
	trial      = 6
	reminder   = 18 // campaign
)

// ShopEvents returns all events of the shop, which opens at start.
func ShopEvents(start time.Time) (all []schema.Event) {
	for _, population := range append(campaignPopulations(start), pastPopulations(start)...) {
		all = slices.AppendSeq(all, population.GenerateEvents())
	}
	all = append(all, supportRequests(all)...)
	for _, e := range trials(all) {
		if e.Time.Before(start.AddDate(0, 0, Days)) {
			all = append(all, e)
		}
	}
	for _, subscribers := range widgetPopulations(start) {
		all = slices.AppendSeq(all, subscribers.widgetEvents())
	}
	describeEvents(all)
	return all
}

// supportRequests returns the support requests of one in 25 visitors of the campaign, an hour after their first view.
// The variations have no effect on them.
func supportRequests(of []schema.Event) (requests []schema.Event) {
	asked := map[uint64]bool{}
	for _, e := range of {
		isView := e.SubjectID == Campaign && e.Kind == schema.KindView
		if !isView || asked[e.VisitorID] || schema.HashID(fmt.Sprint(e.VisitorID, "/support"))%25 != 0 {
			continue
		}
		asked[e.VisitorID] = true
		e.EventID = schema.HashID(fmt.Sprint(e.EventID, "/support"))
		e.Kind = schema.KindGoal
		e.GoalID = support
		e.Time = e.Time.Add(time.Hour)
		requests = append(requests, e)
	}
	return requests
}

// trials returns the trials of the visitors of one campaign, up to a week after their first view. In the variation,
// more of them begin within two days, and fewer later: its effect fades.
func trials(of []schema.Event) (begun []schema.Event) {
	const early, late = 2 * 24 * time.Hour, 7 * 24 * time.Hour
	known := map[uint64]bool{}
	for _, e := range of {
		if e.SubjectID != reminder || e.Kind != schema.KindView || known[e.VisitorID] {
			continue
		}
		known[e.VisitorID] = true
		soon, afterwards := 0.060, 0.050 // shares of the visitors
		if e.VariationID != 0 {
			soon = 0.105
			afterwards = 0.030
		}
		random := rand.New(rand.NewPCG(e.VisitorID, reminder))
		at := time.Duration(0)
		u := random.Float64()
		switch {
		case u < soon:
			at = time.Duration(random.Int64N(int64(early)))
		case u < soon+afterwards:
			at = early + time.Duration(random.Int64N(int64(late-early)))
		default:
			continue
		}
		e.EventID = schema.HashID(fmt.Sprint(e.EventID, "/trial"))
		e.Kind = schema.KindGoal
		e.GoalID = trial
		e.Time = e.Time.Add(at).Truncate(time.Millisecond)
		begun = append(begun, e)
	}
	return begun
}

// campaignPopulations returns the visitors of the campaigns. The first and the third campaign have a better variation.
// The second and the fourth have no effect. The fifth does harm, and the sixth splits its traffic wrongly. The effect
// of the seventh fades.
func campaignPopulations(start time.Time) []population.SimpleCampaign {
	of := func(id, goal int64, visitors, day, days int,
		variations ...population.SimpleVariation,
	) population.SimpleCampaign {
		return population.SimpleCampaign{
			WebsiteID: 1, CampaignID: id, GoalID: goal, Visitors: visitors, Start: start.AddDate(0, 0, day), Days: days,
			Variations: variations, MultipleExposures: 0.005, Seed: uint64(id), //nolint:gosec // the ids are constants
		}
	}
	buyers := func(id int64, share int, rate float64) population.SimpleVariation {
		return population.SimpleVariation{ID: id, Share: share, ConversionRate: rate, MeanValue: 54}
	}
	return []population.SimpleCampaign{
		of(Campaign, purchase, 24_000, 0, 28, buyers(0, 50, 0.060), buyers(1, 50, 0.075)),
		of(13, purchase, 9_000, 10, 18, buyers(0, 34, 0.060), buyers(1, 33, 0.060), buyers(2, 33, 0.060)),
		of(14, purchase, 3_000, 14, 14, buyers(0, 34, 0.060), buyers(1, 33, 0.090), buyers(2, 33, 0.070)),
		of(15, signUp, 12_000, 8, 20, population.SimpleVariation{ID: 0, Share: 50, ConversionRate: 0.20},
			population.SimpleVariation{ID: 1, Share: 50, ConversionRate: 0.20}),
		of(16, purchase, 8_000, 12, 16, buyers(0, 50, 0.080), buyers(1, 50, 0.055)),
		of(17, purchase, 6_000, 16, 12, buyers(0, 55, 0.060), buyers(1, 45, 0.070)),
		of(reminder, trial, 14_000, 0, 28, buyers(0, 50, 0), buyers(1, 50, 0)),
	}
}

// pastPopulations returns the visitors of the past campaigns.
func pastPopulations(start time.Time) (all []population.SimpleCampaign) {
	for i, past := range pastCampaigns {
		rate := func(id int64, rate float64) population.SimpleVariation {
			return population.SimpleVariation{ID: id, Share: 50, ConversionRate: rate, MeanValue: 54}
		}
		id := firstPast + int64(i)
		all = append(all, population.SimpleCampaign{
			WebsiteID: 1, CampaignID: id, GoalID: purchase, Visitors: visitorsOfPast,
			Start: start.AddDate(0, 0, past.day(i)),
			Days:  daysOfPast, Variations: []population.SimpleVariation{rate(0, 0.060), rate(1, 0.060*(1+past.lift))},
			MultipleExposures: 0.005, Seed: uint64(id), //nolint:gosec // a constant
		})
	}
	return all
}

// pastCampaigns are ended campaigns of the year before, with the lift of their variation. They are the programme of the
// shop.
var pastCampaigns = []pastCampaign{
	{"Trust badges", "Badges", .02, false},
	{"Product videos", "Video", .33, true},
	{"Shorter product texts", "Short", -.05, false},
	{"Price with tax first", "With tax", 0, false},
	{"Reviews above the fold", "Reviews", .28, false},
	{"Countdown of the sale", "Countdown", .04, true},
	{"Larger pictures", "Large", -.02, false},
	{"Guest checkout", "Guest", .30, true},
	{"Chat on product pages", "Chat", 0, false},
	{"Pop-up on exit", "Pop-up", -.30, false},
	{"Related products", "Related", .06, true},
	{"Menu with pictures", "Pictures", -.03, false},
}

type pastCampaign struct {
	name, variation string
	lift            float64
	shipped         bool // by a person, although no look concluded
}

// Outcomes returns what people did after past campaigns.
func Outcomes(start time.Time) map[schema.Subject]catalogue.Outcome {
	found := map[schema.Subject]catalogue.Outcome{}
	for i, p := range pastCampaigns {
		if p.shipped {
			day := start.AddDate(0, 0, p.day(i)+daysOfPast+2)
			subject := schema.Subject{Kind: schema.SubjectCampaign, ID: firstPast + int64(i)}
			found[subject] = catalogue.Outcome{
				Outcome: catalogue.Shipped, VariationID: 1,
				Date: day.Format(time.DateOnly),
			}
		}
	}
	return found
}

const (
	firstPast      = 100 // id
	visitorsOfPast = 12_000
	daysOfPast     = 21
)

// day returns the day on which the i-th campaign began, relative to the opening of the shop.
func (pastCampaign) day(i int) int { return -30*len(pastCampaigns) + 28*i }

// subscribers are visitors who saw the widget.
type subscribers struct {
	experiment int64 // 0: the widget's own variation
	population.SimpleCampaign
}

func widgetPopulations(start time.Time) []subscribers {
	return []subscribers{
		{0, population.SimpleCampaign{
			WebsiteID: 1, CampaignID: widget, GoalID: signUp, Visitors: 600, Start: start, Days: 12, Seed: 7,
			Variations: []population.SimpleVariation{{ID: 1, Share: 1, ConversionRate: 0.10, MeanValue: 5}},
		}},
		{experiment, population.SimpleCampaign{
			WebsiteID: 1, CampaignID: widget, GoalID: signUp, Visitors: 2_400, Start: start.AddDate(0, 0, 12), Days: 16,
			MultipleExposures: 0.005, Seed: 72,
			Variations: []population.SimpleVariation{
				{ID: 0, Share: 50, ConversionRate: 0.10, MeanValue: 5},
				{ID: 5, Share: 50, ConversionRate: 0.13, MeanValue: 5},
			},
		}},
	}
}

// ofSignUp are the events of a visitor who signs up, beside the goal.
var ofSignUp = []schema.Kind{
	schema.KindClick, schema.KindSubmit, schema.KindCompletion, schema.KindConversion,
	schema.KindContact,
}

// widgetEvents returns the widget events of the population. A visitor who signs up has an event of every kind. Some of
// the other visitors click.
func (s *subscribers) widgetEvents() iter.Seq[schema.Event] {
	return func(yield func(schema.Event) bool) {
		for e := range s.GenerateEvents() {
			e.Subject = schema.SubjectWidget
			e.ExperimentID = s.experiment
			did := []schema.Kind(nil)
			switch {
			case e.Kind == schema.KindGoal:
				did = ofSignUp
			case e.EventID%9 == 0:
				did = ofSignUp[:1+e.EventID%2]
			}
			if !yield(e) {
				return
			}
			for _, kind := range did {
				also := e
				also.EventID = schema.HashID(fmt.Sprintf("%d/%s", e.EventID, kind))
				also.Kind = kind
				also.GoalID = 0
				also.Value = 0
				also.Profit = 0
				if !yield(also) {
					return
				}
			}
		}
	}
}

// ShopCatalogue declares the shop.
func ShopCatalogue(start time.Time) catalogue.File {
	return catalogue.File{Accounts: []catalogue.Account{{
		ID: Account, Name: Name,
		Websites: []catalogue.Website{{
			ID: 1, Domain: "shop.example.com", Currency: "EUR", Timezone: "Europe/Berlin",
			Goals: []catalogue.Goal{
				{ID: purchase, WebsiteID: 1, Name: "Purchase", Default: true},
				{ID: signUp, WebsiteID: 1, Name: "Newsletter sign-up"},
				{ID: support, WebsiteID: 1, Name: "Support request"},
				{ID: trial, WebsiteID: 1, Name: "Trial", ConversionWindow: &schema.ConversionWindow{To: 7 * 24 * time.Hour}},
			},
			Campaigns: shopCampaigns(start),
			Widgets:   []catalogue.Widget{popupWidget(start)},
		}},
	}}}
}

// started returns a campaign of the shop that has begun, with the usual plan.
func started(c catalogue.Campaign, begun time.Time) catalogue.Campaign {
	c.WebsiteID = 1
	c.Type = "experiment"
	c.TargetMode = "live"
	c.TrafficAllocation = new(100)
	c.PrimaryGoalID = cmp.Or(c.PrimaryGoalID, purchase)
	c.SignificanceLevel = 95
	c.Power = 80
	c.MDE = 20
	c.Active = true
	c.StartDate = &catalogue.Date{Time: begun}
	c.CreateDate = &catalogue.Date{Time: begun}
	return c
}

// endedCampaigns returns the past campaigns of the shop.
func endedCampaigns(start time.Time) []catalogue.Campaign {
	var past []catalogue.Campaign
	for i, p := range pastCampaigns {
		begun := start.AddDate(0, 0, p.day(i))
		c := started(catalogue.Campaign{
			ID: firstPast + int64(i), Name: p.name, Methodology: catalogue.Frequentist, ControlShare: 50,
			Variations: []catalogue.Variation{{ID: 1, Name: p.variation, Share: 50, Order: 1}},
		}, begun)
		c.Active = false
		c.EndDate = &catalogue.Date{Time: begun.AddDate(0, 0, daysOfPast)}
		past = append(past, c)
	}
	return past
}

func shopCampaigns(start time.Time) []catalogue.Campaign {
	return append([]catalogue.Campaign{
		started(catalogue.Campaign{
			ID: Campaign, Name: "Free delivery banner", Methodology: catalogue.Frequentist, ControlShare: 50,
			Hypothesis: "A banner about free delivery makes more visitors buy, without more questions.", Owner: "Ada",
			Tags: []string{"checkout", "q4"},
			Goals: &catalogue.Goals{
				Secondary: []catalogue.SecondaryGoal{{
					GoalID: purchase, Metric: "valuePerVisitor",
					Direction: catalogue.Up,
				}},
				Guardrails: []catalogue.Guardrail{
					{GoalID: purchase, Metric: "averageValue", Margin: 20, Direction: catalogue.Up},
					{GoalID: support, Metric: "goalConversionRate", Margin: 25, Direction: catalogue.Down},
				},
			},
			Questions:  []string{"converted(purchase) split items.category", "converted(purchase) by device"},
			Variations: []catalogue.Variation{{ID: 1, Name: "Banner", Share: 50, Order: 1}},
		}, start),
		started(catalogue.Campaign{
			ID: 13, Name: "Colour of the buy button", Methodology: catalogue.Frequentist, ControlShare: 34,
			Variations: []catalogue.Variation{
				{ID: 1, Name: "Green", Share: 33, Order: 1},
				{ID: 2, Name: "Orange", Share: 33, Order: 2},
			},
		}, start.AddDate(0, 0, 10)),
		started(catalogue.Campaign{
			ID: 14, Name: "Checkout on one page", Methodology: catalogue.Bayesian, ControlShare: 34,
			Variations: []catalogue.Variation{
				{ID: 1, Name: "One page", Share: 33, Order: 1},
				{ID: 2, Name: "Two steps", Share: 33, Order: 2},
			},
		}, start.AddDate(0, 0, 14)),
		started(catalogue.Campaign{
			ID: 15, Name: "Sticky header", Methodology: catalogue.Frequentist, ControlShare: 50,
			LookPlan: catalogue.LookPlan{EquivalenceMargin: 20}, PrimaryGoalID: signUp,
			Owner: "Ben", Tags: []string{"navigation"},
			Variations: []catalogue.Variation{{ID: 1, Name: "Sticky", Share: 50, Order: 1}},
		}, start.AddDate(0, 0, 8)),
		started(catalogue.Campaign{
			ID: 16, Name: "Longer checkout form", Methodology: catalogue.Frequentist, ControlShare: 50,
			Owner: "Ada", Tags: []string{"checkout"},
			Variations: []catalogue.Variation{{ID: 1, Name: "Long form", Share: 50, Order: 1}},
		}, start.AddDate(0, 0, 12)),
		started(catalogue.Campaign{
			ID: 17, Name: "New search", Methodology: catalogue.Frequentist, ControlShare: 50,
			Owner: "Cyn", Tags: []string{"search"},
			Variations: []catalogue.Variation{{ID: 1, Name: "Fast search", Share: 50, Order: 1}},
		}, start.AddDate(0, 0, 16)),
		started(catalogue.Campaign{
			ID: reminder, Name: "Trial reminder", Methodology: catalogue.Frequentist, ControlShare: 50,
			LookPlan: catalogue.LookPlan{PlannedDays: 14}, PrimaryGoalID: trial, Owner: "Ben", Tags: []string{"trial"},
			Variations: []catalogue.Variation{{ID: 1, Name: "Reminder", Share: 50, Order: 1}},
		}, start),
	}, endedCampaigns(start)...)
}

func popupWidget(start time.Time) catalogue.Widget {
	begun := &catalogue.Date{Time: start}
	tested := &catalogue.Date{Time: start.AddDate(0, 0, 12)}
	return catalogue.Widget{
		ID: widget, WebsiteID: 1, Name: "Newsletter", Type: "popup", PrimaryGoalID: signUp,
		Initial:    catalogue.Initial{Active: true, CreateDate: begun, StartDate: begun},
		Variations: []catalogue.WidgetVariation{{ID: 1, Name: "Plain", Share: 100}},
		Experiments: []catalogue.Experiment{{
			ID: experiment, Name: "Shorter text", PrimaryMetric: "conversionRate", ControlShare: 50, Active: true,
			CreateDate: tested, StartDate: tested,
			Variations: []catalogue.WidgetVariation{{ID: 5, Name: "Short", Share: 50}},
		}},
	}
}

// mark is a file that marks a demo store.
const mark = "lifthouse.demo"

// IsClaimed reports whether a directory is a demo store.
func IsClaimed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, mark))
	return err == nil
}

// ClaimDirectory marks a new directory as a demo store. It returns an error if the directory has other content.
func ClaimDirectory(dir string) error {
	if IsClaimed(dir) {
		return nil
	}
	if found, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	} else if len(found) > 0 {
		return fmt.Errorf("%s is not a demo store: name an empty directory with --store, or serve this store with "+
			"lifthouse serve", dir)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mark), nil, 0o600)
}
