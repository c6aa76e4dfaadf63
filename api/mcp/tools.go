package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/calculator"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/story"
	"lifthouse/engine/tables"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"
	"lifthouse/stats"
)

// The maximum sizes in bytes of JSON: of an answer of get_result without details, and of texts in answers.
const (
	maxAnswer   = 2 << 10
	maxSentence = 400
	longName    = 60
	shortName   = 24
)

// experiment identifies a campaign or an experiment of a widget.
type experiment struct {
	schema.SubjectIDs
	WebsiteID int64  `json:"websiteId"`
	Name      string `json:"name"`
}

func newExperiment(owned *catalogue.AccountResources, subject schema.Subject, nameSize int) experiment {
	name := owned.Widgets[subject.ID].Name
	if subject.Kind == schema.SubjectCampaign {
		name = owned.Campaigns[subject.ID].Name
	}
	return experiment{subject.IDs(), subject.WebsiteID, shortenText(name, nameSize)}
}

type listArguments struct {
	WebsiteID int64 `json:"websiteId,omitempty" jsonschema:"id of a website; default: all websites"`
	Active    bool  `json:"active,omitempty" jsonschema:"true: only running ones; false: only stopped ones; default: all"`
	Offset    int   `json:"offset,omitempty" jsonschema:"number of items to skip"`
	Limit     int   `json:"limit,omitempty" jsonschema:"maximum number of items: 1 to 200; default 50"`
}

// searchedWebsite returns what the caller owns, and the website of the arguments or of the caller; 0: all. The error
// has the faults of all arguments that were read before.
func (s *Server) searchedWebsite(c Caller, a *arguments) (*catalogue.AccountResources, int64, error) {
	asked := a.ID("websiteId")
	if err := a.Err(); err != nil {
		return nil, 0, err
	}
	owned := s.catalogue.Snapshot().AccountResources(c.AccountID)
	website, err := results.SearchedWebsite(owned, c.WebsiteID, asked)
	return owned, website, err
}

type listed struct {
	experiment
	Active   bool   `json:"active"`
	Sentence string `json:"sentence"`
	*result.ListedStatus
}

// listExperiments returns campaigns and experiments of widgets, ordered by id, with their last computed decisions.
func (s *Server) listExperiments(ctx context.Context, c Caller, a *arguments) (any, error) {
	active := a.OneOf("active", []string{"true", "false"})
	offset, limit := a.ParseInteger("offset", 0, 1<<31-1, 0), a.ParseInteger("limit", 1, 200, 50)
	owned, website, err := s.searchedWebsite(c, a)
	if err != nil {
		return nil, err
	}
	all, subjects := []listed{}, []schema.Subject{}
	add := func(subject schema.Subject, running bool) {
		isAsked := active == "" || (active == "true") == running
		isOfWebsite := website == 0 || website == subject.WebsiteID
		if isAsked && isOfWebsite {
			all = append(all, listed{experiment: newExperiment(owned, subject, longName), Active: running})
			subjects = append(subjects, subject)
		}
	}
	for _, of := range catalogue.ByID(owned.Campaigns) {
		add(of.Subject(), of.Active)
	}
	for _, of := range catalogue.ByID(owned.Widgets) {
		for _, e := range of.Experiments {
			add(of.Subject(e.ID), of.Active && e.Active)
		}
	}
	from, to := min(offset, len(all)), min(offset+limit, len(all))
	for i, summary := range s.summaries.LastSummaries(ctx, c.AccountID, subjects[from:to]) {
		l := &all[from+i]
		l.ListedStatus = summary.ListedStatus(l.Active)
		switch {
		case l.ComputedAt == nil:
			l.Sentence = l.Name + ": the decision is not computed yet; call again in a few seconds."
			continue
		case l.Decision == nil:
			l.Sentence = l.Name + ": there is nothing to compare."
			continue
		}
		l.Sentence = fmt.Sprintf("%s: %s %s visitors in %d full days", l.Name,
			shortenText(l.Decision.Text, maxSentence), wording.FormatCount(*l.Visitors), *l.Days)
		if l.Lift != nil && l.Lift.Value != nil {
			l.Sentence += ", lift " + wording.FormatLift(*l.Lift.Value, l.Lift.Interval)
		}
		l.Sentence += "."
	}
	return map[string]any{"total": len(all), "experiments": all[from:to]}, nil
}

