package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lifthouse/engine/metric"
	"lifthouse/schema"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"
)

// CampaignTypes are the types of campaigns.
var CampaignTypes = []string{
	"personalization", "themePersonalization", "productPersonalization", "shippingPersonalization",
	"urlSplitPersonalization", "fullStackPersonalization", "templatePersonalization",
	"experiment", "themeExperiment", "productExperiment", "shippingExperiment",
	"urlSplitExperiment", "fullStackExperiment", "templateExperiment",
}

// WidgetTypes are the types of widgets.
var WidgetTypes = []string{"popup", "callout", "bar", "embedded"}

// ExperimentMetrics are the values of Experiment.PrimaryMetric. Empty means conversionRate.
var ExperimentMetrics = []string{
	"conversions", "completions", "goalsReached", "value", "profit", "extraValue",
	"conversionRate", "completionRate", "goalConversionRate", "valuePerVisitor", "profitPerVisitor",
	"extraValuePerVisitor",
}

// domainPattern is the pattern of the API contract without its look-ahead, which only limits labels to 63 characters.
// validDomain checks this limit.
var domainPattern = regexp.MustCompile(`^((xn--)?[a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,63}$`)

func validDomain(domain string) bool {
	isLong := func(label string) bool { return len(label) > 63 }
	return len(domain) <= 253 && // RFC 1035, section 2.3.4
		domainPattern.MatchString(domain) && !slices.ContainsFunc(strings.Split(domain, "."), isLong)
}

// validateAgainst returns the faults of the file. It checks all constraints of the API contract, and that ids are set
// and unique. Ids must not belong to another account or website. References must name resources in the file or in the
// store. pictures are the ids of the stored pictures of each account of the file; nil: they are not read, and any may
// exist.
func (f *File) validateAgainst(known *Snapshot, pictures map[int64]map[string]bool) faults.List {
	c := checker{
		known: known, prune: f.Prune, isRemote: f.IsRemote,
		Collector: faults.Collector{Most: maxFaults},
	}
	c.AddIf(len(f.Accounts) == 0, "accounts", "", "must have at least one account")
	accounts, websites := ids{}, ids{}
	for a := range f.Accounts {
		account := &f.Accounts[a]
		path := fmt.Sprintf("accounts[%d]", a)
		if !f.mayChange(account.ID) { // faults about its resources would describe another account
			c.Add(path+".id", account.ID,
				fmt.Sprintf("must be %d: the request may change only this account", f.AccountID))
			continue
		}
		c.checkID(path, account.ID, accounts)
		c.checkName(path, account.Name)
		c.pictures = pictures[account.ID]
		c.checkPicture(path+".logo", account.Logo)
		taken := map[string]ids{"goal": {}, "target": {}, "campaign": {}, "widget": {}}
		for w := range account.Websites {
			at := fmt.Sprintf("%s.websites[%d]", path, w)
			c.checkID(at, account.Websites[w].ID, websites)
			if owner := known.ownerOf(account.Websites[w].ID); owner != 0 && owner != account.ID {
				c.Add(at+".id", account.Websites[w].ID,
					"belongs to another account; website ids are unique over all accounts")
			}
			c.checkWebsite(at, account.ID, &account.Websites[w], taken)
		}
		c.checkWebhooks(path, account.Webhooks, known.AccountResources(account.ID).Webhooks)
	}
	return f.read.WithFaults(c.List)
}

type checker struct {
	known    *Snapshot
	prune    bool            // resources that the file does not name are archived, so the file must not refer to them
	isRemote bool            // the file must not name files of the server
	pictures map[string]bool // ids of those of the account; nil: any may exist
	faults.Collector
}

func (c *checker) checkID(path string, id int64, taken ids) {
	_, isTaken := taken[id]
	switch {
	case id < 1:
		c.Add(path+".id", id, "must be an integer from 1")
	case isTaken:
		c.Add(path+".id", id, "is not unique")
	}
	taken[id] = ""
}

