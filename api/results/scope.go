package results

import (
	"cmp"

	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
)

// ScopeRequest restricts a request to an account, or to the website of a token that is bound to one. The error is an
// InvalidError or a NotFoundError.
func ScopeRequest(r query.Request, owned *catalogue.AccountResources, bound int64) (query.Request, error) {
	if err := goalFault(owned, cmp.Or(bound, r.WebsiteID), r.GoalID); err != nil {
		return r, err
	}
	var err error
	r.AccountID = owned.ID
	r.WebsiteID, err = SearchedWebsite(owned, bound, r.WebsiteID)
	return r, err
}

// SearchedWebsite returns the website on which an operation looks for an id: the
// requested website, the website of the token, or 0 for all websites of the account.
func SearchedWebsite(owned *catalogue.AccountResources, bound, asked int64) (int64, error) {
	if asked == 0 {
		return bound, nil
	}
	if _, known := owned.Websites[asked]; !known || bound != 0 && bound != asked {
		return 0, &query.NotFoundError{Kind: "website", ID: asked}
	}
	return asked, nil
}

// goalFault returns an error if the website has no such goal. It is checked before
// resources are looked up, because 400 takes precedence over 404.
func goalFault(owned *catalogue.AccountResources, website, id int64) error {
	goal, known := owned.Goals[id]
	if _, ours := owned.Websites[website]; id == 0 || known && (!ours || goal.WebsiteID == website) {
		return nil
	}
	return query.GoalFault(id)
}
