package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Change is what applying a file does, or would do, to one resource.
type Change struct {
	AccountID int64
	Kind      string
	ID        int64
	Name      string
	Created   bool
	Archived  bool          // no longer named, and so hidden
	Fields    []FieldChange // of a resource that stood before
	Shares    []NamedShare  // resolved to fractions of all traffic in the test; campaigns only
}

// FieldChange is one field of a definition, before and after, as JSON; empty
// where it was or is absent.
type FieldChange struct{ Field, Before, After string }

// NamedShare is the fraction of a campaign's visitors a variation is given.
type NamedShare struct {
	Name  string
	Share float64
}

// Apply makes the store's catalogue say what the file says, in one insert:
// all of it or nothing. What the file does not name stays; the state of a
// resource that stands already (active, dates) stays too. It returns what
// changes, and with dryRun changes nothing. A file that breaks a constraint
// gives Faults.
func (c *Catalogue) Apply(ctx context.Context, file File, dryRun bool) ([]Change, error) {
	var changes []Change
	now := time.Now().UTC().Truncate(time.Millisecond)
	err := c.change(ctx, nil, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		if err := file.validate(known); err != nil {
			return nil, err
		}
		a := applier{now: now, known: known, correct: file.CorrectShares, current: make(map[key]row, len(current)), named: map[key]bool{}}
		for _, r := range current {
			a.current[r.key] = r
		}
		if err := a.file(&file); err != nil {
			return nil, err
		}
		if file.Prune {
			a.prune(current)
		}
		if changes == nil { // after a race the rest is done already
			changes = a.changes
		}
		if dryRun {
			return nil, nil
		}
		return a.rows, nil
	})
	return changes, err
}

type applier struct {
	now     time.Time
	known   *Snapshot
	correct bool // shares correct a mistake
	current map[key]row
	named   map[key]bool // what the file declares
	rows    []row
	changes []Change
}

