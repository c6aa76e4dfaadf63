package api

import (
	"slices"
	"strconv"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// bounds are those of a list's limit.
type bounds struct{ most, otherwise int }

var (
	ofSubjects = bounds{500, 100}  // campaigns and widgets
	ofOthers   = bounds{1000, 500} // goals and targets
)

// mostOffset is more than any list has.
const maxOffset = 1<<31 - 1

// listing is a list that is asked for, of one website.
type listing struct {
	owned         *catalogue.Owned
	website       int64
	offset, limit int
	active, kind  string // empty: any
}

// listing reads the parameters of a list; types are those that its filter
// takes, nil where the list has no filters.
func (s *server) listing(c *gin.Context, of bounds, types []string) (listing, error) {
	names := []string{websiteIDName, "offset", "limit"}
	if types != nil {
		names = append(names, "active", "type")
	}
	p := engine.ReadParameters(c.Request.URL.RawQuery, names...)
	asked := p.ID(websiteIDName)
	l := listing{offset: p.Integer("offset", 0, maxOffset, 0), limit: p.Integer("limit", 1, of.most, of.otherwise)}
	if types != nil {
		l.active, l.kind = p.OneOf("active", []string{"true", "false"}), p.OneOf("type", types)
	}
	if err := p.Err(); err != nil {
		return l, err
	}
	var bound int64
	var err error
	l.owned, bound = s.owned(c)
	l.website, err = listedWebsite(l.owned, bound, asked)
	return l, err
}

// has says whether a campaign or a widget belongs to the list.
func (l *listing) has(website int64, active bool, kind string) bool {
	return website == l.website && (l.active == "" || l.active == strconv.FormatBool(active)) && (l.kind == "" || l.kind == kind)
}

// pageOf returns the part of the list that is asked for, in the order of the
// ids, and sets the headers that lead to the others.
func pageOf[R any](c *gin.Context, l listing, all map[int64]R, has func(R) bool) []R {
	found := slices.DeleteFunc(catalogue.ByID(all), func(r R) bool { return !has(r) })
	paginate(c, l.offset, l.limit, len(found))
	return found[min(l.offset, len(found)):min(l.offset+l.limit, len(found))]
}

// place is a resource that is asked for by its id: on one website, or 0 for
// any of the account.
type place struct {
	owned       *catalogue.Owned
	website, id int64
}

// place reads the parameters of an operation that has none but the website.
func (s *server) place(c *gin.Context) (place, error) {
	p := engine.ReadParameters(c.Request.URL.RawQuery, websiteIDName)
	asked := p.ID(websiteIDName)
	id, err := pathID(c, pathIDName, p.Err())
	if err != nil {
		return place{}, err
	}
	owned, bound := s.owned(c)
	website, err := searchedWebsite(owned, bound, asked)
	return place{owned, website, id}, err
}

// has says whether a resource of the website can be what is asked for.
func (p *place) has(website int64) bool { return p.website == 0 || p.website == website }
