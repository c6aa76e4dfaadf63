package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// targets are the resources of a server that requests can address.
type targets struct {
	campaigns []campaign          // largest first
	small     []campaign          // cheap enough to compute their results on each request
	results   []string            // paths of results that a dashboard shows
	lists     []string            // paths of lists and details
	values    map[string][]string // filter values by attribute
	ingest    *campaign           // receives the events
}

// campaign has the facts that requests about a campaign need.
type campaign struct {
	ID            int64      `json:"id"`
	Active        bool       `json:"active"`
	Views         int64      `json:"views"`
	GoalsReached  int64      `json:"goalsReached"`
	StartDate     *time.Time `json:"startDate"`
	CreateDate    time.Time  `json:"createDate"`
	PrimaryGoalID int64      `json:"primaryGoalId"`
	Variations    []resource `json:"variations"`
	websiteID     int64
	goals         []int64
}

// resource is a resource with an id.
type resource struct {
	ID int64 `json:"id"`
}

// smallEvents is the number of events below which a campaign is small.
const smallEvents = 100_000

// pageSize is the number of list items per request. All servers allow it.
const pageSize = 500

// findTargets reads the server's resources with the requests that a dashboard
// sends.
func (c *client) findTargets(ctx context.Context, o *Options) (*targets, error) {
	t := &targets{values: map[string][]string{"visitorType": {"new", "returning"}}, lists: []string{"/v1/websites"}}
	var websites []resource
	if err := c.fetchJSON(ctx, "/v1/websites", &websites); err != nil {
		return nil, err
	}
	for _, website := range websites {
		if err := c.addWebsite(ctx, website.ID, t); err != nil {
			return nil, err
		}
	}
	if len(o.Campaigns) > 0 {
		t.campaigns = slices.DeleteFunc(t.campaigns, func(f campaign) bool { return !slices.Contains(o.Campaigns, f.ID) })
	}
	if len(t.campaigns) == 0 {
		return nil, errors.New("the server has no campaign to request: create one with loadgen generate or lifthouse demo")
	}
	slices.SortStableFunc(t.campaigns, func(a, b campaign) int { return cmp.Compare(b.Views, a.Views) })
	for _, f := range t.campaigns {
		t.results = append(t.results, f.resultsPath(""))
		t.lists = append(t.lists, fmt.Sprintf("/v1/campaigns/%d", f.ID))
		if f.Views+f.GoalsReached < smallEvents {
			t.small = append(t.small, f)
		}
	}
	if len(t.small) == 0 {
		t.small = t.campaigns[len(t.campaigns)-1:]
	}
	if err := c.findFilterValues(ctx, t); err != nil {
		return nil, err
	}
	if o.Mix[Ingest] == 0 {
		return t, nil
	}
	return t, c.chooseIngestCampaign(ctx, t)
}

// addWebsite adds the campaigns and widgets of a website.
func (c *client) addWebsite(ctx context.Context, website int64, t *targets) error {
	withWebsite := func(path string) string { return fmt.Sprintf("%s?websiteId=%d", path, website) }
	goals, err := getAll[resource](ctx, c, withWebsite("/v1/goals"))
	if err != nil {
		return err
	}
	campaigns, err := getAll[campaign](ctx, c, withWebsite("/v1/campaigns"))
	if err != nil {
		return err
	}
	for _, found := range campaigns {
		found.websiteID = website
		for _, goal := range goals {
			found.goals = append(found.goals, goal.ID)
		}
		t.campaigns = append(t.campaigns, found)
	}
	widgets, err := getAll[resource](ctx, c, withWebsite("/v1/widgets"))
	if err != nil {
		return err
	}
	for _, widget := range widgets {
		path := fmt.Sprintf("/v1/widgets/%d", widget.ID)
		var detail struct {
			Experiments []resource `json:"experiments"`
		}
		if err := c.fetchJSON(ctx, path, &detail); err != nil {
			return err
		}
		t.results = append(t.results, path+"/results")
		t.lists = append(t.lists, path)
		for _, experiment := range detail.Experiments {
			t.results = append(t.results, fmt.Sprintf("%s/experiments/%d/results", path, experiment.ID))
		}
	}
	t.lists = append(t.lists, withWebsite("/v1/campaigns"), withWebsite("/v1/widgets"), withWebsite("/v1/goals"), withWebsite("/v1/targets"))
	return nil
}

// getAll reads all pages of a list.
func getAll[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var found []T
	for {
		var page []T
		if err := c.fetchJSON(ctx, fmt.Sprintf("%s&offset=%d&limit=%d", path, len(found), pageSize), &page); err != nil {
			return nil, err
		}
		found = append(found, page...)
		if len(page) < pageSize {
			return found, nil
		}
	}
}

// findFilterValues reads the attribute values of the largest campaign from its
// breakdowns.
func (c *client) findFilterValues(ctx context.Context, t *targets) error {
	for _, dimension := range []string{"device", "country", "referrer"} {
		var report struct {
			Breakdown []struct {
				Value string `json:"value"`
			} `json:"breakdown"`
		}
		if err := c.fetchJSON(ctx, t.campaigns[0].resultsPath("dimension="+dimension), &report); err != nil {
			return err
		}
		for _, cell := range report.Breakdown {
			if cell.Value != "(other)" && cell.Value != "(none)" {
				t.values[dimension] = append(t.values[dimension], cell.Value)
			}
		}
	}
	return nil
}

// chooseIngestCampaign chooses the smallest campaign and reads its variations.
func (c *client) chooseIngestCampaign(ctx context.Context, t *targets) error {
	chosen := t.campaigns[len(t.campaigns)-1]
	if slices.ContainsFunc(t.campaigns, func(f campaign) bool { return f.websiteID != chosen.websiteID }) {
		return errors.New("the campaigns belong to several websites: set --campaign to campaigns of the website of the ingest token")
	}
	website := chosen.websiteID
	goals := chosen.goals
	if err := c.fetchJSON(ctx, fmt.Sprintf("/v1/campaigns/%d", chosen.ID), &chosen); err != nil {
		return err
	}
	chosen.websiteID = website
	chosen.goals = goals
	if chosen.PrimaryGoalID == 0 && len(goals) > 0 {
		chosen.PrimaryGoalID = goals[0]
	}
	t.ingest = &chosen
	return nil
}

// resultsPath returns the path of the campaign's results.
func (f *campaign) resultsPath(query string) string {
	path := fmt.Sprintf("/v1/campaigns/%d/results", f.ID)
	if query != "" {
		path += "?" + query
	}
	return path
}
