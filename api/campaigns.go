package api

import (
	"slices"
	"strconv"
	"time"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// campaign is an item of the list.
type campaign struct {
	ID                int64      `json:"id"`
	Name              string     `json:"name"`
	Description       string     `json:"description,omitempty"`
	Type              string     `json:"type"`
	GoalsReached      int64      `json:"goalsReached"`
	Views             int64      `json:"views"`
	Value             int64      `json:"value"`
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
}

// campaignDetail is a single campaign.
type campaignDetail struct {
	campaign
	Variations []campaignVariation `json:"variations"`
}

type campaignVariation struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Share    int    `json:"share"`
	TargetID int64  `json:"targetId,omitempty"`
	Order    int    `json:"order"`
}

func newCampaign(c *catalogue.LiveCampaign, counters engine.Counters) campaign {
	return campaign{
		ID: c.ID, Name: c.Name, Description: c.Description, Type: c.Type,
		GoalsReached: counters.GoalsReached, Views: counters.Views, Value: counters.Value,
		CreateDate: c.CreateDate, UpdateDate: c.UpdateDate, StartDate: c.StartDate, EndDate: c.EndDate,
		Active: c.Active, ControlShare: c.ControlShare, TrafficAllocation: c.TrafficAllocation,
		TargetID: c.TargetID, TargetMode: c.TargetMode, PrimaryGoalID: c.PrimaryGoalID,
		SignificanceLevel: c.SignificanceLevel, Methodology: c.Methodology, Power: c.Power, MDE: c.MDE,
	}
}

// Bounds of the campaign list's limit.
const (
	mostCampaigns    = 500
	defaultCampaigns = 100
)

func (s *server) listCampaigns(c *gin.Context) (any, error) {
	p := engine.ReadParameters(c.Request.URL.RawQuery, websiteIDName, "offset", "limit", "active", "type")
	asked := p.ID(websiteIDName)
	offset := p.Integer("offset", 0, 1<<31-1, 0)
	limit := p.Integer("limit", 1, mostCampaigns, defaultCampaigns)
	active := p.OneOf("active", []string{"true", "false"})
	kind := p.OneOf("type", catalogue.CampaignTypes)
	if err := p.Err(); err != nil {
		return nil, err
	}
	owned, bound := s.owned(c)
	website, err := listedWebsite(owned, bound, asked)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(catalogue.ByID(owned.Campaigns), func(c catalogue.LiveCampaign) bool {
		return c.WebsiteID != website || active != "" && active != strconv.FormatBool(c.Active) || kind != "" && kind != c.Type
	})
	page := found[min(offset, len(found)):min(offset+limit, len(found))]
	counters, err := s.engine.Counters(c.Request.Context(), page)
	if err != nil {
		return nil, err
	}
	list := make([]campaign, len(page))
	for i := range page {
		list[i] = newCampaign(&page[i], counters[page[i].ID])
	}
	paginate(c, offset, limit, len(found))
	return list, nil
}

func (s *server) getCampaign(c *gin.Context) (any, error) {
	p := engine.ReadParameters(c.Request.URL.RawQuery, websiteIDName)
	asked := p.ID(websiteIDName)
	id, err := pathID(c, pathIDName, p.Err())
	if err != nil {
		return nil, err
	}
	owned, bound := s.owned(c)
	website, err := searchedWebsite(owned, bound, asked)
	if err != nil {
		return nil, err
	}
	found, known := owned.Campaigns[id]
	if !known || website != 0 && found.WebsiteID != website {
		return nil, &engine.NotFoundError{Kind: "campaign", ID: id}
	}
	counters, err := s.engine.Counters(c.Request.Context(), []catalogue.LiveCampaign{found})
	if err != nil {
		return nil, err
	}
	detail := campaignDetail{campaign: newCampaign(&found, counters[id]), Variations: []campaignVariation{}}
	for _, v := range found.Variations {
		detail.Variations = append(detail.Variations, campaignVariation(v))
	}
	return detail, nil
}
