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
	Variations []catalogue.Variation `json:"variations"`
}

func (s *API) listCampaigns(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, ofSubjects, catalogue.CampaignTypes)
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
		for i, found := range s.Statuses.LastStatuses(c.Request.Context(), l.owned.ID, subjects) {
			list[i].Status = result.NewListedStatus(found, page[i].Active)
		}
	}
	return list, nil
}

// countedCampaign returns a campaign with its counters.
func (s *API) countedCampaign(c *catalogue.LiveCampaign) campaign {
	return campaign{
		ID: c.ID, Key: c.Key, Name: c.Name, Description: c.Description, Type: c.Type,
		CampaignCounters: s.Engine.CountersOfCampaign(c),
		CreateDate:       c.CreateDate, UpdateDate: c.UpdateDate, StartDate: c.StartDate, EndDate: c.EndDate,
		Active: c.Active, ControlShare: c.ControlShare, TrafficAllocation: c.TrafficAllocation,
		TargetID: c.TargetID, TargetMode: c.TargetMode, PrimaryGoalID: c.PrimaryGoalID,
		SignificanceLevel: c.SignificanceLevel, Methodology: c.Methodology, Power: c.Power, MDE: c.MDE,
		PrimaryMetric: c.PrimaryMetric, LookPlan: c.LookPlan,
		Goals: c.Goals, MinDays: c.MinDays, Hypothesis: c.Hypothesis, Owner: c.Owner, AutoStop: c.AutoStop,
		Tags: c.Tags,
	}
}

func (s *API) campaignDetail(c *catalogue.LiveCampaign) campaignDetail {
	return campaignDetail{s.countedCampaign(c), append([]catalogue.Variation{}, c.Variations...)}
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
}

// widgetDetail is a single widget. The variations of an experiment are only listed in the experiment.
type widgetDetail struct {
	widget
	Variations  []catalogue.WidgetVariation `json:"variations"`
	Experiments []widgetExperiment          `json:"experiments"`
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
	catalogue.LookPlan
}

// experimentStatus is the status of an experiment of a widget.
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
	l, err := s.parseListing(c, ofSubjects, catalogue.WidgetTypes)
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
		for k, found := range s.Statuses.LastStatuses(c.Request.Context(), l.owned.ID, subjects) {
			e := &page[i].Experiments[k]
			shown := result.NewListedStatus(found, page[i].Active && e.Active)
			list[i].Status = append(list[i].Status, experimentStatus{e.ID, shown})
		}
	}
	return list, nil
}

// countedWidget returns a widget with its counters.
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
func (s *API) widgetDetail(w *catalogue.LiveWidget) widgetDetail {
	detail := widgetDetail{
		widget: s.countedWidget(w), Variations: append([]catalogue.WidgetVariation{}, w.Variations...),
		Experiments: []widgetExperiment{},
	}
	for _, e := range w.Experiments {
		shown := widgetExperiment{
			ID: e.ID, Name: e.Name, PrimaryMetric: e.PrimaryMetric, ControlShare: e.ControlShare, Active: e.Active,
			CreateDate: utcTime(e.CreateDate), StartDate: utcTime(e.StartDate), EndDate: utcTime(e.EndDate),
			Variations: append([]catalogue.WidgetVariation{}, e.Variations...),
			Goals:      e.Goals, MinDays: e.MinDays, LookPlan: e.LookPlan,
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
