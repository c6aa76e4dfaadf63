package api

import (
	"slices"
	"strconv"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"

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

// parseListing parses the parameters of a list. types are the valid values of the
// type filter; nil: the list has no filters.
func (s *server) parseListing(c *gin.Context, of bounds, types []string) (listing, error) {
	names := []string{websiteIDName, "offset", "limit"}
	if types != nil {
		names = append(names, "active", "type", "include")
	}
	p := query.ReadParameters(c.Request.URL.RawQuery, names...)
	asked := p.ID(websiteIDName)
	l := listing{offset: p.ParseInteger("offset", 0, maxOffset, 0), limit: p.ParseInteger("limit", 1, of.most, of.otherwise)}
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
	l.website, err = listedWebsite(l.owned, bound, asked)
	return l, err
}

// matchesFilters reports whether a campaign or a widget matches the filters.
func (l *listing) matchesFilters(website int64, active bool, kind string) bool {
	return website == l.website && (l.active == "" || l.active == strconv.FormatBool(active)) && (l.kind == "" || l.kind == kind)
}

// pageOf returns the requested page of the list, sorted by id, and sets the
// pagination headers.
func pageOf[R any](c *gin.Context, l listing, all map[int64]R, has func(R) bool) []R {
	found := slices.DeleteFunc(catalogue.ByID(all), func(r R) bool { return !has(r) })
	setPaginationHeaders(c, l.offset, l.limit, len(found))
	return found[min(l.offset, len(found)):min(l.offset+l.limit, len(found))]
}

// place identifies a resource by its id, on one website or, if website is 0, on any
// website of the account.
type place struct {
	owned       *catalogue.AccountResources
	website, id int64
}

// parsePlace parses the parameters of an operation that has only the parameter
// website.
func (s *server) parsePlace(c *gin.Context) (place, error) {
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

// findResource returns the requested resource. The error is a parameter error or a
// NotFoundError.
func findResource[R any](s *server, c *gin.Context, kind string, all func(*catalogue.AccountResources) map[int64]R, websiteOf func(*R) int64) (found R, err error) {
	p, err := s.parsePlace(c)
	if err != nil {
		return found, err
	}
	found, known := all(p.owned)[p.id]
	if !known || p.website != 0 && p.website != websiteOf(&found) {
		return found, &query.NotFoundError{Kind: kind, ID: p.id}
	}
	return found, nil
}
