package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"lifthouse/schema/documents"
)

// Change is a change of one resource that applying a file makes, or would make.
type Change struct {
	AccountID int64         `json:"-"`
	Kind      string        `json:"kind"`
	ID        int64         `json:"id"`
	Name      string        `json:"name"`
	Created   bool          `json:"-"`
	Archived  bool          `json:"-"`                // the file does not name the resource
	Fields    []FieldChange `json:"fields,omitempty"` // fields that changed in an existing resource
	Shares    []NamedShare  `json:"shares,omitempty"` // fractions of the campaign's traffic; nil for other resources
	// for a new campaign or widget: defaults that apply, and what is missing
	Notes []string `json:"notes,omitempty"`
}

// MarshalJSON returns the change with the field change: created, changed or archived.
func (c Change) MarshalJSON() ([]byte, error) {
	type fields Change
	text := map[[2]bool]string{
		{false, false}: "changed", {true, false}: "created", {false, true}: "archived",
	}[[2]bool{c.Created, c.Archived}]
	return json.Marshal(struct {
		fields
		Change string `json:"change"`
	}{fields(c), text})
}

// FieldChange is a changed field of a definition, before and after the change.
type FieldChange struct {
	Field  string   `json:"field"`
	Before JSONText `json:"before,omitempty"`
	After  JSONText `json:"after,omitempty"`
}

// JSONText is a value as JSON. A missing value is empty.
type JSONText string