// checkKey checks an id that may be computed from a key, which is unique if the id is.
func (c *checker) checkKey(path string, website int64, kind schema.NameKind, id int64, key string, taken ids) {
	computed, _, _ := schema.IDOf(website, kind, key)
	_, isTaken := taken[id]
	switch {
	case key == "" && id >= schema.FirstKeyID:
		c.Add(path+".id", id, fmt.Sprintf("must be below %d: larger ids are computed from keys", schema.FirstKeyID))
	case key == "":
		c.checkID(path, id, taken)
	case id != computed:
		c.Add(path+".id", id, fmt.Sprintf("must be %d, which is computed from the key", computed))
	case isTaken:
		c.Add(path+".key", key, "is not unique")
	}
	taken[id] = key
}

// checkWindow checks that a time to settle stands in the field settle.
func (c *checker) checkWindow(path string, w *schema.ConversionWindow) {
	c.AddIf(w != nil && w.Settle > 0,
		path, w, "must have the time to settle in a field of its own, such as settle: 30d")
}

// checkLookWindow checks the conversion window of a metric that has looks.
func (c *checker) checkLookWindow(path string, w *schema.ConversionWindow) {
	c.AddIf(w != nil && w.To > schema.MaxLookWindow, path, w, lookWindowFault)
}

// lookWindowFault is the fault of a conversion window that is too long for looks.
var lookWindowFault = fmt.Sprintf("must be at most %dd, because looks wait for it; a secondary metric may have up to "+
	"%dd, and followUp reads later orders", schema.MaxLookWindow/(24*time.Hour), schema.MaxWindow/(24*time.Hour))

func (c *checker) checkText(path, value string, minimum, maximum int) {
	n := utf8.RuneCountInString(value)
	c.AddIf(n < minimum || n > maximum,
		path, value, fmt.Sprintf("must have %d to %d characters, has %d", minimum, maximum, n))
	c.AddIf(!utf8.ValidString(value), path, value, "must be UTF-8")
}

func (c *checker) checkName(path, name string) { c.checkText(path+".name", name, 1, 255) }

func (c *checker) checkRange(path string, value, minimum, maximum float64) {
	c.AddIf(!(value >= minimum && value <= maximum),
		path, value, fmt.Sprintf("must be from %v to %v", minimum, maximum))
}

func (c *checker) oneOf(path, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		detail := faults.OneOf(allowed...)
		if nearest := faults.NearestName(value, allowed); nearest != "" {
			detail += "; did you mean " + nearest + "?"
		}
		c.Add(path, value, detail)
	}
}

// noneOrOneOf is like oneOf, and also accepts an empty value.
func (c *checker) noneOrOneOf(path, value string, allowed []string) {
	if value != "" {
		c.oneOf(path, value, allowed)
	}
}

func (c *checker) checkReference(path string, id int64, known ids, kind string) {
	if _, is := known[id]; is || id == 0 {
		return
	}
	c.Add(path, id, "the website has no such "+kind+"; it has "+listIDs(known))
}

// checkResource rejects an id that belongs to another website of the account, because the events of the resource cannot
// move. website is that of the store, or 0.
func (c *checker) checkResource(path string, id int64, website, wants int64) {
	c.AddIf(website != 0 && website != wants,
		path+".id", id, fmt.Sprintf("belongs to website %d; a resource cannot move", website))
}

func (c *checker) checkDates(path string, initial Initial) {
	for _, date := range []struct {
		field string
		given *Date
	}{{"createDate", initial.CreateDate}, {"startDate", initial.StartDate}, {"endDate", initial.EndDate}} {
		if date.given != nil && !schema.IsStorable(date.given.Time) {
			c.Add(path+"."+date.field, date.given.Format(time.RFC3339), "must be in a year from 1970 to 2199")
		}
	}
	if start, end := initial.StartDate, initial.EndDate; start != nil && end != nil && end.Before(start.Time) {
		c.Add(path+".endDate", end.Format(time.RFC3339), "must not be before startDate, "+start.Format(time.RFC3339))
	}
}

