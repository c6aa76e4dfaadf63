package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// listing holds the parameters of a request for a list of a website.
type listing struct {
	owned         *catalogue.AccountResources
	website       int64
	offset, limit int
	active, kind  string // empty: any
	status        bool   // include the status of each
}

// parseListing parses the parameters of a list. types are the valid values of the type filter; nil: the list has no
// filters. An account with several websites must name one.
func (s *API) parseListing(c *gin.Context, types []string) (listing, error) {
	names := []string{websiteIDName, "offset", "limit"}
	most, otherwise := 1000, 500
	if types != nil { // campaigns and widgets
		most, otherwise = 500, 100
		names = append(names, "active", "type", "include")
	}
	p := query.ReadParameters(c.Request.URL.RawQuery, names...)
	asked := p.ID(websiteIDName)
	l := listing{
		offset: p.ParseInteger("offset", 0, 1<<31-1, 0), // larger than any list
		limit:  p.ParseInteger("limit", 1, most, otherwise),
	}
	if types != nil {
		l.active = p.OneOf("active", []string{"true", "false"})
		l.kind = p.OneOf("type", types)
		l.status = p.OneOf("include", []string{"status"}) != ""
	}
	if err := p.Err(); err != nil {
		return l, err
	}
	var err error
	l.owned, l.website, err = s.onlyWebsite(c, asked)
	return l, err
}

// onlyWebsite is like searchedWebsite, but returns the only website of the account if none is asked for. With several,
// one must be named; 0: the account has none.
func (s *API) onlyWebsite(c *gin.Context, asked int64) (*catalogue.AccountResources, int64, error) {
	owned, website, err := s.searchedWebsite(c, asked)
	if err != nil || website != 0 {
		return owned, website, err
	}
	var ids []string
	for _, w := range catalogue.ByID(owned.Websites) {
		website = w.ID
		ids = append(ids, strconv.FormatInt(w.ID, 10))
	}
	if len(ids) > 1 {
		return owned, 0, &query.InvalidError{Code: "website_required", Faults: faults.List{
			{Name: websiteIDName, Detail: fmt.Sprintf("the account has %d websites; name one of them: %s", len(ids),
				strings.Join(ids, ", "))},
		}}
	}
	return owned, website, nil
}

func (l *listing) matchesFilters(website int64, active bool, kind string) bool {
	isActive := l.active == "" || l.active == strconv.FormatBool(active)
	isKind := l.kind == "" || l.kind == kind
	return website == l.website && isActive && isKind
}

// pageOf returns the requested page of the list, sorted by id, and sets the pagination headers (RFC 8288).
func pageOf[R any](c *gin.Context, l listing, all map[int64]R, has func(R) bool) []R {
	found := slices.DeleteFunc(catalogue.ByID(all), func(r R) bool { return !has(r) })
	total := len(found)
	c.Header("X-Total-Count", strconv.Itoa(total))
	query := c.Request.URL.Query()
	link := func(rel string, offset int) string {
		query.Set("offset", strconv.Itoa(offset))
		query.Set("limit", strconv.Itoa(l.limit))
		target := url.URL{Path: c.Request.URL.Path, RawQuery: query.Encode()}
		return fmt.Sprintf(`<%s>; rel=%q`, target.String(), rel)
	}
	// The last page starts a whole number of pages away from the requested one. If all such pages are beyond the end,
	// it is the first page.
	last := l.offset % l.limit
	if last >= total {
		last = 0
	} else {
		last += (total - 1 - last) / l.limit * l.limit
	}
	links := []string{link("first", 0)}
	if l.offset > 0 {
		links = append(links, link("prev", min(max(l.offset-l.limit, 0), last)))
	}
	if l.offset+l.limit < total {
		links = append(links, link("next", l.offset+l.limit))
	}
	links = append(links, link("last", last))
	c.Header("Link", strings.Join(links, ", "))
	return found[min(l.offset, total):min(l.offset+l.limit, total)]
}

// place identifies a resource by its id, on one website or, if website is 0, on any website of the account.
type place struct {
	owned       *catalogue.AccountResources
	website, id int64
}

// parsePlace parses the parameters of an operation that has only the parameter website.
func (s *API) parsePlace(c *gin.Context) (place, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName)
	asked := p.ID(websiteIDName)
	id, err := pathID(c, pathIDName, p.Err())
	if err != nil {
		return place{}, err
	}
	owned, website, err := s.searchedWebsite(c, asked)
	return place{owned, website, id}, err
}

