package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/stats"

	"github.com/parquet-go/parquet-go"
)

// Discovered is a campaign in the events that the catalogue does not declare. It says nothing of goals: a plan that is
// declared after the first views must not be chosen by their outcomes.
type Discovered struct {
	WebsiteID  int64                 `json:"websiteId"`
	CampaignID int64                 `json:"campaignId"`
	Key        string                `json:"key,omitempty"` // from which the id is computed
	Source     string                `json:"source"`        // that sent it first: name of a token or of a file
	FirstView  time.Time             `json:"firstView"`
	LastEvent  time.Time             `json:"lastEvent"`
	Visitors   int64                 `json:"visitors"`
	Variations []DiscoveredVariation `json:"variations"` // control first if it is known, then by visitors
	// EqualSplit is the p-value of the always-valid test that all variations get the same traffic; null: no test.
	EqualSplit *float64 `json:"equalSplitPValue"`
}

// DiscoveredVariation is a variation of a campaign that is not declared.
type DiscoveredVariation struct {
	ID       int64   `json:"id"`
	Key      string  `json:"key,omitempty"`
	Visitors int64   `json:"visitors"`
	Share    float64 `json:"share"` // of the visitors
}

// Name returns the key or the id.
func (d *Discovered) Name() string { return cmp.Or(d.Key, strconv.FormatInt(d.CampaignID, 10)) }

// Name returns the key or the id.
func (v *DiscoveredVariation) Name() string {
	if v.ID == 0 {
		return schema.ControlKey
	}
	return cmp.Or(v.Key, strconv.FormatInt(v.ID, 10))
}

// Discover returns the campaigns of an account's websites of which events arrived, and which the catalogue neither
// declares nor ignores: those with most visitors first.
func (e *Engine) Discover(ctx context.Context, owned *catalogue.AccountResources) ([]Discovered, error) {
	known, err := schema.ReadNames(ctx, e.facts.Store.Conn)
	if err != nil {
		return nil, err
	}
	found := []Discovered{}
	for subject := range e.facts.StoredSubjects() {
		site, is := owned.Websites[subject.WebsiteID]
		_, declared := owned.Campaigns[subject.ID]
		if !is || declared || subject.Kind != schema.SubjectCampaign {
			continue
		}
		name := known[schema.NamedID{WebsiteID: site.ID, Kind: schema.NameCampaign, ID: subject.ID}]
		counters := e.facts.SubjectCounters(subject)
		d := Discovered{
			WebsiteID: site.ID, CampaignID: subject.ID, Key: name.Key, Source: name.Source,
			FirstView: fold.TimeOf(counters.FirstView), LastEvent: fold.TimeOf(counters.Newest),
		}
		if counters.FirstView == 0 || slices.Contains(site.Ignored, d.Name()) {
			continue
		}

		// Its variations with their visitors, by the variation of the first view, before any exclusion.
		for id, n := range counters.FirstExposed {
			d.Visitors += n
			key := known[schema.NamedID{
				WebsiteID: site.ID, Kind: schema.NameVariation, CampaignID: subject.ID, ID: id,
			}].Key
			d.Variations = append(d.Variations, DiscoveredVariation{ID: id, Key: key, Visitors: n})
		}
		slices.SortFunc(d.Variations, func(a, b DiscoveredVariation) int {
			isTreatment := func(v DiscoveredVariation) int { return int(min(v.ID, 1)) }
			return cmp.Or(cmp.Compare(isTreatment(a), isTreatment(b)), cmp.Compare(b.Visitors, a.Visitors),
				cmp.Compare(a.ID, b.ID))
		})
		equal := stats.Split{Control: 100 / float64(len(d.Variations))}
		var observed []int64
		for i := range d.Variations {
			d.Variations[i].Share = float64(d.Variations[i].Visitors) / float64(d.Visitors)
			observed = append(observed, d.Variations[i].Visitors)
			if i > 0 {
				equal.Variations = append(equal.Variations, 1)
			}
		}
		d.EqualSplit = stats.SampleRatioMismatch([]stats.SharePeriod{{Split: equal, Observed: observed}}).PValue
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b Discovered) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.CampaignID, b.CampaignID))
	})
	return found, nil
}

