package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"golang.org/x/text/currency"

	"lifthouse/schema"
)

// Fault is an error in a catalogue file.
type Fault struct {
	Path   string // accounts[0].websites[0].campaigns[2].power
	Line   int    // of the file; 0: unknown
	Value  string // the invalid value
	Detail string // what is allowed
}

// Faults are all errors in a catalogue file.
type Faults []Fault

// Error returns the faults, one per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		if fault.Line > 0 {
			lines[i] = fmt.Sprintf("line %d: ", fault.Line)
		}
		lines[i] += fault.Path + ": "
		if fault.Value != "" || !strings.HasPrefix(fault.Detail, unknownPrefix) && !strings.HasPrefix(fault.Detail, twicePrefix) {
			lines[i] += fmt.Sprintf("%q: ", fault.Value)
		}
		lines[i] += fault.Detail
	}
	return strings.Join(lines, "\n")
}

// CampaignTypes are the types of campaigns.
var CampaignTypes = []string{
	"personalization", "themePersonalization", "productPersonalization", "shippingPersonalization",
	"urlSplitPersonalization", "fullStackPersonalization", "templatePersonalization",
	"experiment", "themeExperiment", "productExperiment", "shippingExperiment",
	"urlSplitExperiment", "fullStackExperiment", "templateExperiment",
}

// WidgetTypes are the types of widgets.
var WidgetTypes = []string{"popup", "callout", "bar", "embedded"}

// ExperimentMetrics are the values of Experiment.PrimaryMetric. Empty means
// conversionRate.
var ExperimentMetrics = []string{
	"conversions", "completions", "goalsReached", "value", "profit", "extraValue",
	"conversionRate", "completionRate", "goalConversionRate", "valuePerVisitor", "profitPerVisitor", "extraValuePerVisitor",
}

var significanceLevels = []string{"80", "90", "95", "100"}

// domainPattern is the pattern of the API contract without its look-ahead, which
// only limits labels to 63 characters. validDomain checks this limit.
var domainPattern = regexp.MustCompile(`^((xn--)?[a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,63}$`)

// maxDomain is the maximum length of a domain name (RFC 1035, section 2.3.4).
const maxDomain = 253

func validDomain(domain string) bool {
	if len(domain) > maxDomain || !domainPattern.MatchString(domain) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(domain, "."), func(label string) bool { return len(label) > 63 })
}

// validate returns nil or Faults. It checks all constraints of the API contract,
// and that ids are set and unique. Ids must not belong to another account or
// website. References must name resources of the file or of the store.
func (f *File) validate(known *Snapshot) error {
	c := checker{known: known, prune: f.Prune}
	if len(f.Accounts) == 0 {
		c.fault("accounts", "", "must have at least one account")
	}
	accounts, websites := ids{}, ids{}
	for a := range f.Accounts {
		account := &f.Accounts[a]
		path := fmt.Sprintf("accounts[%d]", a)
		c.id(path, account.ID, accounts)
		c.name(path, account.Name)
		taken := map[string]ids{"goal": {}, "target": {}, "campaign": {}, "widget": {}}
		for w := range account.Websites {
			at := fmt.Sprintf("%s.websites[%d]", path, w)
			c.id(at, account.Websites[w].ID, websites)
			if owner := known.ownerOf(account.Websites[w].ID); owner != 0 && owner != account.ID {
				c.fault(at+".id", account.Websites[w].ID, "belongs to another account; website ids are unique over all accounts")
			}
			c.website(at, account.ID, &account.Websites[w], taken)
		}
	}
	faults := append(slices.Clone(f.faults), c.faults.without(f.faults, f.missing)...)
	if len(faults) > 0 {
		faults.at(f.lines)
		return faults
	}
	return nil
}

type ids map[int64]bool

// all returns the ids in ascending order.
func (i ids) all() []int64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i)), func(id int64) bool { return !i[id] })
}

type checker struct {
	known  *Snapshot
	prune  bool // resources that the file does not name are archived, so the file must not refer to them
	faults Faults
}

func (c *checker) fault(path string, value any, detail string) {
	c.faults = append(c.faults, Fault{Path: path, Value: fmt.Sprint(value), Detail: detail})
}

func (c *checker) id(path string, id int64, taken ids) {
	switch {
	case id < 1:
		c.fault(path+".id", id, "must be an integer from 1")
	case taken[id]:
		c.fault(path+".id", id, "is not unique")
	}
	taken[id] = true
}

func (c *checker) text(path, value string, minimum, maximum int) {
	if n := utf8.RuneCountInString(value); n < minimum || n > maximum {
		c.fault(path, value, fmt.Sprintf("must have %d to %d characters, has %d", minimum, maximum, n))
	}
	if !utf8.ValidString(value) {
		c.fault(path, value, "must be UTF-8")
	}
}

func (c *checker) name(path, name string) { c.text(path+".name", name, 1, 255) }

func (c *checker) within(path string, value, minimum, maximum float64) {
	if !(value >= minimum && value <= maximum) {
		c.fault(path, value, fmt.Sprintf("must be from %v to %v", minimum, maximum))
	}
}