// searchedWebsite returns the resources of the token's account, and the website that an operation is about, see
// results.SearchedWebsite.
func (s *API) searchedWebsite(c *gin.Context, asked int64) (*catalogue.AccountResources, int64, error) {
	owned, bound := s.accountResources(c)
	website, err := results.SearchedWebsite(owned, bound, asked)
	return owned, website, err
}

const (
	websiteIDName    = "websiteId"
	pathIDName       = "id"
	experimentIDName = "experimentId"
	attributeName    = "name"
)

// pathID parses an id in the path. It combines its error with earlier errors.
func pathID(c *gin.Context, name string, before error) (int64, error) {
	text := c.Param(name)
	if id, ok := query.ParseID(text); ok {
		return id, before
	}
	return 0, prependFault(before, faults.Fault{Name: name, Value: text, Detail: "must be a number; digits only"})
}

// prependFault inserts a path error before earlier errors.
func prependFault(before error, fault faults.Fault) error {
	all := faults.List{fault}
	if invalid, is := errors.AsType[*query.InvalidError](before); is {
		all = append(all, invalid.Faults...)
	}
	return query.InvalidParameters(all...)
}

// resources are the resources of a kind that an operation finds by id, or lists.
type resources[R catalogue.Placed] struct {
	kind string
	all  func(*catalogue.AccountResources) map[int64]R
}

type ofAccount = *catalogue.AccountResources

var (
	campaigns = resources[catalogue.LiveCampaign]{
		"campaign", func(o ofAccount) map[int64]catalogue.LiveCampaign { return o.Campaigns },
	}
	widgets = resources[catalogue.LiveWidget]{
		"widget", func(o ofAccount) map[int64]catalogue.LiveWidget { return o.Widgets },
	}
	goals   = resources[catalogue.Goal]{"goal", func(o ofAccount) map[int64]catalogue.Goal { return o.Goals }}
	targets = resources[catalogue.LiveTarget]{
		"target", func(o ofAccount) map[int64]catalogue.LiveTarget { return o.Targets },
	}
)

// getHandler returns the handler of an operation that returns one resource. Its error is a parameter error or a
// NotFoundError.
func getHandler[R catalogue.Placed, S any](s *API, from resources[R], show func(*R) S) handler {
	return func(c *gin.Context) (any, error) {
		p, err := s.parsePlace(c)
		if err != nil {
			return nil, err
		}
		found, known := from.all(p.owned)[p.id]
		if website, _ := found.WebsiteAndKey(); !known || p.website != 0 && p.website != website {
			return nil, &query.NotFoundError{Kind: from.kind, ID: p.id}
		}
		return show(&found), nil
	}
}

// listHandler returns the handler of an operation that lists all resources of a website.
func listHandler[R catalogue.Placed, S any](s *API, from resources[R], show func(*R) S) handler {
	return func(c *gin.Context) (any, error) {
		l, err := s.parseListing(c, nil)
		if err != nil {
			return nil, err
		}
		list := []S{}
		isListed := func(r R) bool {
			website, _ := r.WebsiteAndKey()
			return website == l.website
		}
		for _, found := range pageOf(c, l, from.all(l.owned), isListed) {
			list = append(list, show(&found))
		}
		return list, nil
	}
}

// goal is a goal without its website.
type goal struct {
	catalogue.Goal
	WebsiteID int64 `json:"websiteId,omitempty"` // never set
}

func newGoal(g *catalogue.Goal) goal { return goal{Goal: *g} }

type target struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	CreateDate time.Time `json:"createDate,omitzero"`
	UpdateDate time.Time `json:"updateDate,omitzero"`
}

func newTarget(t *catalogue.LiveTarget) target {
	return target{ID: t.ID, Name: t.Name, CreateDate: t.State.CreateDate, UpdateDate: t.UpdateDate}
}

// readDimension returns a function that reads the query for the observed values of an attribute.
func (s *API) readDimension(operation query.Operation) func(*gin.Context) (*results.Query, error) {
	return func(c *gin.Context) (*results.Query, error) {
		attribute := c.Param(attributeName)
		most := 0
		parse := func(operation query.Operation, rawQuery string) (query.Request, error) {
			p := query.ReadParameters(rawQuery, websiteIDName, "limit")
			request := query.Request{Operation: operation, WebsiteID: p.ID(websiteIDName)}
			most = p.ParseInteger("limit", 1, 1000, 100)
			if all := query.Dimensions; !slices.Contains(all, attribute) {
				if schema.LabelFault(attribute) != "" {
					fault := faults.Fault{Name: attributeName, Value: attribute, Detail: faults.OneOf(all...)}
					return request, prependFault(p.Err(), fault)
				}
				request.Dimension = query.Dimension(attribute) // that of the website's events, or of none
			}
			return request, p.Err()
		}
		asked, err := s.readQuery(c, operation, parse, results.JSON)
		if err != nil {
			return nil, inPath(err)
		}
		return s.results.ValuesQuery(asked, attribute, most), nil
	}
}

