package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"lifthouse/schema"
)

// Change is a change of one resource that applying a file causes, or would cause.
type Change struct {
	AccountID int64
	Kind      string
	ID        int64
	Name      string
	Created   bool
	Archived  bool          // the file does not name the resource
	Fields    []FieldChange // changed fields of an existing resource
	Shares    []NamedShare  // fractions of the campaign's traffic; nil for other resources
	Notes     []string      // of a new campaign or widget: defaults that the file does not set, and what it lacks
}

// FieldChange is a changed field of a definition, before and after the change, as
// JSON. A missing value is empty.
type FieldChange struct{ Field, Before, After string }

// NamedShare is the fraction of a campaign's visitors that see a variation.
type NamedShare struct {
	Name  string
	Share float64
}

// Apply changes the store's catalogue to what the file declares, in one atomic
// insert. Resources that the file does not name remain, unless file.Prune. The
// state of existing resources (active, dates) does not change. Apply returns the
// changes. If dryRun is true, it changes nothing. If the file violates a
// constraint, the error is of type Faults.
func (c *Catalogue) Apply(ctx context.Context, file File, dryRun bool) ([]Change, error) {
	var changes []Change
	now := time.Now().UTC().Truncate(time.Millisecond)
	plans := map[key]Plan{}
	err := c.change(ctx, func(current []row) ([]row, error) {
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		if err := file.validate(known); err != nil {
			return nil, err
		}
		a := applier{now: now, known: known, declares: &file, current: make(map[key]row, len(current)), named: map[key]bool{}, plans: plans}
		for _, r := range current {
			a.current[r.key] = r
		}
		if err := a.file(&file); err != nil {
			return nil, err
		}
		if file.Prune {
			a.prune(current)
		}
		if changes == nil { // on a retry after a conflict, some changes are already stored
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
	now      time.Time
	known    *Snapshot
	declares *File
	current  map[key]row
	named    map[key]bool // the rows that the file declares
	plans    map[key]Plan // of existing campaigns before the change, also on a retry
	rows     []row
	changes  []Change
}

func (a *applier) file(file *File) error {
	for i := range file.Accounts {
		account := &file.Accounts[i]
		if _, err := a.define(account.ID, kindAccount, account.ID, account.Name, account); err != nil {
			return err
		}
		for w := range account.Websites {
			given := givenIn(file.lines, fmt.Sprintf("accounts[%d].websites[%d]", i, w))
			if err := a.website(account.ID, &account.Websites[w], given); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) website(account int64, site *Website, given given) error {
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
		if err := a.campaign(account, site, i, given.within("campaigns", i)); err != nil {
			return err
		}
	}
	if err := a.capsOfOtherCampaigns(account, site); err != nil {
		return err
	}
	for i := range site.Widgets {
		widget := &site.Widgets[i]
		changed, err := a.define(account, kindWidget, widget.ID, widget.Name, widget)
		if err != nil {
			return err
		}
		a.note(changed, widget.notes)
		shares := map[int64]Shares{}
		for i := range widget.Experiments {
			shares[widget.Experiments[i].ID] = widget.Experiments[i].Shares()
		}
		if err := a.state(&declared{resource{account, kindWidget, widget.ID}, widget.Name, widget.Initial, shares, nil}, changed); err != nil {
			return err
		}
	}
	return nil
}

// target applies a target. Its state contains only dates.
func (a *applier) target(account int64, target *Target) error {
	changed, err := a.define(account, kindTarget, target.ID, target.Name, target)
	if err != nil {
		return err
	}
	return a.state(&declared{resource{account, kindTarget, target.ID}, target.Name, Initial{CreateDate: target.CreateDate}, nil, nil}, changed)
}

func (a *applier) campaign(account int64, site *Website, i int, given given) error {
	campaign := &site.Campaigns[i]
	changed, err := a.define(account, kindCampaign, campaign.ID, campaign.Name, campaign)
	if err != nil {
		return err
	}
	if changed {
		a.changes[len(a.changes)-1].Shares = campaign.namedShares()
	}
	a.note(changed, func() []string { return campaign.notes(given) })
	d := &declared{resource{account, kindCampaign, campaign.ID}, campaign.Name, campaign.Initial, map[int64]Shares{0: campaign.Shares()}, nil}
	before, exists, err := a.planBefore(key{account, kindCampaign, campaign.ID, partDefinition})
	if err != nil {
		return err
	}
	if exists && !a.declares.ReplacePlans {
		d.plans = &[2]Plan{before, campaign.Plan(a.capAfter(account, site, campaign.PrimaryGoalID))}
	}
	return a.state(d, changed)
}

// capsOfOtherCampaigns records the plans of the campaigns that the file does not name, but
// whose primary goal gets another cap. Campaigns that are pruned have none.
func (a *applier) capsOfOtherCampaigns(account int64, site *Website) error {
	if a.declares.Prune {
		return nil
	}
	for id, campaign := range a.known.Account(account).Campaigns {
		at := key{account, kindCampaign, id, partDefinition}
		if campaign.WebsiteID != site.ID || a.named[at] {
			continue
		}
		before, _, err := a.planBefore(at)
		if err != nil {
			return err
		}
		after := a.capAfter(account, site, campaign.PrimaryGoalID)
		if before.ValueCap.Equal(after) {
			continue
		}
		d := &declared{resource: resource{account, kindCampaign, id}, name: campaign.Name, plans: &[2]Plan{before, campaign.Plan(after)}}
		if err := a.state(d, false); err != nil {
			return err
		}
	}
	return nil
}

// capBefore returns the cap of a goal before the file is applied.
func (a *applier) capBefore(account, goal int64) *schema.Cap {
	return a.known.Account(account).Goals[goal].ValueCap
}

// capAfter returns the cap of a goal after the file is applied.
func (a *applier) capAfter(account int64, site *Website, goal int64) *schema.Cap {
	for i := range site.Goals {
		if site.Goals[i].ID == goal {
			return site.Goals[i].ValueCap
		}
	}
	return a.capBefore(account, goal)
}

// planBefore returns the plan of a campaign before the file is applied. On a retry, the
// current definition may be that of the file.
func (a *applier) planBefore(at key) (before Plan, exists bool, err error) {
	if before, exists = a.plans[at]; exists {
		return before, true, nil
	}
	row, exists := a.current[at]
	if !exists {
		return Plan{}, false, nil
	}
	var defined Campaign
	if err := json.Unmarshal([]byte(row.Body), &defined); err != nil {
		return Plan{}, false, fmt.Errorf("campaign %d: %w", at.ID, err)
	}
	a.plans[at] = defined.Plan(a.capBefore(at.AccountID, defined.PrimaryGoalID))
	return a.plans[at], true, nil
}

// namedShares returns the fractions of the variations: control gets its
// percentage, the others divide the rest by their weights.
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

// define adds the row of a definition that is new or has changed, and reports
// whether it did.
func (a *applier) define(account int64, k kind, id int64, name string, definition any) (bool, error) {
	body, err := encode(definition)
	if err != nil {
		return false, err
	}
	at := key{account, k, id, partDefinition}
	a.named[at] = true
	before, exists := a.current[at]
	if exists && !before.Archived && before.Body == body {
		return false, nil
	}
	fields, err := fieldChanges(before.Body, body)
	if err != nil {
		return false, err
	}
	change := Change{AccountID: account, Kind: string(k), ID: id, Name: name, Created: !exists || before.Archived, Fields: fields}
	if change.Created {
		change.Fields = nil
	}
	a.changes = append(a.changes, change)
	a.rows = append(a.rows, row{key: at, Version: before.Version + 1, Body: body})
	return true, nil
}

// declared is a resource of the file that has a state.
type declared struct {
	resource
	name    string
	initial Initial
	shares  map[int64]Shares // by experiment
	plans   *[2]Plan         // of an existing campaign, before and after the change
}

// state adds the first state of a resource, or the changed state if its
// definition changed or its shares are corrected.
func (a *applier) state(d *declared, changed bool) error {
	at := key{d.account, d.kind, d.id, partState}
	a.named[at] = true
	before, exists := a.current[at]
	state := State{Active: d.initial.Active, CreateDate: a.now, StartDate: utc(d.initial.StartDate), EndDate: utc(d.initial.EndDate)}
	if d.initial.CreateDate != nil {
		state.CreateDate = *utc(d.initial.CreateDate)
	}
	if state.Active && state.StartDate == nil {
		state.StartDate = &a.now
	}
	if state.StartDate != nil {
		state.Runs = []Run{{From: *state.StartDate, To: state.EndDate}}
	}
	if exists {
		if err := json.Unmarshal([]byte(before.Body), &state); err != nil {
			return fmt.Errorf("state of %s %d: %w", d.kind, d.id, err)
		}
	}
	was, err := encode(state.ShareHistory)
	if err != nil {
		return err
	}
	// The shares and the plan may differ although the definition does not: the shares are
	// corrected, or the row of another server has replaced the one that recorded them.
	planned := d.plans != nil && state.recordPlan(d.plans[0], d.plans[1], a.now)
	shared := state.record(d.shares, a.now, a.declares.CorrectShares)
	if exists && !changed && !planned && !shared {
		return nil
	}
	if exists && !changed && shared {
		is, err := encode(state.ShareHistory)
		if err != nil {
			return err
		}
		a.changes = append(a.changes, Change{AccountID: d.account, Kind: string(d.kind), ID: d.id, Name: d.name, Fields: []FieldChange{{"shareHistory", was, is}}})
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

// fieldChanges returns the differences of two JSON objects, ordered by field
// name.
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