func (c *checker) oneOf(path, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		c.fault(path, value, "must be one of "+strings.Join(allowed, ", ")+suggestion(value, allowed))
	}
}

// suggestion returns a question for the most similar allowed value, or an empty text if
// none is similar.
func suggestion(value string, allowed []string) string {
	nearest := schema.Nearest(value, allowed)
	if value == "" || levenshtein.ComputeDistance(strings.ToLower(value), strings.ToLower(nearest)) > len(value)/3+1 {
		return ""
	}
	return "; did you mean " + nearest + "?"
}

// noSuch begins the detail of a reference to a resource that does not exist.
const noSuch = "the website has no such "

func (c *checker) refers(path string, id int64, known ids, kind string) {
	if id == 0 || known[id] {
		return
	}
	detail := noSuch + kind
	if nearest := nearestID(id, known.all()); nearest != nil {
		detail += fmt.Sprintf("; the nearest is %d", *nearest)
	}
	c.fault(path, id, detail)
}

// owned rejects an id that belongs to another website of the account, because the
// events of the resource cannot move.
func (c *checker) owned(path string, id, website, wants int64) {
	if website != 0 && website != wants {
		c.fault(path+".id", id, fmt.Sprintf("belongs to website %d; a resource cannot move", website))
	}
}

func (c *checker) dates(path string, initial Initial) {
	for _, date := range []struct {
		field string
		given *Date
	}{{"createDate", initial.CreateDate}, {"startDate", initial.StartDate}, {"endDate", initial.EndDate}} {
		if date.given != nil && !schema.IsStorable(date.given.Time) {
			c.fault(path+"."+date.field, date.given.Format(time.RFC3339), "must be in a year from 1970 to 2199")
		}
	}
	if start, end := initial.StartDate, initial.EndDate; start != nil && end != nil && end.Before(start.Time) {
		c.fault(path+".endDate", end.Format(time.RFC3339), "must not be before startDate, "+start.Format(time.RFC3339))
	}
}

func (c *checker) website(path string, account int64, site *Website, taken map[string]ids) {
	owner := c.known.Account(account)
	if !validDomain(site.Domain) {
		c.fault(path+".domain", site.Domain, "must be a lower-case domain name such as shop.example.com")
	}
	c.place(path, site)
	goals, targets := ids{}, ids{}
	if !c.prune {
		goals, targets = owner.goalsOf(site.ID), owner.targetsOf(site.ID)
	}
	for i, goal := range site.Goals {
		at := fmt.Sprintf("%s.goals[%d]", path, i)
		c.id(at, goal.ID, taken["goal"])
		c.owned(at, goal.ID, owner.Goals[goal.ID].WebsiteID, site.ID)
		c.name(at, goal.Name)
		goals[goal.ID] = true
	}
	for i, target := range site.Targets {
		at := fmt.Sprintf("%s.targets[%d]", path, i)
		c.id(at, target.ID, taken["target"])
		c.owned(at, target.ID, owner.Targets[target.ID].WebsiteID, site.ID)
		c.name(at, target.Name)
		c.dates(at, Initial{CreateDate: target.CreateDate})
		targets[target.ID] = true
	}
	for i := range site.Campaigns {
		at := fmt.Sprintf("%s.campaigns[%d]", path, i)
		c.id(at, site.Campaigns[i].ID, taken["campaign"])
		c.owned(at, site.Campaigns[i].ID, owner.Campaigns[site.Campaigns[i].ID].WebsiteID, site.ID)
		c.campaign(at, &site.Campaigns[i], goals, targets)
	}
	for i := range site.Widgets {
		at := fmt.Sprintf("%s.widgets[%d]", path, i)
		c.id(at, site.Widgets[i].ID, taken["widget"])
		c.owned(at, site.Widgets[i].ID, owner.Widgets[site.Widgets[i].ID].WebsiteID, site.ID)
		c.widget(at, &site.Widgets[i], goals)
	}
}

// place checks where a website is: its currency and its time zone.
func (c *checker) place(path string, site *Website) {
	if site.Currency != "" {
		if _, err := currency.ParseISO(site.Currency); err != nil || site.Currency != strings.ToUpper(site.Currency) {
			c.fault(path+".currency", site.Currency, "must be a currency code of ISO 4217 such as EUR, or be omitted")
		}
	}
	if site.Timezone != "" {
		if _, err := time.LoadLocation(site.Timezone); err != nil || site.Timezone == "Local" {
			c.fault(path+".timezone", site.Timezone, "must be a time zone of the IANA database such as Europe/Berlin, or be omitted")
		}
	}
}