// MarshalJSON returns the value.
func (t JSONText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

// NamedShare is the fraction of a campaign's visitors that see a variation.
type NamedShare struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// ApplyFile changes the store's catalogue to what the file declares, in one atomic insert, and returns the changes.
// Resources that the file does not name remain, unless file.Prune is set. The state of existing resources (active,
// dates) does not change. If dryRun is true, ApplyFile changes nothing. If the file violates a constraint, the error is
// a faults.List.
func (c *Catalogue) ApplyFile(ctx context.Context, file File, dryRun bool) ([]Change, error) {
	changes, _, err := c.ApplyToVersion(ctx, file, dryRun)
	return changes, err
}

// ErrVersionChanged means that File.Replaces does not accept the current version of the account.
var ErrVersionChanged = errors.New("the catalogue of the account has changed")

// ApplyToVersion is like ApplyFile, and also returns the version of the account file.AccountID with these changes and
// no others. If file.Replaces does not accept the version before the changes, the error is ErrVersionChanged, and
// nothing changes.
func (c *Catalogue) ApplyToVersion(ctx context.Context, file File,
	dryRun bool,
) (changes []Change, version uint64, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	plans := map[key]map[int64]Plan{}
	pictures, err := c.readPictures(ctx, &file)
	if err != nil {
		return nil, 0, err
	}
	retry := false // after a conflict: some rows are already stored, and the version was compared before
	_, err = c.changeRows(ctx, nil, func(current []row, known *Snapshot) ([]row, error) {
		if err := file.validateAgainst(known, pictures).Err(); err != nil {
			return nil, err
		}
		a := applier{
			now: now, author: AuthorOf(ctx), known: known, declares: &file, current: make(map[key]row, len(current)),
			named: map[key]bool{}, plans: plans,
		}
		for _, r := range current {
			a.current[r.key] = r
		}
		a.applyAccounts()
		if file.Prune {
			a.archiveOthers(current)
		}
		if a.err != nil || retry {
			return a.rows, a.err
		}
		version = known.AccountResources(file.AccountID).Version
		if file.Replaces != nil && !file.Replaces(version) {
			return nil, ErrVersionChanged
		}
		changes = a.changes
		if dryRun {
			return nil, nil
		}
		after, err := a.snapshotAfter()
		if err != nil {
			return nil, err
		}
		version = after.AccountResources(file.AccountID).Version
		retry = true
		return a.rows, nil
	})
	if errors.Is(err, ErrVersionChanged) { // another server changed the account: show the change at once
		return nil, 0, errors.Join(err, c.RefreshSnapshot(ctx))
	}
	return changes, version, err
}

// readPictures returns the ids of the stored pictures of the accounts that a file declares with a picture.
func (c *Catalogue) readPictures(ctx context.Context, file *File) (map[int64]map[string]bool, error) {
	of := map[int64]map[string]bool{}
	stored := documents.New(c.conn)
	for i := range file.Accounts {
		account := &file.Accounts[i]
		if len(account.pictures()) == 0 {
			continue
		}
		all, err := stored.ReadDocuments(ctx, account.ID, 0, documents.Picture)
		if err != nil {
			return nil, err
		}
		of[account.ID] = map[string]bool{}
		for k := range all {
			of[account.ID][all[k].ID] = true
		}
	}
	return of, nil
}

// mayChange reports whether the file may change an account.
func (f *File) mayChange(account int64) bool { return f.AccountID == 0 || f.AccountID == account }

type applier struct {
	now      time.Time
	author   string
	known    *Snapshot
	declares *File
	current  map[key]row
	named    map[key]bool           // the rows that the file declares
	plans    map[key]map[int64]Plan // plans of existing campaigns and widgets before the change, also on a retry
	rows     []row
	changes  []Change
	err      error // a row cannot be encoded or decoded; the rows and changes are incomplete
}

// applyAccounts adds the rows of what the file declares.
func (a *applier) applyAccounts() {
	for i := range a.declares.Accounts {
		account := &a.declares.Accounts[i]
		a.defineResource(account.ID, kindAccount, account.ID, account.Name, account)
		for w := range account.Websites {
			a.applyWebsite(account.ID, &account.Websites[w], fmt.Sprintf("accounts[%d].websites[%d]", i, w))
		}
		stored := a.known.AccountResources(account.ID).Webhooks
		for _, hook := range account.Webhooks {
			before := stored[hook.ID]
			hook.keepSecret(&before.Webhook)
			changed := a.defineResource(account.ID, kindWebhook, hook.ID, hook.URL, hook)
			a.addState(&declared{resource: resource{account.ID, kindWebhook, hook.ID}, name: hook.URL}, changed)
		}
	}
}

// archiveOthers archives the resources that the file does not name, of the accounts that it may change. The tokens of
// an archived account are archived too.
func (a *applier) archiveOthers(current []row) {
	for _, r := range current {
		account := key{r.AccountID, kindAccount, r.AccountID, partDefinition}
		isOfRemaining := r.Kind == kindToken && a.named[account]
		remains := a.named[r.key] || isOfRemaining || r.Part == partSalt
		if r.Archived || remains || !a.declares.mayChange(r.AccountID) {
			continue
		}
		a.rows = append(a.rows, r.archivedVersion())
		if r.Part == partDefinition {
			var named struct{ Name, Domain, URL string }
			a.decodeRow(&r, &named)
			a.changes = append(a.changes, Change{
				AccountID: r.AccountID, Kind: string(r.Kind), ID: r.ID,
				Name: cmp.Or(named.Name, named.Domain, named.URL), Archived: true,
			})
		}
	}
}

// snapshotAfter returns the catalogue with the changes of the file and no others.
func (a *applier) snapshotAfter() (*Snapshot, error) {
	after := maps.Clone(a.current)
	for _, r := range a.rows {
		after[r.key] = r
	}
	return newSnapshot(slices.Collect(maps.Values(after)))
}

func (a *applier) applyWebsite(account int64, site *Website, path string) {
	a.defineResource(account, kindWebsite, site.ID, site.Domain, site)
	for i := range site.Goals {
		site.Goals[i].WebsiteID = site.ID
		a.defineResource(account, kindGoal, site.Goals[i].ID, site.Goals[i].Name, &site.Goals[i])
	}
	for i := range site.Targets {
		site.Targets[i].WebsiteID = site.ID
		target := &site.Targets[i]
		changed := a.defineResource(account, kindTarget, target.ID, target.Name, target)
		a.addState(&declared{
			resource: resource{account, kindTarget, target.ID}, name: target.Name,
			initial: Initial{CreateDate: target.CreateDate},
		}, changed)
	}
	for i := range site.Campaigns {
		a.applyCampaign(account, site, i, path)
	}
	for i := range site.Widgets {
		a.applyWidget(account, site, &site.Widgets[i])
	}
	a.plansOfOthers(account, site)
}

// applyCampaign adds the definition and the state of a campaign. path is that of its website.
func (a *applier) applyCampaign(account int64, site *Website, i int, path string) {
	campaign := &site.Campaigns[i]
	campaign.WebsiteID = site.ID
	changed := a.defineResource(account, kindCampaign, campaign.ID, campaign.Name, campaign)
	if changed {
		change := &a.changes[len(a.changes)-1]
		change.Shares = campaign.namedShares()
		if change.Created {
			change.Notes = a.campaignNotes(account, site, campaign, fmt.Sprintf("%s.campaigns[%d]", path, i))
		}
	}
	d := declared{
		resource: resource{account, kindCampaign, campaign.ID}, name: campaign.Name, initial: campaign.Initial,
		shares: map[int64]Shares{0: campaign.DeclaredShares()},
	}
	d.plans = a.changedPlans(d.resource, site, campaign)
	a.addState(&d, changed)
}

// namedShares returns the fraction of the visitors that each variation gets. Control gets its percentage. The others
// divide the rest by their weights.
func (c *Campaign) namedShares() []NamedShare {
	var shares []NamedShare
	weights := max(c.DeclaredShares().sumWeights(), 1)
	if c.ControlShare > 0 || len(c.Variations) == 0 { // else a variation takes its place
		shares = []NamedShare{{"Control", float64(c.ControlShare) / 100}}
	}
	for _, v := range c.Variations {
		share := float64(100-c.ControlShare) / 100 * float64(v.Share) / float64(weights)
		shares = append(shares, NamedShare{v.Name, share})
	}
	return shares
}

// applyWidget adds the definition and the state of a widget.
func (a *applier) applyWidget(account int64, site *Website, widget *Widget) {
	widget.WebsiteID = site.ID
	changed := a.defineResource(account, kindWidget, widget.ID, widget.Name, widget)
	d := declared{
		resource: resource{account, kindWidget, widget.ID}, name: widget.Name, initial: widget.Initial,
		shares: map[int64]Shares{},
	}
	notes := startNote(widget.Initial, fmt.Sprintf("/v1/widgets/%d", widget.ID))
	for i := range widget.Experiments {
		e := &widget.Experiments[i]
		d.shares[e.ID] = e.DeclaredShares()
		if !e.Active {
			notes = append(notes,
				fmt.Sprintf("experiment %d: active: false: set active: true in the file when it starts", e.ID))
		}
	}
	if last := len(a.changes) - 1; changed && a.changes[last].Created {
		a.changes[last].Notes = notes
	}
	d.plans = a.changedPlans(d.resource, site, widget)
	a.addState(&d, changed)
}

// planned is a resource with plans: a campaign or a widget.
type planned interface {
	plansByExperiment(of *Terms) map[int64]Plan
}

// changedPlans returns the plans of a resource before and after the file is applied. It returns nil if the resource is
// new, or if its plans are replaced.
func (a *applier) changedPlans(r resource, site *Website, after planned) *[2]map[int64]Plan {
	k := key{r.account, r.kind, r.id, partDefinition}
	row, exists := a.current[k]
	if a.plans[k] == nil && exists { // on a retry, the stored definition may already be the one in the file
		var defined planned = &Campaign{}
		if k.Kind == kindWidget {
			defined = &Widget{}
		}
		a.decodeRow(&row, defined)
		a.plans[k] = defined.plansByExperiment(a.known.AccountResources(k.AccountID).TermsOf(site.ID))
	}
	if a.plans[k] == nil || a.declares.ReplacePlans {
		return nil
	}
	return &[2]map[int64]Plan{a.plans[k], after.plansByExperiment(a.termsAfter(r.account, site))}
}

// termsAfter returns the terms of a website after the file is applied.
func (a *applier) termsAfter(account int64, site *Website) *Terms {
	return a.known.AccountResources(account).termsAfter(site, a.declares.Prune)
}

// plansOfOthers records the plans of campaigns and widgets that the file does not name, if the cap or the window of one
// of their goals changes, or the expression of one of their metrics. Pruned campaigns and widgets have no plans to
// record.
func (a *applier) plansOfOthers(account int64, site *Website) {
	if a.declares.Prune {
		return
	}
	record := func(kind kind, id, website int64, name string, definition planned) {
		r := resource{account, kind, id}
		if website != site.ID || a.named[key{account, kind, id, partDefinition}] {
			return
		}
		if plans := a.changedPlans(r, site, definition); plans != nil && !reflect.DeepEqual(plans[0], plans[1]) {
			a.addState(&declared{resource: r, name: name, plans: plans}, false)
		}
	}
	owned := a.known.AccountResources(account)
	for id, campaign := range owned.Campaigns {
		record(kindCampaign, id, campaign.WebsiteID, campaign.Name, &campaign.Campaign)
	}
	for id, widget := range owned.Widgets {
		record(kindWidget, id, widget.WebsiteID, widget.Name, &widget.Widget)
	}
}

// encodeBody returns the body of a row.
func (a *applier) encodeBody(body any) string {
	text, err := json.Marshal(body)
	if err != nil {
		a.err = err
	}
	return string(text)
}

func (a *applier) decodeRow(r *row, into any) {
	if err := json.Unmarshal([]byte(r.Body), into); err != nil {
		a.err = fmt.Errorf("%s of %s %d: %w", r.Part, r.Kind, r.ID, err)
	}
}

// defineResource adds a row for a definition that is new or has changed, and reports whether it did.
func (a *applier) defineResource(account int64, k kind, id int64, name string, definition any) bool {
	body := a.encodeBody(definition)
	at := key{account, k, id, partDefinition}
	a.named[at] = true
	before, exists := a.current[at]
	if exists && !before.Archived && before.Body == body {
		return false
	}
	change := Change{AccountID: account, Kind: string(k), ID: id, Name: name, Created: !exists || before.Archived}
	if !change.Created {
		var was, is map[string]json.RawMessage
		a.decodeRow(&before, &was)
		a.decodeRow(&row{key: at, Body: body}, &is)
		fields := map[string]json.RawMessage{}
		maps.Copy(fields, was)
		maps.Copy(fields, is)
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if string(was[field]) == string(is[field]) {
				continue
			}
			shown := FieldChange{field, JSONText(was[field]), JSONText(is[field])}
			if k == kindWebhook && field == "secret" {
				shown.Before, shown.After = hideText(shown.Before), hideText(shown.After)
			}
			change.Fields = append(change.Fields, shown)
		}
	}
	a.changes = append(a.changes, change)
	a.rows = append(a.rows, row{key: at, Version: before.Version + 1, Body: body})
	return true
}