type undeclaredArguments struct {
	WebsiteID int64 `json:"websiteId,omitempty" jsonschema:"id of a website; default: all websites"`
}

// listUndeclared returns the campaigns in the events that the catalogue does not declare.
func (s *Server) listUndeclared(ctx context.Context, c Caller, a *arguments) (any, error) {
	owned, website, err := s.searchedWebsite(c, a)
	if err != nil {
		return nil, err
	}
	found, err := results.RunAdmitted(ctx, s.results, func(ctx context.Context) ([]engine.Discovered, error) {
		all, err := s.engine.Discover(ctx, owned)
		return all, source.StoreFailure(ctx, err)
	})
	found = slices.DeleteFunc(found,
		func(d engine.Discovered) bool { return website != 0 && d.WebsiteID != website })
	return map[string]any{"total": len(found), "undeclared": found[:min(len(found), 20)]}, err
}

// reportArguments select a report. Their names and values are those of the API.
type reportArguments struct {
	CampaignID       idOrKey  `json:"campaignId,omitempty" jsonschema:"id or key of a campaign; give either campaignId, or widgetId and experimentId"`
	WidgetID         int64    `json:"widgetId,omitempty" jsonschema:"id of a widget"`
	ExperimentID     int64    `json:"experimentId,omitempty" jsonschema:"id of an experiment of the widget"`
	WebsiteID        int64    `json:"websiteId,omitempty" jsonschema:"id of the only website to search"`
	Goal             idOrKey  `json:"goal,omitempty" jsonschema:"id or key of a goal; default: the primary goal, the only one with a conclusion"`
	CompareMetric    string   `json:"compareMetric,omitempty" jsonschema:"such as valuePerVisitor; default: the declared metric, the only one with a conclusion"`
	ConversionWindow string   `json:"conversionWindow,omitempty" jsonschema:"age of the events that count since the first view, such as 7d, 72h, 7d..14d or none; default: that of the goal, the only one with a conclusion"`
	Filters          []string `json:"filters,omitempty" jsonschema:"filters of visitors, such as country=US or dateFrom=2026-05-01; a filtered report has no conclusion"`
}

type resultArguments struct {
	reportArguments
	Details bool `json:"details,omitempty" jsonschema:"true: add the whole report, with all goals, metrics and looks, as a table and as JSON"`
}

type breakdownArguments struct {
	reportArguments
	Dimension string `json:"dimension" jsonschema:"attribute of the first view"`
	Limit     int    `json:"limit,omitempty" jsonschema:"maximum number of values, the most visited first: 1 to 51; default 10"`
}

// reportAnswer is the answer of get_result and break_down.
type reportAnswer struct {
	experiment
	Decision    result.DecisionStatus `json:"decision,omitempty"` // empty: the report describes
	VariationID *int64                `json:"variationId,omitempty"`
	Reasons     []stats.Reason        `json:"reasons,omitempty"`
	Next        string                `json:"next,omitempty"`
	Sentences   []string              `json:"sentences"`
	Omitted     int                   `json:"omitted,omitempty"` // variations or values
	Warnings    []result.WarningCode  `json:"warnings,omitempty"`
	DataThrough *time.Time            `json:"dataThrough"`
	Stale       bool                  `json:"stale,omitempty"` // accepted events wait, or the store does not answer
	Table       string                `json:"table,omitempty"`
	Report      json.RawMessage       `json:"report,omitempty"` // of /v1
}

// getResult returns the decision and the figures behind it. Without details, it shortens names and omits variations
// until the answer is small enough.
func (s *Server) getResult(ctx context.Context, c Caller, a *arguments) (any, error) {
	detailed := a.OneOf("details", []string{"true", "false"}) == "true"
	r, of, body, err := s.readReport(ctx, c, a, url.Values{"scorecard": {"true"}})
	if err != nil {
		return nil, err
	}
	answer := newResultAnswer(r, of, longName, len(r.Variations))
	if detailed {
		answer.Table = render.Report(r, render.Screen{Width: render.MaxWidth})
		answer.Report = body
		return answer, nil
	}
	for shown := len(r.Variations); shown >= 0; shown-- {
		if text, err := render.JSON(answer); err != nil || len(text) <= maxAnswer {
			return answer, err
		}
		answer = newResultAnswer(r, of, shortName, shown)
	}
	return answer, nil
}

