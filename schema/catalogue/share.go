package catalogue

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lifetimes of share links.
const (
	DefaultShareLifetime = 30 * 24 * time.Hour
	MaxShareLifetime     = 365 * 24 * time.Hour
)

// PageSubject is what a page of the dashboard shows: a campaign, a widget's own variations, or
// an experiment of a widget. The other ids are 0.
type PageSubject struct {
	CampaignID   int64 `yaml:"campaignId" json:"campaignId,omitempty"`
	WidgetID     int64 `yaml:"widgetId" json:"widgetId,omitempty"`
	ExperimentID int64 `yaml:"experimentId" json:"experimentId,omitempty"`
}

// String returns the subject as in the arguments of a command.
func (s *PageSubject) String() string {
	switch {
	case s.CampaignID != 0:
		return fmt.Sprintf("campaign %d", s.CampaignID)
	case s.ExperimentID != 0:
		return fmt.Sprintf("experiment %d/%d", s.WidgetID, s.ExperimentID)
	}
	return fmt.Sprintf("widget %d", s.WidgetID)
}

// PagePath returns the path of the page of the subject, with its parameters. Without a subject, it is that of the first page.
func (s *PageSubject) PagePath() string {
	page := url.Values{}
	for name, id := range map[string]int64{"campaign": s.CampaignID, "widget": s.WidgetID, "experiment": s.ExperimentID} {
		if id != 0 {
			page.Set(name, strconv.FormatInt(id, 10))
		}
	}
	if len(page) == 0 {
		return "/"
	}
	return "/?" + page.Encode()
}

// NewShare returns the token of a new share link, for CreateToken.
func NewShare(account int64, name string, subject PageSubject, lifetime time.Duration) Token {
	t := Token{AccountID: account, Name: name, Scopes: []Scope{ScopeShare}, Shared: &subject}
	t.SetLifetime(lifetime)
	return t
}

// checkShare checks the token of a share link.
func (c *checker) checkShare(t *Token, owned *AccountResources) {
	kind, _, _ := strings.Cut(t.Shared.String(), " ")
	view := owned.SharedView(t.Shared)
	if len(view.Campaigns)+len(view.Widgets) != 1 || t.Shared.CampaignID != 0 && t.Shared.ExperimentID != 0 {
		c.Add(kind+"Id", t.Shared, fmt.Sprintf("must name one campaign, one widget, or one experiment of a widget, of account %d", t.AccountID))
	}
	if t.ExpiresAt == nil || t.ExpiresAt.After(t.CreatedAt.Add(MaxShareLifetime)) {
		c.Add("expires", "", fmt.Sprintf("must be at most %dd", MaxShareLifetime/(24*time.Hour)))
	}
}

// SharedView returns the part of the account that a share link shows: the subject, its
// website and the goals of the website. A widget has only the shared experiment.
func (o *AccountResources) SharedView(s *PageSubject) *AccountResources {
	view := &AccountResources{
		Account: o.Account, Version: o.Version,
		Websites: map[int64]Website{}, Goals: map[int64]Goal{}, Campaigns: map[int64]LiveCampaign{}, Widgets: map[int64]LiveWidget{},
	}
	var website int64
	if campaign, known := o.Campaigns[s.CampaignID]; known {
		website, view.Campaigns[campaign.ID] = campaign.WebsiteID, campaign
	}
	if widget, known := o.Widgets[s.WidgetID]; known {
		widget.Experiments = slices.DeleteFunc(slices.Clone(widget.Experiments), func(e Experiment) bool { return e.ID != s.ExperimentID })
		if s.ExperimentID == 0 || len(widget.Experiments) > 0 {
			website, view.Widgets[widget.ID] = widget.WebsiteID, widget
		}
	}
	if site, known := o.Websites[website]; known {
		view.Websites[website] = site
	}
	for id, goal := range o.Goals {
		if goal.WebsiteID == website {
			view.Goals[id] = goal
		}
	}
	return view
}

// ShareLink returns the address of the page that a share link shows. base is the address of
// the dashboard. The token is in the fragment, which browsers do not send to servers. The
// page cannot read the website, so the fragment also has its currency and its time zone.
func (o *AccountResources) ShareLink(base string, s *PageSubject, secret string) string {
	fragment := url.Values{"share": {secret}}
	for _, site := range o.SharedView(s).Websites {
		for name, value := range map[string]string{"currency": site.Currency, "timezone": site.Timezone} {
			if value != "" {
				fragment.Set(name, value)
			}
		}
	}
	return base + s.PagePath() + "#" + fragment.Encode()
}