// declared is a resource in the file that has a state.
type declared struct {
	resource
	name    string
	initial Initial
	shares  map[int64]Shares   // by experiment
	plans   *[2]map[int64]Plan // of an existing campaign or widget, before and after the change
}

// addState adds the first state of a resource. For an existing resource, it adds the changed state if the definition
// changed or the shares are corrected.
func (a *applier) addState(d *declared, changed bool) {
	at := key{d.account, d.kind, d.id, partState}
	a.named[at] = true
	before, exists := a.current[at]
	state := State{
		Active: d.initial.Active, CreateDate: *cmp.Or(utcTime(d.initial.CreateDate), &a.now),
		StartDate: utcTime(d.initial.StartDate), EndDate: utcTime(d.initial.EndDate),
	}
	if state.Active { // without a date of start, it starts now
		state.StartDate = cmp.Or(state.StartDate, &a.now)
	}
	if state.StartDate != nil {
		isDeclared := d.initial.StartDate != nil
		state.Runs = []Run{{From: *state.StartDate, To: state.EndDate, StartedBy: a.author, Declared: isDeclared}}
	}
	// a webhook that was archived gets a new date of creation
	if exists && (d.kind != kindWebhook || !before.Archived) {
		state = State{}
		a.decodeRow(&before, &state)
	}
	was := a.encodeBody(state.ShareHistory)
	// The shares and the plan may differ even if the definition is unchanged: the shares are corrected, or another
	// server's row has replaced the row that recorded them.
	planned := d.plans != nil && state.recordPlans(d.plans[0], d.plans[1], a.now)
	shared := state.recordShares(d.shares, a.now, a.declares.CorrectShares)
	isSame := exists && !changed
	if isSame && !planned && !shared {
		return
	}
	if isSame && shared {
		fields := []FieldChange{{"shareHistory", JSONText(was), JSONText(a.encodeBody(state.ShareHistory))}}
		a.changes = append(a.changes, Change{
			AccountID: d.account, Kind: string(d.kind), ID: d.id, Name: d.name, Fields: fields,
		})
	}
	state.UpdateDate = a.now
	a.rows = append(a.rows, row{key: at, Version: before.Version + 1, Body: a.encodeBody(state)})
}