// readReport returns the report of a call, its subject, and its body as /v1 returns it.
func (s *Server) readReport(ctx context.Context, c Caller, a *arguments,
	parameters url.Values,
) (r *result.Report, named experiment, body []byte, err error) {
	// The request of a report, with further parameters of the API. The error has all faults.
	campaign, widget, experimentID := a.ID("campaignId"), a.ID("widgetId"), a.ID("experimentId")
	operation := query.CampaignResults
	var unclear, unreadable error
	if campaign == 0 {
		operation = query.ExperimentResults
	}
	if (campaign != 0) == (widget != 0) || (widget != 0) != (experimentID != 0) {
		unclear = invalidArgument("campaignId", a.values.Get("campaignId"),
			"must be given alone, or else widgetId and experimentId")
	}
	for _, name := range []string{"websiteId", "goal", "compareMetric", "dimension"} {
		if given := a.values[name]; given != nil {
			parameters[name] = given
		}
	}
	for _, filter := range a.values["filters"] {
		name, value, found := strings.Cut(filter, "=")
		if !found {
			const detail = "must be name=value, such as country=US; country= selects visitors without a country"
			unreadable = errors.Join(unreadable, invalidArgument("filters", filter, detail))
			continue
		}
		parameters.Add("filters["+name+"]", value)
	}
	request, err := query.ParseReport(operation, parameters.Encode())
	request.SubjectID = cmp.Or(campaign, widget)
	request.ExperimentID = experimentID
	err = errors.Join(unclear, unreadable, a.Err(), err)
	owned := s.catalogue.Snapshot().AccountResources(c.AccountID)
	if err != nil {
		return nil, named, nil, err
	}
	q, err := s.results.ReportQuery(ctx, request, nil, owned, c.WebsiteID, results.JSON)
	if err != nil {
		return nil, named, nil, err
	}
	found, err := s.results.AnswerQuery(ctx, q, false, nil)
	if err != nil {
		return nil, named, nil, err
	}
	r = &result.Report{}
	return r, newExperiment(owned, q.Plan.Subject, longName), found.Body, json.Unmarshal(found.Body, r)
}

// newResultAnswer returns an answer with some of the variations: control, that of the decision, then the others.
func newResultAnswer(r *result.Report, named experiment, nameSize, shown int) *reportAnswer {
	named.Name = shortenText(named.Name, nameSize)
	a := &reportAnswer{
		experiment: named, Reasons: r.Conclusion.Reasons, Omitted: len(r.Variations) - shown,
		DataThrough: r.DataThrough, Stale: r.Stale,
	}
	a.Next = "This report describes: omit goal, compareMetric and filters for a decision."
	rank := map[int64]int{}
	if d := r.Decision; d != nil {
		a.Decision = d.Status
		a.VariationID = d.VariationID
		a.Next = d.NextStep()
		a.Reasons = nil
		for _, reason := range d.Reasons {
			a.Reasons = append(a.Reasons, reason.Code)
		}
		if r.NextLook != nil {
			a.Next += " The " + r.NextLook.InWords() + "."
		}
		a.Sentences = append(a.Sentences, shortenText(d.Text, maxSentence))
		if d.VariationID != nil {
			rank[*d.VariationID] = -1
			if item := r.WorthOf(*d.VariationID); item != nil && item.Text != "" {
				a.Sentences = append(a.Sentences, item.InWords())
			}
		}
	}
	// else the decision repeats the conclusion
	if r.Decision == nil || !strings.Contains(strings.ToLower(r.Decision.Text), strings.ToLower(r.Conclusion.Text)) {
		a.Sentences = append(a.Sentences, shortenText(r.Conclusion.Text, maxSentence))
	}
	if cause := r.Checks.SplitCause; cause != nil {
		a.Sentences = append(a.Sentences, shortenText(cause.Text, maxSentence))
	}
	for _, other := range r.Checks.Interactions {
		a.Sentences = append(a.Sentences, shortenText(other.Text, maxSentence))
	}
	for i := range r.FollowUp {
		a.Sentences = append(a.Sentences, shortenText(r.FollowUp[i].Text, maxSentence))
	}
	if len(r.FollowUp) > 0 {
		a.Sentences = append(a.Sentences, result.MeaningOfFollowUp)
	}
	a.Reasons = slices.Compact(slices.Sorted(slices.Values(a.Reasons)))
	for _, w := range r.Checks.Warnings {
		a.Warnings = append(a.Warnings, w.Code)
	}
	order := slices.Clone(r.Variations)
	if len(order) > 0 {
		rank[order[0].ID] = -2
	}
	slices.SortStableFunc(order, func(x, y result.VariationResults) int { return rank[x.ID] - rank[y.ID] })
	a.Sentences = append(a.Sentences, newQuoter(r, nameSize).quoteVariations(order[:shown])...)
	return a
}