func (c *checker) checkWebsite(path string, account int64, site *Website, taken map[string]ids) {
	owner := c.known.AccountResources(account)
	c.AddIf(!validDomain(site.Domain),
		path+".domain", site.Domain, "must be a lower-case domain name such as shop.example.com")
	c.AddIf(site.Currency != "" && !schema.IsCurrency(site.Currency),
		path+".currency", site.Currency, "must be a currency code of ISO 4217 such as EUR, or be omitted")
	_, unknown := schema.LoadZone(site.Timezone)
	c.AddIf(unknown != nil, path+".timezone", site.Timezone,
		"must be a time zone of the IANA database such as Europe/Berlin, or be omitted")
	for i, name := range site.Ignored {
		if fault := schema.KeyFault(name); fault != "" {
			c.Add(fmt.Sprintf("%s.ignored[%d]", path, i), name, fault)
		}
	}
	targets := ids{}
	if !c.prune {
		targets = declaredOf(owner.Targets, site.ID)
	}
	terms := owner.termsAfter(site, c.prune)
	for i, goal := range site.Goals {
		at := fmt.Sprintf("%s.goals[%d]", path, i)
		c.checkKey(at, site.ID, schema.NameGoal, goal.ID, goal.Key, taken["goal"])
		c.checkResource(at, goal.ID, owner.Goals[goal.ID].WebsiteID, site.ID)
		c.checkName(at, goal.Name)
		c.checkWindow(at+".conversionWindow", goal.ConversionWindow)
		c.checkLookWindow(at+".conversionWindow", goal.ConversionWindow)
		if w := goal.ConversionWindow; w != nil && w.From > 0 {
			c.Add(at+".conversionWindow", w, "must begin at the first view, such as 7d; only the window of a "+
				"secondary goal or a guardrail may be a range")
		}
	}
	c.checkMetrics(path, site, terms)
	c.checkUsedMetrics(path, owner, site, terms)
	for i, target := range site.Targets {
		at := fmt.Sprintf("%s.targets[%d]", path, i)
		c.checkID(at, target.ID, taken["target"])
		c.checkResource(at, target.ID, owner.Targets[target.ID].WebsiteID, site.ID)
		c.checkName(at, target.Name)
		c.checkDates(at, Initial{CreateDate: target.CreateDate})
		targets[target.ID] = ""
	}
	for i := range site.Campaigns {
		at := fmt.Sprintf("%s.campaigns[%d]", path, i)
		campaign := &site.Campaigns[i]
		c.checkKey(at, site.ID, schema.NameCampaign, campaign.ID, campaign.Key, taken["campaign"])
		c.checkResource(at, campaign.ID, owner.Campaigns[campaign.ID].WebsiteID, site.ID)
		c.checkCampaign(at, campaign, terms, targets)
		c.checkQuestions(at, campaign.Questions, terms)
	}
	for i := range site.Widgets {
		at := fmt.Sprintf("%s.widgets[%d]", path, i)
		c.checkID(at, site.Widgets[i].ID, taken["widget"])
		c.checkResource(at, site.Widgets[i].ID, owner.Widgets[site.Widgets[i].ID].WebsiteID, site.ID)
		c.checkWidget(at, &site.Widgets[i], terms)
		for k := range site.Widgets[i].Experiments {
			questions := site.Widgets[i].Experiments[k].Questions
			c.checkQuestions(fmt.Sprintf("%s.experiments[%d]", at, k), questions, terms)
		}
	}
}

// checkQuestions finds faults in declared questions. Properties and own attributes may be declared before their data.
func (c *checker) checkQuestions(path string, questions []string, terms *Terms) {
	const most = metric.MaxDeclaredQuestions
	c.AddIf(len(questions) > most, path+".questions", len(questions),
		fmt.Sprintf("must have at most %d questions", most))
	names := terms.DeclaredNames()
	for i, text := range questions {
		at := fmt.Sprintf("%s.questions[%d]", path, i)
		_, err := metric.ParseAsk(text, names)
		if list, is := errors.AsType[metric.Faults](err); is {
			c.Append(list.ListFaults(at, text)...)
		}
		c.AddIf(slices.Index(questions, text) < i, at, text, "is not unique")
	}
}

