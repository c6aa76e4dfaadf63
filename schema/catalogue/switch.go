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
	err = c.change(ctx, &resource{account, kindCampaign, id}, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		live, found = known.Account(account).Campaigns[id]
		found = found && (website == 0 || website == live.WebsiteID)
		if !found {
			return nil, nil
		}
		return switchRow(current, key{account, kindCampaign, id, partState}, &live.State, active)
	})
	return live, found, err
}

// SwitchWidget is like SwitchCampaign, for a widget.
func (c *Catalogue) SwitchWidget(ctx context.Context, account, website, id int64, active bool) (live LiveWidget, found bool, err error) {
	err = c.change(ctx, &resource{account, kindWidget, id}, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		live, found = known.Account(account).Widgets[id]
		found = found && (website == 0 || website == live.WebsiteID)
		if !found {
			return nil, nil
		}
		return switchRow(current, key{account, kindWidget, id, partState}, &live.State, active)
	})
	return live, found, err
}

// switchRow changes the state, if it differs, and returns its row.
func switchRow(current []row, at key, state *State, active bool) ([]row, error) {
	if state.Active == active {
		return nil, nil
	}
	state.switchTo(active, time.Now().UTC().Truncate(time.Millisecond))
	body, err := encode(state)
	if err != nil {
		return nil, err
	}
	next := row{key: at, Version: 1, Body: body}
	if before := slices.IndexFunc(current, func(r row) bool { return r.key == at }); before >= 0 {
		next.Version = current[before].Version + 1
	}
	return []row{next}, nil
}

func (s *State) switchTo(active bool, now time.Time) {
	s.Active, s.UpdateDate = active, now
	if !active {
		s.EndDate = &now
		return
	}
	s.EndDate = nil
	if s.StartDate == nil {
		s.StartDate = &now
	}
}