// inPath returns an error about an attribute that is in the path, and not a parameter.
func inPath(err error) error {
	invalid, is := errors.AsType[*query.InvalidError](err)
	if !is {
		return err
	}
	named := &query.InvalidError{Code: invalid.Code, Faults: slices.Clone(invalid.Faults)}
	for i := range named.Faults {
		if named.Faults[i].Name == query.ParamDimension {
			named.Faults[i].Name = attributeName
		}
	}
	return named
}

// campaign is an item of the list of campaigns.
type campaign struct {
	ID          int64  `json:"id"`
	Key         string `json:"key,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type"`
	engine.CampaignCounters
	CreateDate        time.Time  `json:"createDate"`
	UpdateDate        time.Time  `json:"updateDate"`
	StartDate         *time.Time `json:"startDate,omitempty"`
	EndDate           *time.Time `json:"endDate,omitempty"`
	Active            bool       `json:"active"`
	ControlShare      int        `json:"controlShare"`
	TrafficAllocation int        `json:"trafficAllocation"`
	TargetID          int64      `json:"targetId,omitempty"`
	TargetMode        string     `json:"targetMode"`
	PrimaryGoalID     int64      `json:"primaryGoalId,omitempty"`
	SignificanceLevel int        `json:"significanceLevel"`
	Methodology       string     `json:"methodology"`
	Power             int        `json:"power"`
	MDE               float64    `json:"mde"`
	PrimaryMetric     string     `json:"primaryMetric,omitempty"`

	catalogue.LookPlan
	Goals      *catalogue.Goals    `json:"goals,omitempty"`
	MinDays    *int                `json:"minDays,omitempty"`
	Questions  []string            `json:"questions,omitempty"`
	FollowUp   *catalogue.FollowUp `json:"followUp,omitempty"`
	Hypothesis string              `json:"hypothesis,omitempty"`
	Owner      string              `json:"owner,omitempty"`
	AutoStop   string              `json:"autoStop,omitempty"`
	Tags       []string            `json:"tags,omitempty"`

	ControlPicture string `json:"controlPicture,omitempty"`

	Status     *result.ListedStatus  `json:"status,omitempty"`    // only if requested
	Variations []catalogue.Variation `json:"variations,omitzero"` // only of a single campaign
}

func (s *API) listCampaigns(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, catalogue.CampaignTypes)
	if err != nil {
		return nil, err
	}
	page := pageOf(c, l, l.owned.Campaigns,
		func(c catalogue.LiveCampaign) bool { return l.matchesFilters(c.WebsiteID, c.Active, c.Type) })
	list := make([]campaign, len(page))
	subjects := make([]schema.Subject, len(page))
	for i := range page {
		list[i] = s.countedCampaign(&page[i])
		subjects[i] = page[i].Subject()
	}
	if l.status {
		for i, found := range s.Summaries.LastSummaries(c.Request.Context(), l.owned.ID, subjects) {
			list[i].Status = found.ListedStatus(page[i].Active)
		}
	}
	return list, nil
}

func (s *API) countedCampaign(c *catalogue.LiveCampaign) campaign {
	return campaign{
		ID: c.ID, Key: c.Key, Name: c.Name, Description: c.Description, Type: c.Type,
		CampaignCounters: s.Engine.CountersOfCampaign(c),
		CreateDate:       c.CreateDate, UpdateDate: c.UpdateDate, StartDate: c.StartDate, EndDate: c.EndDate,
		Active: c.Active, ControlShare: c.ControlShare,
		TrafficAllocation: *cmp.Or(c.TrafficAllocation, new(catalogue.DefaultAllocation)),
		TargetID:          c.TargetID, TargetMode: c.TargetMode, PrimaryGoalID: c.PrimaryGoalID,
		SignificanceLevel: c.SignificanceLevel, Methodology: c.Methodology, Power: c.Power, MDE: c.MDE,
		PrimaryMetric: c.PrimaryMetric, LookPlan: c.LookPlan,
		Goals: c.Goals, MinDays: c.MinDays, Questions: c.Questions, FollowUp: c.FollowUp,
		Hypothesis: c.Hypothesis, Owner: c.Owner, AutoStop: c.AutoStop,
		Tags: c.Tags, ControlPicture: c.ControlPicture,
	}
}

func (s *API) campaignDetail(c *catalogue.LiveCampaign) campaign {
	detail := s.countedCampaign(c)
	detail.Variations = append([]catalogue.Variation{}, c.Variations...)
	return detail
}