func (c *checker) checkCampaign(path string, campaign *Campaign, terms *Terms, targets ids) {
	c.checkName(path, campaign.Name)
	c.checkText(path+".description", campaign.Description, 0, 2048)
	c.oneOf(path+".type", campaign.Type, CampaignTypes)
	c.checkRange(path+".controlShare", float64(campaign.ControlShare), 0, 100)
	if of := campaign.TrafficAllocation; of != nil {
		c.checkRange(path+".trafficAllocation", float64(*of), 0, 100)
	}
	c.checkText(path+".targetMode", campaign.TargetMode, 1, 255)
	c.oneOf(path+".significanceLevel", fmt.Sprint(campaign.SignificanceLevel), []string{"80", "90", "95", "100"})
	c.oneOf(path+".methodology", campaign.Methodology, []string{Frequentist, Bayesian})
	c.checkRange(path+".power", float64(campaign.Power), 60, 99)
	c.checkRange(path+".mde", campaign.MDE, 1, 100)
	if m, isDeclared := terms.FindMetric(campaign.PrimaryMetric); isDeclared {
		c.checkPrimary(path, m, campaign.PrimaryGoalID)
	} else {
		c.noneOrOneOf(path+".primaryMetric", campaign.PrimaryMetric, terms.metricNames(GoalMetrics))
	}
	c.lookPlan(path, &campaign.LookPlan)
	if prior := campaign.Prior; prior != nil && campaign.Methodology != Bayesian {
		c.Add(path+".prior", prior.String(), "must be omitted unless methodology is bayesian")
	} else if prior != nil && !prior.IsLearned {
		c.checkRange(path+".prior.mean", prior.Mean, -90, 1000)
		c.checkRange(path+".prior.standardDeviation", prior.StandardDeviation, 0.1, 1000)
	}
	c.noneOrOneOf(path+".multipleExposures", campaign.MultipleExposures, []string{ExcludeMultiExposed, FirstVariation})
	c.checkReference(path+".primaryGoalId", campaign.PrimaryGoalID, terms.goalIDs(), "goal")
	c.checkReference(path+".targetId", campaign.TargetID, targets, "target")
	c.checkGoals(path+".goals", campaign.Goals, campaign.PrimaryGoalID,
		cmp.Or(campaign.PrimaryMetric, defaultGoalMetric), terms)
	c.minDays(path, campaign.MinDays)
	c.checkFollowUp(path+".followUp", campaign.FollowUp, campaign.PrimaryGoalID)
	c.noneOrOneOf(path+".autoStop", campaign.AutoStop, []string{AutoStopRollBack, AutoStopInvalid, AutoStopBoth})
	// Texts that are displayed but not evaluated.
	c.checkText(path+".hypothesis", campaign.Hypothesis, 0, 2048)
	c.checkText(path+".owner", campaign.Owner, 0, 255)
	c.AddIf(len(campaign.Tags) > 20, path+".tags", len(campaign.Tags), "must have at most 20 tags")
	c.checkPicture(path+".controlPicture", campaign.ControlPicture)
	for i, tag := range campaign.Tags {
		at := fmt.Sprintf("%s.tags[%d]", path, i)
		c.checkText(at, tag, 1, 64)
		c.AddIf(slices.Index(campaign.Tags, tag) < i, at, tag, "is not unique")
	}
	c.checkDates(path, campaign.Initial)
	taken := ids{}
	for i, variation := range campaign.Variations {
		at := fmt.Sprintf("%s.variations[%d]", path, i)
		c.checkKey(at, 0, schema.NameVariation, variation.ID, variation.Key, taken) // 0 is control, not declared
		c.checkVariation(at, variation.Name, variation.Share, variation.ImageURL)
		c.checkPicture(at+".picture", variation.Picture)
		c.checkReference(at+".targetId", variation.TargetID, targets, "target")
	}
}

// lookPlan checks the schedule of looks. The limit of two years bounds the number of looks.
func (c *checker) lookPlan(path string, p *LookPlan) {
	if p.PlannedDays != 0 {
		c.checkRange(path+".plannedDays", float64(p.PlannedDays), 1, 730)
	}
	c.AddIf(p.PlannedVisitors < 0,
		path+".plannedVisitors", p.PlannedVisitors, "must be an integer from 1, or 0 for none")
	if p.Maturity != nil {
		c.checkRange(path+".maturity", float64(*p.Maturity), 0, 168)
	}
	c.AddIf(p.EquivalenceMargin != 0 && !(p.EquivalenceMargin > 0 && p.EquivalenceMargin < 100),
		path+".equivalenceMargin", p.EquivalenceMargin, "must be above 0 and below 100, in per cent, or be omitted")
}