// SelectDiscovered returns the campaigns of a website, or of all if website is 0, whose names contain a text, in any
// case.
func SelectDiscovered(all []Discovered, website int64, search string) []Discovered {
	search = strings.ToLower(search)
	return slices.DeleteFunc(all, func(d Discovered) bool {
		isOther := website != 0 && d.WebsiteID != website
		return isOther || !strings.Contains(strings.ToLower(d.Name()), search)
	})
}

// Declaration is how people declare a discovered campaign. Everything else of its plan is the default.
type Declaration struct {
	WebsiteID int64  `yaml:"websiteId"`   // 0: the only one with the campaign
	Campaign  string `yaml:"-"`           // key or id
	Ignored   bool   `yaml:"ignore"`      // the campaign is not discovered any more; the rest does not matter
	Goal      string `yaml:"goal"`        // key or id of the primary goal
	Control   string `yaml:"control"`     // key or id of control; empty: the variation 0, if there is one
	Shares    []int  `yaml:"shares"`      // per cent, in the order of the variations with control first; none: equal
	Days      int    `yaml:"plannedDays"` // 0: the default
}

// isOf reports whether a declaration is of a discovered campaign.
func (how *Declaration) isOf(d Discovered) bool {
	isOnWebsite := how.WebsiteID == 0 || d.WebsiteID == how.WebsiteID
	isNamed := how.Campaign == d.Name() || how.Campaign == strconv.FormatInt(d.CampaignID, 10)
	return isOnWebsite && isNamed
}

// DeclareDiscovered returns the catalogue file that declares one of the discovered campaigns, and its goal if the
// website does not have it. It reports whether there is exactly one such campaign. The error is a faults.List.
func DeclareDiscovered(
	all []Discovered, owned *catalogue.AccountResources, how Declaration,
) (file catalogue.File, found bool, err error) {
	asked := slices.DeleteFunc(slices.Clone(all), func(d Discovered) bool { return !how.isOf(d) })
	if len(asked) != 1 {
		return file, false, nil
	}
	account := owned.Account
	d := &asked[0]
	site := owned.Websites[d.WebsiteID]
	if how.Ignored {
		site.Ignored = append(slices.Clone(site.Ignored), d.Name())
	} else {
		err = d.declareIn(&site, owned, how)
	}
	account.Websites = []catalogue.Website{site}
	return catalogue.File{AccountID: account.ID, Accounts: []catalogue.Account{account}}, true, err
}

// declareIn adds the campaign to the file of its website. The observed split never becomes the declared one, because
// the test of the split would then accept everything: if the split is not equal, people must say what it was planned to
// be.
func (d *Discovered) declareIn(site *catalogue.Website, owned *catalogue.AccountResources, how Declaration) error {
	var found faults.Collector
	goal, goalKey, err := schema.IDOf(site.ID, schema.NameGoal, how.Goal)
	if err != nil {
		found.Add("goal", how.Goal, err.Error())
	}

	variations := d.controlFirst(how.Control, &found)
	shares := d.declaredShares(how.Shares, &found)
	if err := found.List.Err(); err != nil {
		return err
	}
	site.Goals = nil
	if _, known := owned.Goals[goal]; !known {
		site.Goals = []catalogue.Goal{{ID: goal, Key: goalKey, Name: how.Goal}}
	}
	campaign := catalogue.NewCampaign()
	campaign.ID = d.CampaignID
	campaign.Key = d.Key
	campaign.Name = d.Name()
	campaign.Type = "experiment"
	campaign.PrimaryGoalID = goal
	campaign.SignificanceLevel = 95
	campaign.PlannedDays = how.Days
	campaign.Initial = catalogue.Initial{Active: true, StartDate: &catalogue.Date{Time: d.FirstView}}
	campaign.ControlShare = 0 // unless a variation is control
	for i, v := range variations {
		if v.ID == 0 {
			campaign.ControlShare = shares[i]
			continue
		}
		campaign.Variations = append(campaign.Variations,
			catalogue.Variation{ID: v.ID, Key: v.Key, Name: v.Name(), Share: shares[i], Order: i})
	}
	site.Campaigns = []catalogue.Campaign{campaign}
	return nil
}