// breakDown returns sentences about each value of a dimension.
func (s *Server) breakDown(ctx context.Context, c Caller, a *arguments) (any, error) {
	limit := a.ParseInteger("limit", 1, plan.MaxBreakdown+1, 10) // with "(other)"
	if a.values["dimension"] == nil {
		a.values.Set("dimension", "") // an invalid value
	}
	r, of, _, err := s.readReport(ctx, c, a, url.Values{})
	if err != nil {
		return nil, err
	}
	answer := &reportAnswer{
		experiment: of, Omitted: max(len(r.Breakdown)-limit, 0), DataThrough: r.DataThrough,
		Stale: r.Stale, Sentences: []string{
			"A breakdown only describes: the decision is about all visitors. More breakdowns mean more false " +
				"positives.",
		},
	}
	if r.Heterogeneity != nil && !isInvalid(r.Conclusion) {
		answer.Sentences = append(answer.Sentences, r.Heterogeneity.Text)
	}
	q := newQuoter(r, longName)
	if q.invalid {
		answer.Sentences = append(answer.Sentences, shortenText(r.Conclusion.Text, maxSentence))
	}
	for i := range r.Breakdown[:len(r.Breakdown)-answer.Omitted] {
		slice := &r.Breakdown[i]
		q.prefix = fmt.Sprintf("%s %s: ", *r.Dimension, shortenText(slice.Value, longName))
		q.invalid = isInvalid(r.Conclusion) || isInvalid(slice.Conclusion)
		if isInvalid(slice.Conclusion) {
			answer.Sentences = append(answer.Sentences, q.prefix+shortenText(slice.Conclusion.Text, maxSentence))
		}
		answer.Sentences = append(answer.Sentences, q.quoteVariations(slice.Variations)...)
	}
	return answer, nil
}

type worthArguments struct {
	WebsiteID int64   `json:"websiteId,omitempty" jsonschema:"id of a website; default: the only one"`
	Goal      idOrKey `json:"goal,omitempty" jsonschema:"id or key of a goal; default: that of most campaigns"`
	From      string  `json:"from,omitempty" jsonschema:"first day of shipping that counts, such as 2026-01-01"`
	To        string  `json:"to,omitempty" jsonschema:"last day of shipping that counts"`
}

// getWorth returns what the shipped variations of a website are worth together.
func (s *Server) getWorth(ctx context.Context, c Caller, a *arguments) (any, error) {
	asked := query.ReadProgramme(a.Parameters)
	_, website, err := s.onlyWebsite(c, a)
	if err != nil {
		return nil, err
	}
	asked.WebsiteID = website
	found, err := results.RunAdmitted(ctx, s.results,
		func(ctx context.Context) (*worth.Programme, error) { return s.engine.ReadProgramme(ctx, asked) })
	if err != nil {
		return nil, err
	}
	sentences := found.Sentences
	for i := range found.Items {
		if item := &found.Items[i]; item.Shipped && len(sentences) < 20 {
			shown := result.NewWorthItem(&item.Item, found.Currency)
			sentences = append(sentences, fmt.Sprintf("%s: %s, shipped on %s. %s", shortenText(item.Campaign, longName),
				shortenText(item.Name, shortName), item.Outcome.Date, shown.InWords()))
		}
	}
	return map[string]any{
		"websiteId": website, "sentences": sentences, "total": found.Total,
		"campaigns": found.Campaigns,
	}, nil
}