// checkPicture checks the id of a picture, which must be among those of the account.
func (c *checker) checkPicture(path, id string) {
	switch {
	case id == "":
	case !documents.IsID(id):
		c.Add(path, id, "must be the id of a picture, which has 32 hexadecimal digits, or be omitted")
	case c.pictures != nil && !c.pictures[id]:
		c.Add(path, id, "the account has no such picture: send it first, with lifthouse picture FILE or "+
			"PUT /v1/pictures")
	}
}

func (c *checker) checkVariation(path, name string, share int, image string) {
	c.checkName(path, name)
	c.checkRange(path+".share", float64(share), 0, 100)
	c.AddIf(image != "" && !isURL(image, "https"), path+".imageUrl", image, fmt.Sprintf("must be an https:// URL of "+
		"at most %d bytes, without a user and a fragment, or be omitted", maxURL))
}

func (c *checker) checkWidget(path string, widget *Widget, terms *Terms) {
	c.checkName(path, widget.Name)
	c.oneOf(path+".type", widget.Type, WidgetTypes)
	c.checkReference(path+".primaryGoalId", widget.PrimaryGoalID, terms.goalIDs(), "goal")
	c.checkDates(path, widget.Initial)
	checkVariations := func(path string, variations []WidgetVariation) {
		taken := ids{}
		for i, v := range variations {
			at := fmt.Sprintf("%s.variations[%d]", path, i)
			c.checkID(at, v.ID, taken)
			c.checkVariation(at, v.Name, v.Share, v.ImageURL)
			c.checkPicture(at+".picture", v.Picture)
		}
	}
	checkVariations(path, widget.Variations)
	experiments := ids{}
	for i, experiment := range widget.Experiments {
		at := fmt.Sprintf("%s.experiments[%d]", path, i)
		c.checkGoals(at+".goals", experiment.Goals, widget.PrimaryGoalID, experiment.PrimaryMetric, terms)
		c.minDays(at, experiment.MinDays)
		c.lookPlan(at, &experiment.LookPlan)
		c.checkID(at, experiment.ID, experiments)
		c.checkText(at+".name", experiment.Name, 0, 255)
		c.checkRange(at+".controlShare", float64(experiment.ControlShare), 0, 100)
		if m, isDeclared := terms.FindMetric(experiment.PrimaryMetric); isDeclared {
			c.checkPrimary(at, m, 0)
		} else {
			c.noneOrOneOf(at+".primaryMetric", experiment.PrimaryMetric, terms.metricNames(ExperimentMetrics))
		}
		c.checkDates(at, Initial{
			CreateDate: experiment.CreateDate, StartDate: experiment.StartDate, EndDate: experiment.EndDate,
		})
		checkVariations(at, experiment.Variations)
	}
}

// Validate returns nil or a list of faults. A stored catalogue may be invalid if another program or an older release
// wrote it. The paths of the faults refer to the file that WriteYAML writes.
func (s *Snapshot) Validate() error {
	if len(s.accounts) == 0 {
		return nil // a new store; validateAgainst would require an account
	}
	file := s.CatalogueFile()
	file.Prune = true      // the file is the whole catalogue
	var c faults.Collector // resources whose website does not exist, which CatalogueFile omits
	for _, account := range s.AllAccounts() {
		addOrphans(&c, account, kindGoal, account.Goals)
		addOrphans(&c, account, kindTarget, account.Targets)
		addOrphans(&c, account, kindCampaign, account.Campaigns)
		addOrphans(&c, account, kindWidget, account.Widgets)
	}
	return append(c.List, file.validateAgainst(s, nil)...).Err()
}

func addOrphans[R Placed](c *faults.Collector, account *AccountResources, kind kind, resources map[int64]R) {
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		owner, _ := resources[id].WebsiteAndKey()
		if _, known := account.Websites[owner]; !known {
			c.Add(fmt.Sprintf("account %d, %s %d, websiteId", account.ID, kind, id), owner,
				"the account has no such website")
		}
	}
}
