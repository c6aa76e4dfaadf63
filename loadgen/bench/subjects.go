package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// subjects are what a server can be asked about.
type subjects struct {
	campaigns []campaign
	small     []campaign // those whose results are cheap enough to be computed for each request
	polled    []string   // paths of results that a dashboard shows
	lists     []string   // paths
	values    map[string][]string
	into      *campaign // takes the events
}

// campaign is what has to be known of one to ask about it.
type campaign struct {
	ID            int64      `json:"id"`
	Views         int64      `json:"views"`
	GoalsReached  int64      `json:"goalsReached"`
	StartDate     *time.Time `json:"startDate"`
	CreateDate    time.Time  `json:"createDate"`
	PrimaryGoalID int64      `json:"primaryGoalId"`
	Variations    []named    `json:"variations"`
	websiteID     int64
	goals         []int64
}

type named struct {
	ID int64 `json:"id"`
}

// smallEvents is how many events a campaign has at most that counts as small.
const smallEvents = 100_000

// pageSize is how much of a list is asked for at once: all servers allow it.
const pageSize = 500

// find learns what the server has, as a page would.
func (c *client) find(ctx context.Context, o *Options) (*subjects, error) {
	s := &subjects{values: map[string][]string{"visitorType": {"new", "returning"}}, lists: []string{"/v1/websites"}}
	var websites []named
	if err := c.read(ctx, "/v1/websites", &websites); err != nil {
		return nil, err
	}
	for _, website := range websites {
		if err := c.findOn(ctx, website.ID, s); err != nil {
			return nil, err
		}
	}
	if len(o.Campaigns) > 0 {
		s.campaigns = slices.DeleteFunc(s.campaigns, func(f campaign) bool { return !slices.Contains(o.Campaigns, f.ID) })
	}
	if len(s.campaigns) == 0 {
		return nil, errors.New("the server has no campaign to ask about; make some with loadgen generate or lifthouse demo")
	}
	slices.SortStableFunc(s.campaigns, func(a, b campaign) int { return cmp.Compare(b.Views, a.Views) })
	for _, f := range s.campaigns {
		s.polled = append(s.polled, f.results(""))
		s.lists = append(s.lists, fmt.Sprintf("/v1/campaigns/%d", f.ID))
		if f.Views+f.GoalsReached < smallEvents {
			s.small = append(s.small, f)
		}
	}
	if len(s.small) == 0 {
		s.small = s.campaigns[len(s.campaigns)-1:]
	}
	if err := c.findValues(ctx, s); err != nil {
		return nil, err
	}
	if o.Mix[Ingest] == 0 || o.IngestToken == "" {
		return s, nil
	}
	return s, c.findIntake(ctx, o, len(websites), s)
}

// findOn adds what a website has.
func (c *client) findOn(ctx context.Context, website int64, s *subjects) error {
	on := func(path string) string { return fmt.Sprintf("%s?websiteId=%d", path, website) }
	goals, err := all[named](ctx, c, on("/v1/goals"))
	if err != nil {
		return err
	}
	campaigns, err := all[campaign](ctx, c, on("/v1/campaigns"))
	if err != nil {
		return err
	}
	for _, found := range campaigns {
		found.websiteID = website
		for _, goal := range goals {
			found.goals = append(found.goals, goal.ID)
		}
		s.campaigns = append(s.campaigns, found)
	}
	widgets, err := all[named](ctx, c, on("/v1/widgets"))
	if err != nil {
		return err
	}
	for _, widget := range widgets {
		path := fmt.Sprintf("/v1/widgets/%d", widget.ID)
		var detail struct {
			Experiments []named `json:"experiments"`
		}
		if err := c.read(ctx, path, &detail); err != nil {
			return err
		}
		s.polled = append(s.polled, path+"/results")
		s.lists = append(s.lists, path)
		for _, experiment := range detail.Experiments {
			s.polled = append(s.polled, fmt.Sprintf("%s/experiments/%d/results", path, experiment.ID))
		}
	}
	s.lists = append(s.lists, on("/v1/campaigns"), on("/v1/widgets"), on("/v1/goals"), on("/v1/targets"))
	return nil
}

// all reads a list to its end.
func all[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var found []T
	for {
		var page []T
		if err := c.read(ctx, fmt.Sprintf("%s&offset=%d&limit=%d", path, len(found), pageSize), &page); err != nil {
			return nil, err
		}
		found = append(found, page...)
		if len(page) < pageSize {
			return found, nil
		}
	}
}

// findValues learns from breakdowns of the largest campaign which values can
// be filtered by.
func (c *client) findValues(ctx context.Context, s *subjects) error {
	for _, dimension := range []string{"device", "country", "referrer"} {
		var report struct {
			Breakdown []struct {
				Value string `json:"value"`
			} `json:"breakdown"`
		}
		if err := c.read(ctx, s.campaigns[0].results("dimension="+dimension), &report); err != nil {
			return err
		}
		for _, cell := range report.Breakdown {
			if cell.Value != "(other)" && cell.Value != "(none)" {
				s.values[dimension] = append(s.values[dimension], cell.Value)
			}
		}
	}
	return nil
}

// findIntake chooses the campaign that events are sent to, the smallest where
// none is named, and learns its variations.
func (c *client) findIntake(ctx context.Context, o *Options, websites int, s *subjects) error {
	into := s.campaigns[len(s.campaigns)-1]
	at := slices.IndexFunc(s.campaigns, func(f campaign) bool { return f.ID == o.IngestCampaign })
	switch {
	case at >= 0:
		into = s.campaigns[at]
	case o.IngestCampaign != 0:
		return fmt.Errorf("ingest campaign %d: the server has none, or it is not among those to be asked about", o.IngestCampaign)
	case websites > 1:
		return errors.New("ingest campaign: the account has several websites, so name a campaign of the ingest token's own")
	}
	website, goals := into.websiteID, into.goals
	if err := c.read(ctx, fmt.Sprintf("/v1/campaigns/%d", into.ID), &into); err != nil {
		return err
	}
	into.websiteID, into.goals = website, goals
	if into.PrimaryGoalID == 0 && len(goals) > 0 {
		into.PrimaryGoalID = goals[0]
	}
	s.into = &into
	return nil
}

// results is the path of the campaign's results.
func (f *campaign) results(query string) string {
	path := fmt.Sprintf("/v1/campaigns/%d/results", f.ID)
	if query != "" {
		path += "?" + query
	}
	return path
}