func (a *applier) file(file *File) error {
	for i := range file.Accounts {
		account := &file.Accounts[i]
		if _, err := a.define(account.ID, kindAccount, account.ID, account.Name, account); err != nil {
			return err
		}
		for w := range account.Websites {
			if err := a.website(account.ID, &account.Websites[w]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) website(account int64, site *Website) error {
	if _, err := a.define(account, kindWebsite, site.ID, site.Domain, site); err != nil {
		return err
	}
	for i := range site.Goals {
		if _, err := a.define(account, kindGoal, site.Goals[i].ID, site.Goals[i].Name, &site.Goals[i]); err != nil {
			return err
		}
	}
	for i := range site.Targets {
		if err := a.target(account, &site.Targets[i]); err != nil {
			return err
		}
	}
	for i := range site.Campaigns {
		if err := a.campaign(account, &site.Campaigns[i]); err != nil {
			return err
		}
	}
	for i := range site.Widgets {
		widget := &site.Widgets[i]
		changed, err := a.define(account, kindWidget, widget.ID, widget.Name, widget)
		if err != nil {
			return err
		}
		shares := map[int64]Shares{}
		for i := range widget.Experiments {
			shares[widget.Experiments[i].ID] = widget.Experiments[i].Shares()
		}
		if err := a.state(account, kindWidget, widget.ID, widget.Name, changed, widget.Initial, shares); err != nil {
			return err
		}
	}
	return nil
}

// target keeps a state for its dates alone.
func (a *applier) target(account int64, target *Target) error {
	changed, err := a.define(account, kindTarget, target.ID, target.Name, target)
	if err != nil {
		return err
	}
	return a.state(account, kindTarget, target.ID, target.Name, changed, Initial{CreateDate: target.CreateDate}, nil)
}

func (a *applier) campaign(account int64, campaign *Campaign) error {
	changed, err := a.define(account, kindCampaign, campaign.ID, campaign.Name, campaign)
	if err != nil {
		return err
	}
	if changed {
		a.changes[len(a.changes)-1].Shares = campaign.namedShares()
	}
	return a.state(account, kindCampaign, campaign.ID, campaign.Name, changed, campaign.Initial, map[int64]Shares{0: campaign.Shares()})
}

// namedShares resolves the shares: control gets its percentage, the others
// divide the rest by their weights.
func (c *Campaign) namedShares() []NamedShare {
	weights := 0
	for _, v := range c.Variations {
		weights += v.Share
	}
	rest := float64(100-c.ControlShare) / 100
	shares := []NamedShare{{"Control", float64(c.ControlShare) / 100}}
	for _, v := range c.Variations {
		shares = append(shares, NamedShare{v.Name, rest * float64(v.Share) / float64(max(weights, 1))})
	}
	return shares
}

// define notes the definition's row if it is new or differs from the one that
// stands, and says whether it did.
func (a *applier) define(account int64, k kind, id int64, name string, definition any) (bool, error) {
	body, err := encode(definition)
	if err != nil {
		return false, err
	}
	at := key{account, k, id, partDefinition}
	a.named[at] = true
	before, stood := a.current[at]
	if stood && !before.Archived && before.Body == body {
		return false, nil
	}
	fields, err := fieldChanges(before.Body, body)
	if err != nil {
		return false, err
	}
	change := Change{AccountID: account, Kind: string(k), ID: id, Name: name, Created: !stood || before.Archived, Fields: fields}
	if change.Created {
		change.Fields = nil
	}
	a.changes = append(a.changes, change)
	a.rows = append(a.rows, row{key: at, Version: before.Version + 1, Body: body})
	return true, nil
}

// state notes the first state of a resource, or the change of its date and
// shares when its definition changed or its shares are corrected.
func (a *applier) state(account int64, k kind, id int64, name string, changed bool, initial Initial, shares map[int64]Shares) error {
	at := key{account, k, id, partState}
	a.named[at] = true
	before, stood := a.current[at]
	state := State{Active: initial.Active, CreateDate: a.now, StartDate: utc(initial.StartDate), EndDate: utc(initial.EndDate)}
	if initial.CreateDate != nil {
		state.CreateDate = *utc(initial.CreateDate)
	}
	if state.Active && state.StartDate == nil {
		state.StartDate = &a.now
	}
	if stood {
		if err := json.Unmarshal([]byte(before.Body), &state); err != nil {
			return fmt.Errorf("state of %s %d: %w", k, id, err)
		}
	}
	was, err := encode(state.ShareHistory)
	if err != nil {
		return err
	}
	// Shares may differ though the definition does not: they are corrected, or
	// another server's row won over the one that had them.
	if recorded := state.record(shares, a.now, a.correct); stood && !changed {
		if !recorded {
			return nil
		}
		is, err := encode(state.ShareHistory)
		if err != nil {
			return err
		}
		a.changes = append(a.changes, Change{AccountID: account, Kind: string(k), ID: id, Name: name, Fields: []FieldChange{{"shareHistory", was, is}}})
	}
	state.UpdateDate = a.now
	body, err := encode(state)
	if err != nil {
		return err
	}
	a.rows = append(a.rows, row{key: at, Version: before.Version + 1, Body: body})
	return nil
}

func utc(d *Date) *time.Time {
	if d == nil {
		return nil
	}
	u := d.UTC().Truncate(time.Millisecond)
	return &u
}

// fieldChanges compares two JSON objects field by field, in the order of
// their names.
func fieldChanges(before, after string) ([]FieldChange, error) {
	var was, is map[string]json.RawMessage
	if before != "" {
		if err := json.Unmarshal([]byte(before), &was); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal([]byte(after), &is); err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	for field := range was {
		fields[field] = true
	}
	for field := range is {
		fields[field] = true
	}
	var changes []FieldChange
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if string(was[field]) != string(is[field]) {
			changes = append(changes, FieldChange{Field: field, Before: string(was[field]), After: string(is[field])})
		}
	}
	return changes, nil
}
