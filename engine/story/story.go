// Package story puts in words how reports count one visitor: where the visitor counts, which events count, and why
// other events do not. The reasons are those of package fold, and of the plan of each report.
package story

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// Chapter explains how the report of a campaign, widget or experiment counts a visitor. The report has neither filters
// nor a window.
type Chapter struct {
	Subject schema.Subject
	Name    string // of the campaign, widget or experiment; empty: not declared, or unattributed goals
	Counts  bool   // the visitor is in the report
	Why     string // why the visitor is in the report, or is not
	First   *Line  // the first view; nil: none
	Lines   []*Line

	owned *catalogue.AccountResources // of the website
	keyOf func(schema.NamedID) string
}

// SubjectName returns the subject as text without its website. A campaign has its key, in quotes, or else its id.
func (c *Chapter) SubjectName() string { return c.nameSubject(c.Subject) }

func (c *Chapter) nameSubject(s schema.Subject) string {
	if s.Kind != schema.SubjectCampaign {
		return s.ShortName()
	}
	return "campaign " + c.nameOf(schema.NameCampaign, 0, s.ID)
}

// GoalName returns the key of a goal, in quotes, or else its id.
func (c *Chapter) GoalName(id int64) string { return c.nameOf(schema.NameGoal, 0, id) }

// VariationName returns the key of a variation of the subject, in quotes, or else its id.
func (c *Chapter) VariationName(id int64) string {
	if c.Subject.Kind != schema.SubjectCampaign {
		return strconv.FormatInt(id, 10)
	}
	return c.nameOf(schema.NameVariation, c.Subject.ID, id)
}

func (c *Chapter) nameOf(kind schema.NameKind, campaign, id int64) string {
	key := c.keyOf(schema.NamedID{WebsiteID: c.Subject.WebsiteID, Kind: kind, CampaignID: campaign, ID: id})
	if key == "" {
		return strconv.FormatInt(id, 10)
	}
	return strconv.Quote(key)
}

// Line is an event of a chapter. An unattributed goal that counts for the subject has the variation of the first view.
type Line struct {
	ingest.Accepted
	Counts  bool // the event counts in the report of its goal
	Why     string
	Arrival string // note that the event arrived late or before its time; empty: neither

	folded fold.Explained
}

// ExplainEvents explains all stored events of one visitor, including copies. It returns a chapter for each campaign,
// widget and experiment, and one for the unattributed goals of each website. A visitor with more than most events of a
// website is automated. kept are the books of the websites. asOf returns a plan as it was in force at the first view of
// its subject.
func ExplainEvents(
	arrived *ingest.OfVisitor, most int, known *catalogue.Snapshot, kept map[int64]*books.Book,
	asOf func(*plan.Plan) *plan.Plan,
) []*Chapter {
	x := &explanation{
		arrived: arrived, known: known, kept: kept, stored: map[*fold.Event]*ingest.Accepted{},
		chapters: map[schema.Subject]*Chapter{}, attributed: map[*fold.Event][]*Line{},
		orders: map[orderKey]*ingest.Accepted{},
	}
	for website, own := range x.eventsByWebsite() {
		account, _ := known.AccountOfWebsite(website)
		fold.ExplainVisitor(own, most, nil, func(found fold.Explained) { x.addLine(account, found) })
	}
	for _, c := range x.chapters {
		slices.SortFunc(c.Lines, compareLines)
		if c.Subject.Kind != schema.SubjectNone {
			c.explainReport(known, asOf)
		}
	}
	for _, c := range x.chapters {
		if c.Subject.Kind == schema.SubjectNone {
			c.explainUnattributed(x.attributed)
		}
	}
	return slices.SortedFunc(maps.Values(x.chapters), func(a, b *Chapter) int { return a.Subject.Compare(b.Subject) })
}

// explanation collects the chapters of a visitor.
type explanation struct {
	arrived    *ingest.OfVisitor
	known      *catalogue.Snapshot
	kept       map[int64]*books.Book            // by website
	stored     map[*fold.Event]*ingest.Accepted // as the events of the fold were read
	chapters   map[schema.Subject]*Chapter
	attributed map[*fold.Event][]*Line // of goals without an exposure, in the chapters that include them
	orders     map[orderKey]*ingest.Accepted
}

// orderKey identifies a row of a customer of a website that names no visitor.
type orderKey struct {
	website         int64
	customer        uint64
	goal            int64
	event, revision uint64
}

// storedAs returns an event as it was read. Rows of customers that the visitor gets are copies of those that were read.
func (x *explanation) storedAs(e *fold.Event) *ingest.Accepted {
	if e.Acquired == 0 {
		return x.stored[e]
	}
	return x.orders[orderKey{e.Subject.WebsiteID, e.Customer, e.Goal, e.ID, e.Revision}]
}