// controlFirst returns the variations with control in front. control is its name; empty: the variation 0.
func (d *Discovered) controlFirst(control string, found *faults.Collector) []DiscoveredVariation {
	var names []string
	at := -1
	for i := range d.Variations {
		name := d.Variations[i].Name()
		names = append(names, name)
		if name == cmp.Or(control, schema.ControlKey) {
			at = i
		}
	}
	switch {
	case at < 0:
		found.Add("control", control,
			faults.OneOf(clipNames(names)...)+": the one that visitors saw before the campaign")
		return nil
	case at > 0 && d.Variations[0].ID == 0:
		found.Add("control", control, "must be control: it has visitors, and is control in every campaign")
		return nil
	}
	others := slices.Delete(slices.Clone(d.Variations), at, at+1)
	return slices.Insert(others, 0, d.Variations[at])
}

// declaredShares returns the shares of the variations in per cent. Without shares, they are equal, unless the visitors
// are not divided equally.
func (d *Discovered) declaredShares(shares []int, found *faults.Collector) []int {
	n := len(d.Variations)
	sum := 0
	for _, share := range shares {
		sum += share
	}
	switch {
	case len(shares) == 0 && d.EqualSplit != nil && *d.EqualSplit < stats.MismatchAlpha:
		found.AddField("shares", "the visitors are not divided equally (p = %.2g): must be the shares that were "+
			"planned, not those that are observed", *d.EqualSplit)
	case len(shares) == 0:
		return slices.Repeat([]int{100 / max(n, 1)}, n)
	case len(shares) != n || sum != 100:
		found.Add("shares", shares, fmt.Sprintf("must be %d numbers in percent with the sum 100, control first", n))
	}
	return shares
}

// clipNames returns the first names, and how many more there are.
func clipNames(names []string) []string {
	const most = 20
	if more := len(names) - most; more > 0 {
		return append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return names
}

// Values has the observed values of an attribute, the most frequent first. Visitors counts all visitors of the subject,
// including those that a report excludes, by the attribute of their first view.
type Values struct {
	schema.SubjectIDs
	Dimension      string        `json:"dimension"`
	DataThrough    *time.Time    `json:"dataThrough"` // null: the subject has no events, or no fold is complete
	Visitors       int64         `json:"visitors"`
	DistinctValues int64         `json:"distinctValues"`
	Values         []facts.Value `json:"values"`
}

// ReadValues returns the most frequent values of an attribute for the subject of the plan, at most the given number. It
// ignores the filters of the plan.
func (e *Engine) ReadValues(ctx context.Context, plan *plan.Plan, attribute string, most int) (*Values, error) {
	stored, err := e.facts.StoredEvents(ctx, plan.Subject)
	if err != nil {
		return nil, err
	}
	found := &Values{SubjectIDs: plan.Subject.IDs(), Dimension: attribute, Values: []facts.Value{}}
	if through := stored.Ingested; through.Unix() > 0 {
		found.DataThrough = &through
	}
	values, err := e.facts.ReadValues(ctx, plan.Question, attribute)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		found.Visitors += v.Visitors
		if i < most {
			found.Values = append(found.Values, v)
		}
	}
	found.DistinctValues = int64(len(values))
	return found, nil
}

// rowGroup is the number of visitors of a row group. The writer keeps one group in memory.
const rowGroup = 50_000

// WriteVisitors writes a Parquet file with the visitors of a report. It writes nothing before it has read the first
// visitors. The error is an InvalidError, a StoreError, or the error of the context or of the writer. A file that is
// not complete has no footer, so it cannot be read.
func (e *Engine) WriteVisitors(ctx context.Context, p *plan.Plan, to io.Writer) error {
	if _, err := e.facts.AwaitNoted(ctx); err != nil {
		return err
	}
	return e.writeVisitors(ctx, e.AsOfFirstView(p).Question, to)
}

func (e *Engine) writeVisitors(ctx context.Context, q plan.Question, to io.Writer) error {
	rows := make([]facts.Visitor, 0, 1000)
	file := parquet.NewGenericWriter[facts.Visitor](to,
		parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Zstd))
	var failed error // not an error of the store
	write := func() error {
		_, failed = file.Write(rows)
		rows = rows[:0]
		return failed
	}
	err := e.facts.EachVisitor(ctx, q, func(v *facts.Visitor) error {
		rows = append(rows, *v)
		if len(rows) < cap(rows) {
			return nil
		}
		return write()
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return file.Close()
}
