package api

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// bounds is the maximum and the default limit of a list.
type bounds struct{ most, otherwise int }

var (
	ofSubjects = bounds{500, 100}  // campaigns and widgets
	ofOthers   = bounds{1000, 500} // goals and targets
)

// maxOffset is larger than any list.
const maxOffset = 1<<31 - 1

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
func (s *API) parseListing(c *gin.Context, of bounds, types []string) (listing, error) {
	names := []string{websiteIDName, "offset", "limit"}
	if types != nil {
		names = append(names, "active", "type", "include")
	}
	p := query.ReadParameters(c.Request.URL.RawQuery, names...)
	asked := p.ID(websiteIDName)
	l := listing{
		offset: p.ParseInteger("offset", 0, maxOffset, 0),
		limit:  p.ParseInteger("limit", 1, of.most, of.otherwise),
	}
	if types != nil {
		l.active, l.kind = p.OneOf("active", []string{"true", "false"}), p.OneOf("type", types)
		l.status = p.OneOf("include", []string{"status"}) != ""
	}
	if err := p.Err(); err != nil {
		return l, err
	}
	var bound int64
	var err error
	l.owned, bound = s.accountResources(c)
	if l.website, err = results.SearchedWebsite(l.owned, bound, asked); err != nil || l.website != 0 {
		return l, err
	}
	var ids []string
	for _, w := range catalogue.ByID(l.owned.Websites) {
		l.website, ids = w.ID, append(ids, strconv.FormatInt(w.ID, 10))
	}
	if len(ids) > 1 {
		return l, &query.InvalidError{Code: "website_required", Faults: faults.List{
			{Name: websiteIDName, Detail: fmt.Sprintf("the account has %d websites; name one of them: %s", len(ids),
				strings.Join(ids, ", "))},
		}}
	}
	return l, nil
}

// matchesFilters reports whether a campaign or a widget matches the filters.
func (l *listing) matchesFilters(website int64, active bool, kind string) bool {
	return website == l.website && (l.active == "" || l.active == strconv.FormatBool(active)) &&
		(l.kind == "" || l.kind == kind)
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
	owned, bound := s.accountResources(c)
	website, err := results.SearchedWebsite(owned, bound, asked)
	return place{owned, website, id}, err
}

const (
	websiteIDName    = "websiteId"
	pathIDName       = "id"
	experimentIDName = "experimentId"
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
type resources[R any] struct {
	kind      string
	all       func(*catalogue.AccountResources) map[int64]R
	websiteOf func(*R) int64
}

var (
	campaigns = resources[catalogue.LiveCampaign]{
		"campaign", func(o *catalogue.AccountResources) map[int64]catalogue.LiveCampaign { return o.Campaigns },
		func(c *catalogue.LiveCampaign) int64 { return c.WebsiteID },
	}
	widgets = resources[catalogue.LiveWidget]{
		"widget", func(o *catalogue.AccountResources) map[int64]catalogue.LiveWidget { return o.Widgets },
		func(w *catalogue.LiveWidget) int64 { return w.WebsiteID },
	}
	goals = resources[catalogue.Goal]{
		"goal", func(o *catalogue.AccountResources) map[int64]catalogue.Goal { return o.Goals },
		func(g *catalogue.Goal) int64 { return g.WebsiteID },
	}
	targets = resources[catalogue.LiveTarget]{
		"target", func(o *catalogue.AccountResources) map[int64]catalogue.LiveTarget { return o.Targets },
		func(t *catalogue.LiveTarget) int64 { return t.WebsiteID },
	}
)

// getHandler returns the handler of an operation that returns one resource. Its error is a parameter error or a
// NotFoundError.
func getHandler[R, S any](s *API, from resources[R], show func(*R) S) handler {
	return func(c *gin.Context) (any, error) {
		p, err := s.parsePlace(c)
		if err != nil {
			return nil, err
		}
		found, known := from.all(p.owned)[p.id]
		if !known || p.website != 0 && p.website != from.websiteOf(&found) {
			return nil, &query.NotFoundError{Kind: from.kind, ID: p.id}
		}
		return show(&found), nil
	}
}

// listHandler returns the handler of an operation that lists all resources of a website.
func listHandler[R, S any](s *API, from resources[R], show func(*R) S) handler {
	return func(c *gin.Context) (any, error) {
		l, err := s.parseListing(c, ofOthers, nil)
		if err != nil {
			return nil, err
		}
		list := []S{}
		for _, found := range pageOf(c, l, from.all(l.owned),
			func(r R) bool { return from.websiteOf(&r) == l.website }) {
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

type website struct {
	ID       int64  `json:"id"`
	Domain   string `json:"domain"`
	Currency string `json:"currency,omitempty"`
	Timezone string `json:"timezone,omitempty"`
}

// listWebsites returns all websites that the token may read, on one page.
func (s *API) listWebsites(c *gin.Context) (any, error) {
	owned, bound := s.accountResources(c)
	list := []website{}
	for _, w := range catalogue.ByID(owned.Websites) {
		if bound == 0 || bound == w.ID {
			list = append(list, website{ID: w.ID, Domain: w.Domain, Currency: w.Currency, Timezone: w.Timezone})
		}
	}
	c.Header("X-Total-Count", strconv.Itoa(len(list)))
	return list, nil
}

// ofValues is the maximum and the default number of values in a response.
var ofValues = bounds{1000, 100}

const attributeName = "name"

// dimensionHandler returns the observed values of an attribute.
func (s *API) dimensionHandler(operation query.Operation) handler {
	return func(c *gin.Context) (any, error) {
		attribute, most := c.Param(attributeName), 0
		parse := func(operation query.Operation, rawQuery string) (query.Request, error) {
			p := query.ReadParameters(rawQuery, websiteIDName, "limit")
			request := query.Request{Operation: operation, WebsiteID: p.ID(websiteIDName)}
			most = p.ParseInteger("limit", 1, ofValues.most, ofValues.otherwise)
			if all := query.Dimensions; !slices.Contains(all, attribute) {
				fault := faults.Fault{Name: attributeName, Value: attribute, Detail: faults.OneOf(all...)}
				return request, prependFault(p.Err(), fault)
			}
			return request, p.Err()
		}
		request, owned, err := s.scopedRequest(c, operation, parse)
		if err != nil {
			return nil, err
		}
		asked, err := s.results.ValuesQuery(request, owned, attribute, most)
		if err != nil {
			return nil, err
		}
		return s.answerQuery(c, asked)
	}
}
