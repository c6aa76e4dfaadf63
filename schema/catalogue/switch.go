package catalogue

import (
	"context"
	"slices"
	"time"
)

// SwitchCampaign starts or stops a campaign of the account and returns it with
// its new state. If website is not 0, the campaign must belong to this website.
// found is false if there is no such campaign. If the campaign already has the
// state, nothing changes.
func (c *Catalogue) SwitchCampaign(ctx context.Context, account, website, id int64, active bool) (live LiveCampaign, found bool, err error) {
	owned, found, err := c.switchState(ctx, resource{account, kindCampaign, id}, website, active)
	return owned.Campaigns[id], found, err
}

// SwitchWidget is like SwitchCampaign, for a widget.
func (c *Catalogue) SwitchWidget(ctx context.Context, account, website, id int64, active bool) (live LiveWidget, found bool, err error) {
	owned, found, err := c.switchState(ctx, resource{account, kindWidget, id}, website, active)
	return owned.Widgets[id], found, err
}

// switchState starts or stops a resource, and returns the resources of its account. found is false if the
// website does not have the resource.
func (c *Catalogue) switchState(ctx context.Context, r resource, website int64, active bool) (owned *AccountResources, found bool, err error) {
	owned = &AccountResources{}
	select {
	case c.changing <- struct{}{}:
	case <-ctx.Done():
		return owned, false, context.Cause(ctx)
	}
	defer func() { <-c.changing }()
	now, at := time.Now().UTC().Truncate(time.Millisecond), key{r.account, r.kind, r.id, partState}
	current, err := c.changeAlone(ctx, &r, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		var state State
		if state, found = known.stateOf(r, website); !found || state.Active == active {
			return nil, nil
		}
		state.switchTo(active, now, authorOf(ctx))
		body, err := encodeJSON(state)
		next := row{key: at, Version: 1, Body: body}
		if before := slices.IndexFunc(current, func(r row) bool { return r.key == at }); before >= 0 {
			next.Version = current[before].Version + 1
		}
		return []row{next}, err
	})
	if err != nil {
		return owned, false, err
	}
	known, err := newSnapshot(current)
	if err != nil {
		return owned, false, err
	}
	return known.AccountResources(r.account), found, nil
}

// stateOf returns the state of a campaign or a widget of a website; 0: of any website.
func (s *Snapshot) stateOf(r resource, website int64) (state State, found bool) {
	owned, at := s.AccountResources(r.account), int64(0)
	if r.kind == kindCampaign {
		live, exists := owned.Campaigns[r.id]
		at, state, found = live.WebsiteID, live.State, exists
	} else {
		live, exists := owned.Widgets[r.id]
		at, state, found = live.WebsiteID, live.State, exists
	}
	return state, found && (website == 0 || website == at)
}

func (s *State) switchTo(active bool, now time.Time, author string) {
	s.Active, s.UpdateDate, s.Runs = active, now, slices.Clone(s.Runs)
	if !active {
		s.EndDate = &now
		if last := len(s.Runs) - 1; last >= 0 {
			s.Runs[last].To, s.Runs[last].StoppedBy = &now, author
		}
		return
	}
	s.EndDate = nil
	s.Runs = append(s.Runs, Run{From: now, StartedBy: author})
	if s.StartDate == nil {
		s.StartDate = &now
	}
}
