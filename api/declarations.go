package api

import (
	"slices"
	"strconv"

	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// discoverCampaigns returns the campaigns in the events of the token's websites that the catalogue does not declare.
func (s *API) discoverCampaigns(c *gin.Context) ([]engine.Discovered, *catalogue.AccountResources, error) {
	owned, bound := s.accountResources(c)
	all, err := s.Engine.Discover(c.Request.Context(), owned)
	all = slices.DeleteFunc(all, func(d engine.Discovered) bool { return bound != 0 && d.WebsiteID != bound })
	return all, owned, source.StoreFailure(c.Request.Context(), err)
}

// listUndeclared returns the campaigns that arrived and are not declared, those with most visitors first.
func (s *API) listUndeclared(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName, "limit", "search")
	asked := p.ID(websiteIDName)
	limit := p.ParseInteger("limit", 1, 1000, 100)
	search, _ := p.SingleValue("search")
	if err := p.Err(); err != nil {
		return nil, err
	}
	_, website, err := s.searchedWebsite(c, asked)
	if err != nil {
		return nil, err
	}
	all, _, err := s.discoverCampaigns(c)
	if err != nil {
		return nil, err
	}
	all = engine.SelectDiscovered(all, website, search)
	c.Header("X-Total-Count", strconv.Itoa(len(all)))
	return all[:min(len(all), limit)], nil
}

// declareCampaign declares a campaign that arrived, or ignores it.
func (s *API) declareCampaign(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun")
	dryRun := p.OneOf("dryRun", []string{"true", "false"}) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	var asked struct {
		engine.Declaration `yaml:",inline"`
		CampaignID         int64  `yaml:"campaignId"`
		Key                string `yaml:"key"`
	}
	if err := s.readBodyYAML(c, &asked); err != nil {
		return nil, err
	}
	name := "campaignId"
	asked.Campaign = strconv.FormatInt(asked.CampaignID, 10)
	if asked.Key != "" {
		name = "key"
		asked.Campaign = asked.Key
	}
	var wrong faults.Collector
	if asked.WebsiteID < 1 {
		wrong.Add("websiteId", asked.WebsiteID, "must be the id of a website")
	}
	if asked.Key != "" && asked.CampaignID != 0 {
		wrong.Add("key", asked.Key, "must not be given with campaignId")
	}
	if err := wrong.List.Err(); err != nil {
		return nil, err
	}
	all, owned, err := s.discoverCampaigns(c)
	if err != nil {
		return nil, err
	}
	file, found, err := engine.DeclareDiscovered(all, owned, asked.Declaration)
	if !found {
		wrong.Add(name, asked.Campaign, "must be, with its websiteId, a campaign that GET /v1/undeclared lists")
		return nil, wrong.List
	}
	if err != nil {
		return nil, err
	}
	return s.applyCatalogue(c, file, dryRun)
}