func utcTime(d *Date) *time.Time {
	if d == nil {
		return nil
	}
	u := d.UTC().Truncate(time.Millisecond)
	return &u
}

// campaignNotes returns the defaults of a new campaign that apply because the file does not give them, what it lacks to
// start or to compare anything, and when it can be decided.
func (a *applier) campaignNotes(account int64, site *Website, c *Campaign, path string) []string {
	var defaults, notes []string
	lines := a.declares.read.lines // nil: the file was not read, and sets all fields
	for _, field := range []struct {
		name  string
		value any
	}{
		{"type", c.Type},
		{"controlShare", fmt.Sprintf("%d %%", c.ControlShare)},
		{"significanceLevel", fmt.Sprintf("%d %%", c.SignificanceLevel)},
		{"mde", fmt.Sprintf("%v %%", c.MDE)},
	} {
		if lines != nil && lines[path+"."+field.name] == 0 {
			defaults = append(defaults, fmt.Sprintf("%s %v", field.name, field.value))
		}
	}
	if len(defaults) > 0 {
		notes = append(notes, "defaults: "+strings.Join(defaults, ", "))
	}
	if c.TrafficAllocation == nil {
		notes = append(notes, "trafficAllocation is not declared: worth is that of the visitors in the test")
	}
	switch weights := c.DeclaredShares().sumWeights(); {
	case len(c.Variations) == 0:
		notes = append(notes, "no variations: nothing is compared with control")
	case weights == 0:
		notes = append(notes, "all variations have share 0")
	}
	plan := c.DeclaredPlan(a.termsAfter(account, site))
	if plan.countsAllGoals() {
		notes = append(notes, "no primaryGoalId: reports count all goals")
	}
	notes = append(notes, startNote(c.Initial, fmt.Sprintf("/v1/campaigns/%d", c.ID))...)

	// Returns change orders after the conversion window.
	settles := func(g Guardrail) bool { return g.Settle != nil }
	mayReturn := c.Type == "shippingExperiment" || c.Type == "productExperiment"
	if mayReturn && (c.Goals == nil || !slices.ContainsFunc(c.Goals.Guardrails, settles)) {
		notes = append(notes, fmt.Sprintf("returns may change: a guardrail such as {goalId: %d, metric: "+
			"valuePerVisitor, margin: 3, window: 7d, settle: 30d} waits for them", c.PrimaryGoalID))
	}

	// The first look may have to wait for a conversion window.
	if w := plan.ConversionWindow; w != nil {
		maturity := *cmp.Or(plan.Maturity, new(DefaultMaturity))
		day := (7*24*time.Hour + w.Maturity() + time.Duration(maturity)*time.Hour).Hours() / 24
		waits := "for the conversions of its last visitors"
		if w.SettlesOnly() {
			waits = "until its last orders have settled"
		}
		notes = append(notes, fmt.Sprintf("first look %.0f days after the first full day begins: a week, %s %s, and "+
			"%d hours for late events", math.Ceil(day), w.EndInWords(), waits, maturity))
	}
	return notes
}

func startNote(initial Initial, path string) []string {
	if initial.Active {
		return nil
	}
	return []string{fmt.Sprintf("active: false: start with POST %s/start, or on the page", path)}
}