// eventsByWebsite returns the events as the fold reads them, and stores where each is from.
func (x *explanation) eventsByWebsite() map[int64][]fold.Event {
	ofWebsite := map[int64][]fold.Event{}
	storedOf := map[int64][]*ingest.Accepted{}
	for i := range x.arrived.Events {
		from := &x.arrived.Events[i]
		e := fold.Event{
			Subject: from.SubjectOf(), Visitor: from.VisitorID, ID: from.EventID, At: from.Time.UnixMilli(),
			Variation: from.VariationID, Kind: kinds[from.Kind], Goal: from.GoalID,
			Amounts:  [3]int64{from.Value, from.Profit, from.ExtraValue},
			Revision: from.Revision, Cancelled: from.Cancelled, Accepted: from.At.UnixMilli(), Version: from.Version,
			Attributes: from.Device + schema.AttributeSeparator + from.Country,
		}
		e.SetDetails(from.EncodeDetails(), &from.Details, x.kept[from.WebsiteID])
		ofWebsite[from.WebsiteID] = append(ofWebsite[from.WebsiteID], e)
		storedOf[from.WebsiteID] = append(storedOf[from.WebsiteID], from)
	}
	for website, own := range ofWebsite {
		own = x.addOrders(website, own)
		for i, from := range storedOf[website] {
			x.stored[&own[i]] = from
		}
		ofWebsite[website] = own
	}
	return ofWebsite
}

// addOrders appends the rows of the customers that the visitor's events of a website name.
func (x *explanation) addOrders(website int64, own []fold.Event) []fold.Event {
	var rows []fold.Event
	for i := range x.arrived.Orders {
		from := &x.arrived.Orders[i]
		if from.WebsiteID != website {
			continue
		}
		e := fold.Event{
			Subject: from.SubjectOf(), Visitor: own[0].Visitor, ID: from.EventID, At: from.Time.UnixMilli(),
			Kind: moments.Goal, Goal: from.GoalID, Revision: from.Revision,
			Amounts:   [3]int64{from.Value, from.Profit, from.ExtraValue},
			Cancelled: from.Cancelled, Accepted: from.At.UnixMilli(), Version: from.Version, OfCustomer: true,
			Buyer: from.VisitorID,
		}
		e.SetDetails(from.EncodeDetails(), &from.Details, x.kept[website])
		rows = append(rows, e)
		key := orderKey{website, e.Customer, e.Goal, e.ID, e.Revision}
		if isFirst := x.orders[key] == nil; isFirst && e.Buyer == 0 { // the first copy counts
			x.orders[key] = from
		}
	}
	return append(own, rows...)
}

// addLine adds an event to the chapter of its subject, with what the fold alone says of it.
func (x *explanation) addLine(account int64, found fold.Explained) {
	line := &Line{Accepted: *x.storedAs(found.Event), folded: found}
	line.Arrival = arrivalInWords(line.At.Sub(line.Time))
	c := x.chapters[found.Subject]
	if c == nil {
		c = &Chapter{Subject: found.Subject, owned: x.known.AccountResources(account), keyOf: x.arrived.KeyOf}
		x.chapters[found.Subject] = c
	}
	c.Lines = append(c.Lines, line)
	isUnattributed := found.Subject != found.Event.Subject
	switch {
	case found.Reason == fold.Copied:
		line.Why = copyInWords(&line.Accepted, x.stored[found.Basis])
	case found.Reason == fold.Superseded:
		line.Why = "superseded by " + revisionName(found.Basis)
	case found.Reason == fold.Cancelled:
		line.Why = "cancelled by " + revisionName(found.Event)
		if isUnattributed && found.Basis != nil {
			line.VariationID = found.Basis.Variation
		}
	case found.Reason == fold.FirstView:
		c.First = line
	case isUnattributed && found.Variation != "":
		line.VariationID = found.Basis.Variation
		x.attributed[found.Event] = append(x.attributed[found.Event], line)
	}
}

// arrivalInWords says that an event arrived late, or before its time; empty: neither.
func arrivalInWords(late time.Duration) string {
	switch {
	case late > lateAfter:
		return formatDuration(late) + " late"
	case late < -time.Minute:
		return formatDuration(-late) + " before its time: check the sender's clock"
	}
	return ""
}

// copyInWords says of which event, that counts, another is a copy.
func copyInWords(copied, counted *ingest.Accepted) string {
	arrival := "of an event that arrived before, " + formatTime(counted.At)
	if !reflect.DeepEqual(copied.Event, counted.Event) {
		return "a copy, with other content, " + arrival + "; the first arrival counts"
	}
	return "a copy " + arrival
}