func (c *checker) campaign(path string, campaign *Campaign, goals, targets ids) {
	c.name(path, campaign.Name)
	c.text(path+".description", campaign.Description, 0, 2048)
	c.oneOf(path+".type", campaign.Type, CampaignTypes)
	c.within(path+".controlShare", float64(campaign.ControlShare), 0, 100)
	c.within(path+".trafficAllocation", float64(campaign.TrafficAllocation), 0, 100)
	c.text(path+".targetMode", campaign.TargetMode, 1, 255)
	c.oneOf(path+".significanceLevel", fmt.Sprint(campaign.SignificanceLevel), significanceLevels)
	c.oneOf(path+".methodology", campaign.Methodology, []string{Frequentist, Bayesian})
	c.within(path+".power", float64(campaign.Power), 60, 99)
	c.within(path+".mde", campaign.MDE, 1, 100)
	if campaign.PrimaryMetric != "" {
		c.oneOf(path+".primaryMetric", campaign.PrimaryMetric, GoalMetrics)
	}
	c.lookPlan(path, &campaign.LookPlan)
	c.prior(path, campaign)
	if campaign.MultipleExposures != "" {
		c.oneOf(path+".multipleExposures", campaign.MultipleExposures, []string{ExcludeMultiExposed, FirstVariation})
	}
	c.refers(path+".primaryGoalId", campaign.PrimaryGoalID, goals, "goal")
	c.refers(path+".targetId", campaign.TargetID, targets, "target")
	c.goals(path+".goals", campaign.Goals, campaign.PrimaryGoalID, cmp.Or(campaign.PrimaryMetric, defaultGoalMetric), goals)
	c.minDays(path, campaign.MinDays)
	c.shown(path, campaign.Hypothesis, campaign.Owner, campaign.Tags)
	c.dates(path, campaign.Initial)
	taken := ids{}
	for i, variation := range campaign.Variations {
		at := fmt.Sprintf("%s.variations[%d]", path, i)
		c.variation(at, variation.ID, variation.Name, variation.Share, taken)
		c.refers(at+".targetId", variation.TargetID, targets, "target")
	}
}

// lookPlan checks when looks are. Two years of days bound the number of looks.
func (c *checker) lookPlan(path string, p *LookPlan) {
	if p.PlannedDays != 0 {
		c.within(path+".plannedDays", float64(p.PlannedDays), 1, 730)
	}
	if p.PlannedVisitors < 0 {
		c.fault(path+".plannedVisitors", p.PlannedVisitors, "must be an integer from 1, or 0 for none")
	}
	if p.Looks != "" {
		c.oneOf(path+".looks", p.Looks, []string{WeeklyLooks, DailyLooks})
	}
	if p.Maturity != nil {
		c.within(path+".maturity", float64(*p.Maturity), 0, 168)
	}
	if p.EquivalenceMargin != 0 && !(p.EquivalenceMargin > 0 && p.EquivalenceMargin < 100) {
		c.fault(path+".equivalenceMargin", p.EquivalenceMargin, "must be above 0 and below 100, in per cent, or be omitted")
	}
}

func (c *checker) prior(path string, campaign *Campaign) {
	p := campaign.Prior
	switch {
	case p == nil:
	case campaign.Methodology != Bayesian:
		c.fault(path+".prior", p.String(), "must be omitted unless methodology is bayesian")
	case !p.Flat:
		c.within(path+".prior.mean", p.Mean, -90, 1000)
		c.within(path+".prior.standardDeviation", p.StandardDeviation, 0.1, 1000)
	}
}

func (c *checker) variation(path string, id int64, name string, share int, taken ids) {
	c.id(path, id, taken) // 0 is control, which must not be declared
	c.name(path, name)
	c.within(path+".share", float64(share), 0, 100)
}

func (c *checker) widget(path string, widget *Widget, goals ids) {
	c.name(path, widget.Name)
	c.oneOf(path+".type", widget.Type, WidgetTypes)
	c.refers(path+".primaryGoalId", widget.PrimaryGoalID, goals, "goal")
	c.dates(path, widget.Initial)
	own := ids{}
	for i, v := range widget.Variations {
		c.variation(fmt.Sprintf("%s.variations[%d]", path, i), v.ID, v.Name, v.Share, own)
	}
	experiments := ids{}
	for i, experiment := range widget.Experiments {
		at := fmt.Sprintf("%s.experiments[%d]", path, i)
		c.goals(at+".goals", experiment.Goals, widget.PrimaryGoalID, experiment.PrimaryMetric, goals)
		c.minDays(at, experiment.MinDays)
		c.lookPlan(at, &experiment.LookPlan)
		c.id(at, experiment.ID, experiments)
		c.text(at+".name", experiment.Name, 0, 255)
		c.within(at+".controlShare", float64(experiment.ControlShare), 0, 100)
		if experiment.PrimaryMetric != "" {
			c.oneOf(at+".primaryMetric", experiment.PrimaryMetric, ExperimentMetrics)
		}
		c.dates(at, Initial{CreateDate: experiment.CreateDate, StartDate: experiment.StartDate, EndDate: experiment.EndDate})
		taken := ids{}
		for j, v := range experiment.Variations {
			c.variation(fmt.Sprintf("%s.variations[%d]", at, j), v.ID, v.Name, v.Share, taken)
		}
	}
}