// onlyWebsite is like searchedWebsite, but returns the only website of the caller if none is given. With several, one
// must be given.
func (s *Server) onlyWebsite(c Caller, a *arguments) (*catalogue.AccountResources, int64, error) {
	owned, website, err := s.searchedWebsite(c, a)
	if err != nil || website != 0 {
		return owned, website, err
	}
	ids := slices.Sorted(maps.Keys(owned.Websites))
	if len(ids) == 1 {
		return owned, ids[0], nil
	}
	detail := fmt.Sprintf("the account has %d websites; name one of them: %s", len(ids),
		strings.Trim(fmt.Sprint(ids), "[]"))
	return nil, 0, query.InvalidParameters(faults.Fault{Name: "websiteId", Detail: detail})
}

type logArguments struct {
	CampaignID   idOrKey `json:"campaignId,omitempty" jsonschema:"id or key of a campaign; default: all"`
	WidgetID     int64   `json:"widgetId,omitempty" jsonschema:"id of a widget"`
	ExperimentID int64   `json:"experimentId,omitempty" jsonschema:"id of an experiment of the widget"`
	WebsiteID    int64   `json:"websiteId,omitempty" jsonschema:"id of a website; default: all websites"`
	Entry        string  `json:"entry,omitempty" jsonschema:"kind of the entries: decision, check, look, outcome, started, stopped, shares, plan, archived, readout, note or annotation; default: all"`
	Since        string  `json:"since,omitempty" jsonschema:"only entries that were written since this time, such as 2026-11-01T00:00:00Z"`
	After        string  `json:"after,omitempty" jsonschema:"next of the answer before, for the entries that follow"`
	Limit        int     `json:"limit,omitempty" jsonschema:"maximum number of entries, the latest first: 1 to 200; default 20"`
}

// logEntry is an entry of the log.
type logEntry struct {
	experiment
	At        string     `json:"at"`
	By        string     `json:"by,omitempty"`
	Entry     string     `json:"entry"`
	Status    string     `json:"status,omitempty"`
	Text      string     `json:"text"`
	StartsAt  *time.Time `json:"startsAt,omitempty"`
	EndsAt    *time.Time `json:"endsAt,omitempty"`
	Withdrawn bool       `json:"withdrawn,omitempty"`
}

// getLog returns who decided what, the latest entries first.
func (s *Server) getLog(ctx context.Context, c Caller, a *arguments) (any, error) {
	const most, usual = 200, 20
	asked := a.ReadLog(tables.EntryKinds, time.Now(), most, usual)
	owned, website, err := s.searchedWebsite(c, a)
	if err != nil {
		return nil, err
	}
	asked.WebsiteID = website
	entries, err := s.results.ReadLog(ctx, s.tables, owned, asked)
	if err != nil {
		return nil, err
	}
	page, next := asked.Page(len(entries), func(i int) query.LogKey { return entries[i].Key() })
	shown := []logEntry{}
	for i := range entries[page.From:page.To] {
		shown = append(shown, newLogEntry(&entries[page.From+i]))
	}
	answer := map[string]any{"total": len(entries), "entries": shown}
	if next != "" {
		answer["next"] = next
	}
	return answer, nil
}

func newLogEntry(e *tables.Entry) logEntry {
	shown := logEntry{
		experiment: experiment{WebsiteID: e.WebsiteID, Name: shortenText(e.Name, longName)},
		At:         query.FormatInstant(e.At), By: shortenText(e.By, longName), Entry: e.Kind, Status: e.Status,
		Text: shortenText(e.Text, maxSentence), StartsAt: e.StartsAt, EndsAt: e.EndsAt, Withdrawn: e.WithdrawnAt != nil,
	}
	shown.SubjectIDs = e.SubjectIDs
	return shown
}

