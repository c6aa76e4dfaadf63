package api

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

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
	var invalid *query.InvalidError
	if errors.As(before, &invalid) {
		all = append(all, invalid.Faults...)
	}
	return query.InvalidParameters(all...)
}

// listedWebsite returns the website of a list. It is like results.SearchedWebsite, but
// an account with several websites must name one.
func listedWebsite(owned *catalogue.AccountResources, bound, asked int64) (int64, error) {
	website, err := results.SearchedWebsite(owned, bound, asked)
	if err != nil || website != 0 {
		return website, err
	}
	websites := catalogue.ByID(owned.Websites)
	switch len(websites) {
	case 0:
		return 0, nil
	case 1:
		return websites[0].ID, nil
	}
	ids := make([]string, len(websites))
	for i, w := range websites {
		ids[i] = strconv.FormatInt(w.ID, 10)
	}
	return 0, &query.InvalidError{Code: "website_required", Faults: faults.List{
		{Name: websiteIDName, Detail: fmt.Sprintf("the account has %d websites; name one of them: %s", len(ids), strings.Join(ids, ", "))},
	}}
}

// setPaginationHeaders sets the pagination headers (RFC 8288).
func setPaginationHeaders(c *gin.Context, offset, limit, total int) {
	c.Header("X-Total-Count", strconv.Itoa(total))
	query := c.Request.URL.Query()
	link := func(rel string, offset int) string {
		query.Set("offset", strconv.Itoa(offset))
		query.Set("limit", strconv.Itoa(limit))
		to := url.URL{Path: c.Request.URL.Path, RawQuery: query.Encode()}
		return fmt.Sprintf(`<%s>; rel=%q`, to.String(), rel)
	}
	// The last page starts a whole number of pages away from the requested one. If all
	// such pages are beyond the end, it is the first page.
	last := offset % limit
	if last >= total {
		last = 0
	} else {
		last += (total - 1 - last) / limit * limit
	}
	links := []string{link("first", 0)}
	if offset > 0 {
		links = append(links, link("prev", min(max(offset-limit, 0), last)))
	}
	if offset+limit < total {
		links = append(links, link("next", offset+limit))
	}
	links = append(links, link("last", last))
	c.Header("Link", strings.Join(links, ", "))
}