// kinds are the kinds of events as the fold reads them.
var kinds = map[schema.Kind]moments.Kind{
	schema.KindView: moments.View, schema.KindClick: moments.Click, schema.KindSubmit: moments.Submit,
	schema.KindCompletion: moments.Completion, schema.KindConversion: moments.Conversion,
	schema.KindContact: moments.Contact, schema.KindGoal: moments.Goal,
}

// revisionName returns the revision of an event as text.
func revisionName(e *fold.Event) string {
	name := fmt.Sprint("revision ", e.Revision)
	if e.Subject.Kind == schema.SubjectNone {
		name += ", sent without an exposure"
	}
	return name
}

// compareLines orders events by time, and at the same time views first. After them come the copies, by arrival.
func compareLines(a, b *Line) int {
	switch copied := b.folded.Reason == fold.Copied; {
	case copied != (a.folded.Reason == fold.Copied):
		return cmp.Compare(b.folded.Reason, a.folded.Reason) // Copied is the least
	case copied:
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(b.Version, a.Version), cmp.Compare(a.EventID, b.EventID))
	}
	x, y := min(a.folded.Event.Kind, moments.Click), min(b.folded.Event.Kind, moments.Click)
	byID := cmp.Or(cmp.Compare(a.VariationID, b.VariationID), cmp.Compare(a.EventID, b.EventID))
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(x, y), byID)
}

// explainReport explains how the report of the subject counts the visitor.
func (c *Chapter) explainReport(known *catalogue.Snapshot, asOf func(*plan.Plan) *plan.Plan) {
	p, err := plan.New(plan.ResultsRequest(c.owned.ID, c.Subject), c.owned)
	if err != nil {
		named := catalogue.NewEventNames(c.keyOf)
		e := schema.Event{WebsiteID: c.Subject.WebsiteID, Subject: c.Subject.Kind, SubjectID: c.Subject.ID}
		e.ExperimentID = c.Subject.ExperimentID
		named.AddRows(&e, 1)
		for _, u := range known.UndeclaredNames(named) {
			c.Why = u.Detail
		}
		p = nil
	} else {
		p = asOf(p)
		c.explainVisitor(p)
	}
	for _, l := range c.Lines {
		if l.folded.Reason == fold.AutomatedVisitor {
			c.Why = "the visitor has more events on the website than people have, and so is automated and in no report"
		}
		if l.folded.Reason > fold.Cancelled {
			l.Counts, l.Why = c.explainEvent(l, p)
			if l.folded.Event.Foreign != "" && l.Counts {
				l.Why += "; " + c.worthInWords(l)
			}
			if l.folded.At != l.Time.UnixMilli() {
				l.Why += "; its time is the earliest of its revisions, " + formatTime(time.UnixMilli(l.folded.At))
			}
		}
	}
}

// worthInWords says what a goal in another currency than the website's is worth.
func (c *Chapter) worthInWords(l *Line) string {
	code := l.folded.Event.Foreign
	own := c.owned.Websites[c.Subject.WebsiteID].Currency
	x, isKnown := l.folded.FindExchange()
	worth := l.folded.Worth()
	switch {
	case own == "":
		return "the website has no currency, so no sum has amounts in " + code
	case isKnown && worth.IsKnown:
		return fmt.Sprintf("it counts as %s %s, at %s %s for 1 %s", schema.FormatUnits(worth.Amounts[0]), own,
			x.PriceInWords(), code, own)
	case isKnown:
		return fmt.Sprintf("at %s %s for 1 %s, an amount is above the limit, so no sum has the amounts",
			x.PriceInWords(), code, own)
	}
	return fmt.Sprintf("there is no rate of %s to %s of the days before it, so no sum has the amounts", code, own)
}

// explainVisitor says whether the visitor is in the report, and why.
func (c *Chapter) explainVisitor(p *plan.Plan) {
	c.Name = c.owned.Widgets[c.Subject.ID].Name
	if c.Subject.Kind == schema.SubjectCampaign {
		c.Name = c.owned.Campaigns[c.Subject.ID].Name
	}
	if c.First == nil {
		c.Why = "without a view, the visitor is in no report"
		return
	}
	isMulti := fold.IsMultiExposed(c.First.folded.Variation)
	at := p.IndexOfVariation(c.First.VariationID)
	switch {
	case isMulti && p.MultipleExposures == catalogue.ExcludeMultiExposed:
		var seen []string // variations
		for _, l := range c.Lines {
			id := c.VariationName(l.VariationID)
			isView := l.Kind == schema.KindView && l.folded.Reason != fold.Copied
			if isView && !slices.Contains(seen, id) {
				seen = append(seen, id)
			}
		}
		last := len(seen) - 1
		shown := strings.Join(seen[:last], ", ") + " and " + seen[last]
		c.Why = fmt.Sprintf("the visitor saw the variations %s; multi-exposed visitors are excluded", shown)
	case at < 0:
		c.Why = fmt.Sprintf("the first view is of variation %s, which the report does not have",
			c.VariationName(c.First.VariationID))
	default:
		label := c.VariationName(c.First.VariationID)
		if name := p.Variations[at].Name; name != "" {
			label += fmt.Sprintf(" (%s)", name)
		}
		c.Counts = true
		c.Why = "the visitor counts for variation " + label + " since the first view, " + formatTime(c.First.Time)
	}
}

