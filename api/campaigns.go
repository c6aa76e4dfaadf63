package api

import (
	"time"

	"lifthouse/engine"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// campaign is an item of the list of campaigns.
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
	PrimaryMetric     string     `json:"primaryMetric,omitempty"`

	catalogue.LookPlan
	Goals      *catalogue.Goals `json:"goals,omitempty"`
	MinDays    *int             `json:"minDays,omitempty"`
	Hypothesis string           `json:"hypothesis,omitempty"`
	Owner      string           `json:"owner,omitempty"`
	AutoStop   string           `json:"autoStop,omitempty"`
	Tags       []string         `json:"tags,omitempty"`

	Status *result.ListedStatus `json:"status,omitempty"` // only if requested
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

func newCampaign(c *catalogue.LiveCampaign, counters engine.CampaignCounters) campaign {
	return campaign{
		ID: c.ID, Name: c.Name, Description: c.Description, Type: c.Type,
		GoalsReached: counters.GoalsReached, Views: counters.Views, Value: counters.Value,
		CreateDate: c.CreateDate, UpdateDate: c.UpdateDate, StartDate: c.StartDate, EndDate: c.EndDate,
		Active: c.Active, ControlShare: c.ControlShare, TrafficAllocation: c.TrafficAllocation,
		TargetID: c.TargetID, TargetMode: c.TargetMode, PrimaryGoalID: c.PrimaryGoalID,
		SignificanceLevel: c.SignificanceLevel, Methodology: c.Methodology, Power: c.Power, MDE: c.MDE,
		PrimaryMetric: c.PrimaryMetric, LookPlan: c.LookPlan,
		Goals: c.Goals, MinDays: c.MinDays, Hypothesis: c.Hypothesis, Owner: c.Owner, AutoStop: c.AutoStop, Tags: c.Tags,
	}
}

func (s *server) listCampaigns(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, ofSubjects, catalogue.CampaignTypes)
	if err != nil {
		return nil, err
	}
	page := pageOf(c, l, l.owned.Campaigns, func(c catalogue.LiveCampaign) bool { return l.matchesFilters(c.WebsiteID, c.Active, c.Type) })
	list := make([]campaign, len(page))
	subjects := make([]schema.Subject, len(page))
	for i := range page {
		list[i] = s.countedCampaign(&page[i])
		subjects[i] = page[i].Subject()
	}
	if l.status {
		for i, found := range s.Statuses.LastStatuses(c.Request.Context(), l.owned.ID, subjects) {
			list[i].Status = result.NewListedStatus(found, page[i].Active)
		}
	}
	return list, nil
}

// countedCampaign returns a campaign with its counters.
func (s *server) countedCampaign(live *catalogue.LiveCampaign) campaign {
	return newCampaign(live, s.Engine.CountersOfCampaign(live))
}

func (s *server) getCampaign(c *gin.Context) (any, error) {
	found, err := findResource(s, c, "campaign", func(o *catalogue.AccountResources) map[int64]catalogue.LiveCampaign { return o.Campaigns }, func(c *catalogue.LiveCampaign) int64 { return c.WebsiteID })
	if err != nil {
		return nil, err
	}
	detail := campaignDetail{campaign: s.countedCampaign(&found), Variations: []campaignVariation{}}
	for _, v := range found.Variations {
		detail.Variations = append(detail.Variations, campaignVariation(v))
	}
	return detail, nil
}

// switchCampaign starts or stops a campaign.
func (s *server) switchCampaign(active bool) func(*gin.Context) (any, error) {
	return s.admitChange(func(c *gin.Context) (any, error) {
		live, err := setActive(s, c, "campaign", active, s.Catalogue.SwitchCampaign)
		if err != nil {
			return nil, err
		}
		return s.countedCampaign(&live), nil
	})
}