type planArguments struct {
	WebsiteID         int64   `json:"websiteId,omitempty" jsonschema:"id of a website; default: the only one"`
	Campaign          int64   `json:"campaign,omitempty" jsonschema:"id of a campaign whose rules count; only visitorsPerDay may be given with it"`
	Goal              idOrKey `json:"goal,omitempty" jsonschema:"id or key of the primary goal; default: that of most campaigns"`
	Metric            string  `json:"metric,omitempty" jsonschema:"primary metric, such as valuePerVisitor; default: goalConversionRate"`
	Traffic           int     `json:"traffic,omitempty" jsonschema:"share of all traffic that takes part, in percent; default: that of the campaign from which visitors are estimated"`
	VisitorsPerDay    int     `json:"visitorsPerDay,omitempty" jsonschema:"visitors of the website a day; default: estimated from the campaign of the goal with most visitors in the last 56 full days"`
	Share             []int   `json:"share,omitempty" jsonschema:"shares of the variations in percent with the sum 100, control first; default: 50 and 50"`
	Methodology       string  `json:"methodology,omitempty" jsonschema:"frequentist or bayesian; default: frequentist"`
	SignificanceLevel int     `json:"significanceLevel,omitempty" jsonschema:"80, 90 or 95; default 95"`
	Power             int     `json:"power,omitempty" jsonschema:"chance to find the minimum effect, in percent: 60 to 99; default 80"`
	MDE               float64 `json:"mde,omitempty" jsonschema:"minimum effect in percent: 1 to 100; default 20"`
}

// planExperiment returns what experiments of several lengths on a website would find.
func (s *Server) planExperiment(ctx context.Context, c Caller, a *arguments) (any, error) {
	asked := query.ReadOutlook(a.Parameters)
	owned, website, err := s.onlyWebsite(c, a)
	if err != nil {
		return nil, err
	}
	if err := results.CheckGoal(owned, website, asked.GoalID); err != nil {
		return nil, err
	}
	asked.WebsiteID = website
	return results.RunAdmitted(ctx, s.results,
		func(ctx context.Context) (*result.Outlook, error) { return s.engine.ReadOutlook(ctx, asked) })
}

type visitorArguments struct {
	Visitor   string `json:"visitor" jsonschema:"id of the visitor as it was sent; upper and lower case differ"`
	WebsiteID int64  `json:"websiteId,omitempty" jsonschema:"id of a website; default: all websites"`
}