// explainEvent returns whether an event counts, and why. p is nil if the subject is not declared.
func (c *Chapter) explainEvent(l *Line, p *plan.Plan) (counts bool, why string) {
	if why := c.explainExclusion(l, p); why != "" {
		return false, why
	}
	if l.folded.Reason == fold.FirstView {
		return true, "the first view"
	}
	why = "after the first view"
	switch acquired := l.folded.Event.Acquired; {
	case acquired > 0:
		why = "an order without a visitor, whose customer an order of this visitor won at " +
			formatTime(time.UnixMilli(acquired))
	case acquired < 0:
		why = "a revision without a visitor of an order of this visitor"
	}
	if l.Kind == schema.KindGoal && p.GoalID == 0 {
		why += "; the report counts all goals"
	} else if l.Kind == schema.KindGoal && p.GoalID != l.GoalID {
		why = fmt.Sprintf("in reports of goal %s; the primary goal is %s", c.GoalName(l.GoalID), c.GoalName(p.GoalID))
	}
	if l.VariationID != c.First.VariationID {
		why += fmt.Sprintf("; the event names variation %s, but the variation of the first view counts",
			c.VariationName(l.VariationID))
	}
	return true, why
}

// explainExclusion returns why an event does not count; empty: it counts.
func (c *Chapter) explainExclusion(l *Line, p *plan.Plan) string {
	switch {
	case p == nil:
		return c.SubjectName() + " is not declared"
	case l.folded.Reason == fold.AutomatedVisitor:
		return automatedVisitor
	case l.folded.Reason == fold.WithoutView:
		return "the visitor has no view"
	case l.folded.Reason == fold.BeforeFirstView:
		return "before the first view, " + formatTime(c.First.Time)
	case l.folded.Reason == fold.AcquiredBefore:
		return "an order without a visitor, whose customer was won before the first view, " + formatTime(c.First.Time)
	}
	isOtherView := l.Kind == schema.KindView && l.VariationID != c.First.VariationID
	isOtherGoal := l.Kind == schema.KindGoal && c.owned.Goals[l.GoalID].WebsiteID != l.WebsiteID
	switch {
	case !c.Counts && isOtherView:
		return fmt.Sprintf("a view of another variation than the first view, %s",
			c.VariationName(c.First.VariationID))
	case !c.Counts:
		return "the visitor is not in the report"
	case isOtherGoal && p.GoalID != 0:
		return fmt.Sprintf("goal %s is not declared for website %d", c.GoalName(l.GoalID), l.WebsiteID)
	}
	return ""
}

// explainUnattributed explains goals without an exposure. attributed has their lines in the chapters that include them.
func (c *Chapter) explainUnattributed(attributed map[*fold.Event][]*Line) {
	c.Why = "goals that name no campaign or widget"
	for _, l := range c.Lines {
		var names []string // of the subjects
		for _, other := range attributed[l.folded.Event] {
			names = append(names, c.nameSubject(other.folded.Subject))
			l.Counts = l.Counts || other.Counts
		}
		slices.Sort(names)
		switch {
		case l.folded.Reason <= fold.Cancelled: // explained already
		case l.folded.Reason == fold.AutomatedVisitor:
			l.Why = automatedVisitor
		case c.owned.Goals[l.GoalID].WebsiteID != l.WebsiteID:
			l.Why = fmt.Sprintf("goal %s is not declared for website %d", c.GoalName(l.GoalID), l.WebsiteID)
		case len(names) > 0:
			l.Why = "attributed to " + strings.Join(names, ", ")
		default:
			l.Why = "no campaign or widget was seen before it"
		}
	}
}

const automatedVisitor = "the visitor is automated"

// lateAfter is the time from which an event is called late.
const lateAfter = time.Hour

// formatDuration writes a duration of at least a minute in its largest unit.
func formatDuration(d time.Duration) string {
	n := int(d / time.Minute)
	unit := "minute"
	if d >= 24*time.Hour {
		n = int(d / (24 * time.Hour))
		unit = "day"
	} else if d >= time.Hour {
		n = int(d / time.Hour)
		unit = "hour"
	}
	if n > 1 {
		unit += "s"
	}
	return fmt.Sprint(n, " ", unit)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.DateTime) }