// widget is an item of the list of widgets.
type widget struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	engine.WidgetCounters
	CreateDate    time.Time  `json:"createDate"`
	UpdateDate    time.Time  `json:"updateDate"`
	Active        bool       `json:"active"`
	Type          string     `json:"type"`
	StartDate     *time.Time `json:"startDate,omitempty"`
	EndDate       *time.Time `json:"endDate,omitempty"`
	PrimaryGoalID int64      `json:"primaryGoalId,omitempty"`

	Status []experimentStatus `json:"status,omitempty"` // statuses of the experiments; only if requested

	// Only of a single widget. The variations of an experiment are only listed in the experiment.
	Variations  []catalogue.WidgetVariation `json:"variations,omitzero"`
	Experiments []widgetExperiment          `json:"experiments,omitzero"`
}

type widgetExperiment struct {
	ID            int64                       `json:"id"`
	Name          string                      `json:"name,omitempty"`
	PrimaryMetric string                      `json:"primaryMetric,omitempty"`
	CreateDate    *time.Time                  `json:"createDate,omitempty"`
	UpdateDate    *time.Time                  `json:"updateDate,omitempty"`
	StartDate     *time.Time                  `json:"startDate,omitempty"`
	EndDate       *time.Time                  `json:"endDate,omitempty"`
	ControlShare  int                         `json:"controlShare"`
	Active        bool                        `json:"active"`
	Variations    []catalogue.WidgetVariation `json:"variations"`
	Goals         *catalogue.Goals            `json:"goals,omitempty"`
	MinDays       *int                        `json:"minDays,omitempty"`
	Questions     []string                    `json:"questions,omitempty"`
	catalogue.LookPlan
}

type experimentStatus struct {
	ExperimentID int64 `json:"experimentId"`
	*result.ListedStatus
}

func utcTime(d *catalogue.Date) *time.Time {
	if d == nil {
		return nil
	}
	return new(d.UTC())
}

func (s *API) listWidgets(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, catalogue.WidgetTypes)
	if err != nil {
		return nil, err
	}
	page := pageOf(c, l, l.owned.Widgets,
		func(w catalogue.LiveWidget) bool { return l.matchesFilters(w.WebsiteID, w.Active, w.Type) })
	list := make([]widget, len(page))
	for i := range page {
		list[i] = s.countedWidget(&page[i])
		if !l.status {
			continue
		}
		var subjects []schema.Subject
		for _, e := range page[i].Experiments {
			subjects = append(subjects, page[i].Subject(e.ID))
		}
		list[i].Status = []experimentStatus{}
		for k, found := range s.Summaries.LastSummaries(c.Request.Context(), l.owned.ID, subjects) {
			e := &page[i].Experiments[k]
			shown := found.ListedStatus(page[i].Active && e.Active)
			list[i].Status = append(list[i].Status, experimentStatus{e.ID, shown})
		}
	}
	return list, nil
}

func (s *API) countedWidget(w *catalogue.LiveWidget) widget {
	return widget{
		ID: w.ID, Name: w.Name, Type: w.Type, PrimaryGoalID: w.PrimaryGoalID,
		WidgetCounters: s.Engine.CountersOfWidget(w),
		CreateDate:     w.CreateDate, UpdateDate: w.UpdateDate, StartDate: w.StartDate, EndDate: w.EndDate,
		Active: w.Active,
	}
}

// widgetDetail returns a widget with its experiments. The dates of an experiment are the declared ones, or otherwise
// the times of the first and last change of its shares.
func (s *API) widgetDetail(w *catalogue.LiveWidget) widget {
	detail := s.countedWidget(w)
	detail.Variations = append([]catalogue.WidgetVariation{}, w.Variations...)
	detail.Experiments = []widgetExperiment{}
	for _, e := range w.Experiments {
		shown := widgetExperiment{
			ID: e.ID, Name: e.Name, PrimaryMetric: e.PrimaryMetric, ControlShare: e.ControlShare, Active: e.Active,
			CreateDate: utcTime(e.CreateDate), StartDate: utcTime(e.StartDate), EndDate: utcTime(e.EndDate),
			Variations: append([]catalogue.WidgetVariation{}, e.Variations...),
			Goals:      e.Goals, MinDays: e.MinDays, Questions: e.Questions, LookPlan: e.LookPlan,
		}
		if history := w.ShareHistory[e.ID]; len(history) > 0 {
			shown.UpdateDate = &history[len(history)-1].Since
			if shown.CreateDate == nil {
				shown.CreateDate = &history[0].Since
			}
		}
		detail.Experiments = append(detail.Experiments, shown)
	}
	return detail
}