// explainVisitor returns how the reports of the caller's websites count a visitor.
func (s *Server) explainVisitor(ctx context.Context, c Caller, a *arguments) (any, error) {
	visitor, given := a.SingleValue("visitor")
	if len(a.List) == 0 && (!given || visitor == "") {
		a.Add("visitor", visitor, "must be the id of a visitor")
	}
	owned, website, err := s.searchedWebsite(c, a)
	if err != nil {
		return nil, err
	}
	// no website at all would mean all websites
	websites := append(slices.Collect(maps.Keys(owned.Websites)), query.NoID)
	if website != 0 {
		websites = []int64{website}
	}
	found, err := results.RunAdmitted(ctx, s.results, func(ctx context.Context) (*ingest.OfVisitor, error) {
		of, err := s.journal.ReadVisitor(ctx, visitor, websites, s.engine.MaxVisitorEvents()+1)
		return of, source.StoreFailure(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	sentences, reasons := []string{}, []string{}
	for _, chapter := range story.ExplainEvents(found, s.engine.MaxVisitorEvents(),
		s.catalogue.Snapshot(), s.engine.Books(), s.engine.AsOfFirstView) {
		title := fmt.Sprintf("Website %d, %s: ", chapter.Subject.WebsiteID, chapter.SubjectName())
		counted := 0
		for _, l := range chapter.Lines {
			if l.Counts {
				counted++
				continue
			}
			reasons = append(reasons, fmt.Sprintf("%s%s of %s does not count: %s.", title, l.Kind,
				l.Time.UTC().Format(time.DateTime), shortenText(l.Why, maxSentence)))
		}
		sentences = append(sentences,
			fmt.Sprintf("%s%s; %d of %d events count.", title, shortenText(chapter.Why, maxSentence),
				counted, len(chapter.Lines)))
	}
	for _, r := range found.Rejects {
		if slices.Contains(websites, r.WebsiteID) {
			reasons = append(reasons, fmt.Sprintf("Website %d: a line was rejected at %s: %s.", r.WebsiteID,
				r.Time.UTC().Format(time.DateTime), shortenText(r.Reason, maxSentence)))
		}
	}
	if len(found.Events) == 0 {
		sentences = append(sentences, "No event of this visitor is stored.")
	}
	more := max(len(reasons)-30, 0)
	return map[string]any{
		"visitor":   shortenText(visitor, longName),
		"sentences": append(sentences, reasons[:len(reasons)-more]...), "moreSentences": more, "limited": found.Limited,
	}, nil
}

// compareArguments are those of the calculator, which checks them.
type compareArguments struct {
	Metric            string           `json:"metric" jsonschema:"binary or mean"`
	Variations        []map[string]any `json:"variations" jsonschema:"2 to 21 variations with n and converted (binary), or n, mean and variance of one visitor's value (mean); optional: id, control, share; the first is control"`
	SignificanceLevel int              `json:"significanceLevel,omitempty" jsonschema:"80, 90, 95 or 100 per cent; default 90"`
	Methodology       string           `json:"methodology,omitempty" jsonschema:"frequentist or bayesian; default frequentist"`
	Power             int              `json:"power,omitempty" jsonschema:"60 to 99 per cent; default 80"`
	MDE               float64          `json:"mde,omitempty" jsonschema:"minimum detectable effect, 1 to 100 per cent of control; default 20"`
	PlannedDays       int              `json:"plannedDays,omitempty" jsonschema:"days to the planned end; default 28"`
	PlannedVisitors   int64            `json:"plannedVisitors,omitempty" jsonschema:"visitors at the planned end, in place of days"`
	Looks             []map[string]any `json:"looks,omitempty" jsonschema:"sums at the end of each week, in order: days (or tau, a fraction of the plan), and variations with n and converted, or n, mean and variance"`
	Prior             any              `json:"prior,omitempty" jsonschema:"prior of lifts for bayesian: an object with mean and standardDeviation in per cent; or learned: from past tests, or else from mde; default weak: standard deviation mde / 1.96"`
	NonNegative       bool             `json:"nonnegative,omitempty" jsonschema:"true if no visitor's value is below zero"`
	Past              []map[string]any `json:"past,omitempty" jsonschema:"past tests of the same metric, which say how large true effects are: variations as above, control first, or lift and standardError in per cent; optional: name, and shipped, the number of the shipped treatment"`
}

// compareCounts compares variations by given sums. It takes a slot of the admission, because it uses the processor.
func (s *Server) compareCounts(ctx context.Context, _ Caller, a *arguments) (any, error) {
	input, err := calculator.ParseInput(a.text)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Line      *int64   `json:"line,omitempty"` // hides that of the calculator
		Sentences []string `json:"sentences"`
		*calculator.Answer
	}
	answer.Answer, err = results.RunAdmitted(ctx, s.results,
		func(context.Context) (*calculator.Answer, error) { return input.ComputeAnswer(), nil })
	if err != nil {
		return nil, err
	}
	answer.Sentences = []string{answer.Conclusion.Text}
	name := func(id int64) string { return fmt.Sprintf("variation %d", id) }
	q := quoter{
		metric: "mean", invalid: isInvalid(&answer.Conclusion), rate: input.Metric == calculator.MetricBinary,
		level: answer.SignificanceLevel, control: name(answer.Variations[0].ID),
	}
	if q.rate {
		q.metric = "rate"
	}
	for i := range answer.Variations {
		v := &answer.Variations[i]
		answer.Sentences = append(answer.Sentences,
			q.quoteVariation(name(v.ID), v.Visitors, v.Estimate, v.Comparison)...)
	}
	answer.Sentences = append(answer.Sentences, answer.Worth.InWords()...)
	return answer, nil
}
