package catalogue

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Starts and stops that arrive while others are being made wait, and are then made together
// with one read, one insert and one read.

// switches are the starts and stops that wait.
type switches struct {
	sync.Mutex
	waiting []*stateSwitch
}

// stateSwitch is a start or a stop.
type stateSwitch struct {
	resource
	website int64 // to which the resource must belong; 0: any
	active  bool
	author  string
	done    chan struct{}     // closed when owned, found and err are set
	owned   *AccountResources // the account's resources after the change
	found   bool
	err     error
}

// SwitchCampaign starts or stops a campaign of the account and returns it with
// its new state. If website is not 0, the campaign must belong to this website.
// found is false if there is no such campaign. If the campaign already has the
// state, nothing changes.
func (c *Catalogue) SwitchCampaign(ctx context.Context, account, website, id int64, active bool) (live LiveCampaign, found bool, err error) {
	owned, found, err := c.switchState(ctx, &stateSwitch{resource: resource{account, kindCampaign, id}, website: website, active: active})
	return owned.Campaigns[id], found, err
}

// SwitchWidget is like SwitchCampaign, for a widget.
func (c *Catalogue) SwitchWidget(ctx context.Context, account, website, id int64, active bool) (live LiveWidget, found bool, err error) {
	owned, found, err := c.switchState(ctx, &stateSwitch{resource: resource{account, kindWidget, id}, website: website, active: active})
	return owned.Widgets[id], found, err
}

// switchState makes a start or stop. One of the waiting requests makes the changes of all
// of them.
func (c *Catalogue) switchState(ctx context.Context, s *stateSwitch) (*AccountResources, bool, error) {
	s.author, s.done = authorOf(ctx), make(chan struct{})
	c.switches.addSwitch(s)
	for {
		select {
		case <-s.done:
			return s.owned, s.found, s.err
		case c.changing <- struct{}{}:
			c.makeSwitches(ctx)
			<-c.changing
		case <-ctx.Done():
			if c.switches.removeSwitch(s) {
				return &AccountResources{}, false, context.Cause(ctx)
			}
			<-s.done // the switch is already being made, which ends within changeTimeout
		}
	}
}

func (w *switches) addSwitch(s *stateSwitch) {
	w.Lock()
	defer w.Unlock()
	w.waiting = append(w.waiting, s)
}

// removeSwitch reports whether the request was still waiting.
func (w *switches) removeSwitch(s *stateSwitch) bool {
	w.Lock()
	defer w.Unlock()
	at := slices.Index(w.waiting, s)
	if at >= 0 {
		w.waiting = slices.Delete(w.waiting, at, at+1)
	}
	return at >= 0
}

// takeBatch returns the requests that can be made together, in the order of their arrival. A
// start and a stop of the same resource are made one after the other.
func (w *switches) takeBatch() []*stateSwitch {
	w.Lock()
	defer w.Unlock()
	var taken, left []*stateSwitch
	wanted := map[resource]bool{}
	for _, s := range w.waiting {
		if active, known := wanted[s.resource]; known && active != s.active {
			left = append(left, s)
			continue
		}
		wanted[s.resource] = s.active
		taken = append(taken, s)
	}
	w.waiting = left
	return taken
}

// makeSwitches makes the waiting starts and stops. Canceling a request does not end
// it, because it also serves other requests.
func (c *Catalogue) makeSwitches(ctx context.Context) {
	taken := c.switches.takeBatch()
	if len(taken) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	of := make([]resource, len(taken))
	for i, s := range taken {
		of[i] = s.resource
	}
	current, err := c.changeAlone(ctx, of, func(current []row) ([]row, error) { return switchRows(current, taken) })
	var known *Snapshot
	if err == nil {
		known, err = newSnapshot(current)
	}
	for _, s := range taken {
		s.owned, s.err = &AccountResources{}, err
		if err == nil {
			s.owned = known.AccountResources(s.account)
			_, s.found = s.stateIn(known)
		}
		close(s.done)
	}
}

// stateIn returns the state of the resource in a snapshot.
func (s *stateSwitch) stateIn(known *Snapshot) (State, bool) {
	var website int64
	var state State
	var found bool
	switch owned := known.AccountResources(s.account); s.kind {
	case kindCampaign:
		live, exists := owned.Campaigns[s.id]
		website, state, found = live.WebsiteID, live.State, exists
	default:
		live, exists := owned.Widgets[s.id]
		website, state, found = live.WebsiteID, live.State, exists
	}
	return state, found && (s.website == 0 || s.website == website)
}

// switchRows returns the rows of the states that change.
func switchRows(current []row, taken []*stateSwitch) ([]row, error) {
	known, err := newSnapshot(current)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	var rows []row
	for _, s := range taken {
		state, found := s.stateIn(known)
		at := key{s.account, s.kind, s.id, partState}
		if !found || state.Active == s.active || slices.ContainsFunc(rows, func(r row) bool { return r.key == at }) {
			continue
		}
		state.switchTo(s.active, now, s.author)
		body, err := encodeJSON(state)
		if err != nil {
			return nil, err
		}
		next := row{key: at, Version: 1, Body: body, By: s.author}
		if before := slices.IndexFunc(current, func(r row) bool { return r.key == at }); before >= 0 {
			next.Version = current[before].Version + 1
		}
		rows = append(rows, next)
	}
	return rows, nil
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
