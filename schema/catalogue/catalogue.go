// Package catalogue stores the configuration of a store: accounts, API tokens, and for each website its goals, targets,
// campaigns and widgets.
//
// A catalogue file declares the definition of a resource. Its state changes at run time: active, dates and the history
// of shares. Definition and state are separate rows, so neither overwrites the other. Servers read a Snapshot from
// memory, which Catalogue refreshes from the store.
package catalogue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/books"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Catalogue changes the stored catalogue and keeps a Snapshot of it in memory.
type Catalogue struct {
	conn     driver.Conn
	writer   string // identifies the rows of this process
	snapshot atomic.Pointer[Snapshot]

	changing chan struct{} // holds an element while rows are read and changed

	refreshing sync.Mutex
	rows       map[key]row // of the snapshot
	position   position    // of rows
}

// Open reads the catalogue of a store.
func Open(ctx context.Context, conn driver.Conn) (*Catalogue, error) {
	c := &Catalogue{conn: conn, writer: rand.Text(), changing: make(chan struct{}, 1)}
	// for example if Keeper is unavailable; the local rows are used then
	if err := schema.SyncReplica(ctx, conn, "catalogue"); err != nil {
		slog.WarnContext(ctx, "synchronize catalogue failed", "err", err)
	}
	return c, c.RefreshSnapshot(ctx)
}

// Snapshot returns the catalogue that was last read.
func (c *Catalogue) Snapshot() *Snapshot { return c.snapshot.Load() }

// RefreshPeriodically calls RefreshSnapshot at the given interval until the context ends. If RefreshSnapshot fails, the
// last snapshot remains in use.
func (c *Catalogue) RefreshPeriodically(ctx context.Context, every time.Duration) {
	schema.Repeat(ctx, every, "refresh catalogue", c.RefreshSnapshot)
}

// Snapshot is an immutable copy of the whole catalogue.
type Snapshot struct {
	accounts map[int64]*AccountResources
	websites map[int64]int64 // account by website
	archived map[int64]int64 // account by archived website
	ever     map[key]bool    // the definitions, also those that are archived
	tokens   map[Digest]Token
	salts    map[int64][]byte // by account
}

// AccountResources are an account and all resources that it owns.
type AccountResources struct {
	Account
	// Version changes whenever the account or one of its resources changes, except tokens. A value never recurs, and
	// all servers of a store have the same value.
	Version   uint64 `json:"-"`
	Websites  map[int64]Website
	Goals     map[int64]Goal
	Targets   map[int64]LiveTarget
	Campaigns map[int64]LiveCampaign
	Widgets   map[int64]LiveWidget
	Webhooks  map[int64]LiveWebhook

	changes changes
}

// LiveCampaign is the definition and the state of a campaign.
type LiveCampaign struct {
	Campaign
	State
}

// LiveWidget is the definition and the state of a widget.
type LiveWidget struct {
	Widget
	State
}

// LiveTarget is the definition and the dates of a target.
type LiveTarget struct {
	Target
	State
}

// LiveWebhook is the definition and the dates of a webhook.
type LiveWebhook struct {
	Webhook
	State
}

// ByID returns the resources ordered by id.
func ByID[R any](resources map[int64]R) []R {
	list := make([]R, 0, len(resources))
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		list = append(list, resources[id])
	}
	return list
}

// AccountResources returns the account and its resources, or empty AccountResources if there is no such account.
func (s *Snapshot) AccountResources(id int64) *AccountResources {
	if owned, ok := s.accounts[id]; ok {
		return owned
	}
	return &AccountResources{}
}

// AllAccounts returns the accounts ordered by id.
func (s *Snapshot) AllAccounts() []*AccountResources { return ByID(s.accounts) }

// Money returns what the amounts of the websites that declare a currency are.
func (s *Snapshot) Money() map[int64]books.Declaration {
	of := map[int64]books.Declaration{}
	for account, owned := range s.accounts {
		for id, site := range owned.Websites {
			if site.Currency != "" {
				of[id] = books.Declaration{Account: account, Currency: site.Currency}
			}
		}
	}
	return of
}

// AccountOfWebsite returns the account that owns the website, and false if there is none.
func (s *Snapshot) AccountOfWebsite(id int64) (int64, bool) {
	account, ok := s.websites[id]
	return account, ok
}

// WebsiteIDs returns the ids of all websites in order.
func (s *Snapshot) WebsiteIDs() []int64 { return slices.Sorted(maps.Keys(s.websites)) }

// ownerOf returns the account that owns the website, which may be archived, or 0 if there is none.
func (s *Snapshot) ownerOf(website int64) int64 {
	return cmp.Or(s.websites[website], s.archived[website])
}

// FindToken returns the token with the digest. It returns false if the token does not exist, was revoked, or has
// expired at now.
func (s *Snapshot) FindToken(digest Digest, now time.Time) (Token, bool) {
	token, ok := s.tokens[digest]
	if !ok || token.ExpiresAt != nil && !now.Before(*token.ExpiresAt) {
		return Token{}, false
	}
	return token, true
}

// AccountTokens returns the tokens of an account ordered by id, including expired ones.
func (s *Snapshot) AccountTokens(account int64) []Token {
	var tokens []Token
	for _, token := range s.tokens {
		if token.AccountID == account {
			tokens = append(tokens, token)
		}
	}
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a.ID, b.ID) })
	return tokens
}

// newSnapshot returns the catalogue that current rows define.
func newSnapshot(rows []row) (s *Snapshot, err error) {
	s = &Snapshot{
		accounts: map[int64]*AccountResources{}, websites: map[int64]int64{}, archived: map[int64]int64{},
		tokens: map[Digest]Token{}, ever: map[key]bool{}, salts: map[int64][]byte{},
	}
	versions := map[int64]uint64{}
	rowsOf := map[int64][]row{}
	for _, r := range rows {
		if r.Part == partSalt {
			if err := s.addSalt(r); err != nil {
				return nil, err
			}
			continue
		}
		if r.Kind != kindToken { // rows are immutable: a change inserts the next version
			versions[r.AccountID] += r.hash()
			rowsOf[r.AccountID] = append(rowsOf[r.AccountID], r)
		}
		s.ever[r.key] = true
		if r.Archived {
			if r.Kind == kindWebsite {
				s.archived[r.ID] = r.AccountID
			}
			continue
		}
		if err := s.addRow(r); err != nil {
			return nil, fmt.Errorf("catalogue row %s %d of account %d: %w", r.Kind, r.ID, r.AccountID, err)
		}
	}
	for id, owned := range s.accounts {
		owned.Version = versions[id]
		if owned.changes, err = newChanges(rowsOf[id]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addRow adds a row that is not archived to the resources of its account.
func (s *Snapshot) addRow(r row) error {
	o, known := s.accounts[r.AccountID]
	if !known {
		o = &AccountResources{
			Account:  Account{ID: r.AccountID},
			Websites: map[int64]Website{}, Goals: map[int64]Goal{}, Targets: map[int64]LiveTarget{},
			Campaigns: map[int64]LiveCampaign{}, Widgets: map[int64]LiveWidget{}, Webhooks: map[int64]LiveWebhook{},
		}
		s.accounts[r.AccountID] = o
	}
	switch r.Kind {
	case kindAccount:
		return json.Unmarshal([]byte(r.Body), &o.Account)
	case kindToken:
		token := Token{ID: r.ID, AccountID: r.AccountID}
		err := json.Unmarshal([]byte(r.Body), &token)
		s.tokens[token.Digest] = token
		return err
	case kindWebsite:
		s.websites[r.ID] = r.AccountID
		return addPart(o.Websites, r, func(site *Website) (any, *State) { return site, nil })
	case kindGoal:
		return addPart(o.Goals, r, func(goal *Goal) (any, *State) { return goal, nil })
	case kindTarget:
		return addPart(o.Targets, r, func(live *LiveTarget) (any, *State) { return &live.Target, &live.State })
	case kindCampaign:
		return addPart(o.Campaigns, r, func(live *LiveCampaign) (any, *State) { return &live.Campaign, &live.State })
	case kindWidget:
		return addPart(o.Widgets, r, func(live *LiveWidget) (any, *State) { return &live.Widget, &live.State })
	case kindWebhook:
		return addPart(o.Webhooks, r, func(live *LiveWebhook) (any, *State) { return &live.Webhook, &live.State })
	default:
		return fmt.Errorf("unknown kind %q: the store was written by a newer release", r.Kind)
	}
}

// addPart adds the definition or the state in a row to a resource.
func addPart[R any](resources map[int64]R, r row, parts func(*R) (definition any, state *State)) error {
	live := resources[r.ID]
	into, state := parts(&live)
	if r.Part == partState {
		*state = State{}
		into = state
	}
	err := json.Unmarshal([]byte(r.Body), into)
	resources[r.ID] = live
	return err
}

// position identifies the changes that a catalogue has read: the number of keys, the sum of their highest versions, and
// the time of the latest change. Versions only grow. So if the number and the sum equal those of the store, every
// change is known.
type position struct {
	keys, versions uint64
	latest         time.Time
}

// maxDelay is the longest expected delay between the time of a change and its storage. It exceeds the duration of an
// insert and the clock difference between servers. Changes that arrive even later are detected by their versions, and
// all rows are read again.
const maxDelay = 10 * time.Second

// RefreshSnapshot reads the changes that were stored since the last refresh.
func (c *Catalogue) RefreshSnapshot(ctx context.Context) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var stored position
	if err := c.conn.QueryRow(ctx, positionQuery).Scan(&stored.keys, &stored.versions, &stored.latest); err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	known := c.position
	defer func() { c.position.latest = schema.LaterTime(c.position.latest, stored.latest) }()
	hasSameVersions := stored.keys == known.keys && stored.versions == known.versions
	isRead := hasSameVersions && !stored.latest.After(known.latest)
	if isRead && c.snapshot.Load() != nil {
		return nil
	}
	if known.keys > 0 && stored.keys >= known.keys && stored.versions >= known.versions {
		recent, err := queryRows(ctx, c.conn, selectRows+fromAll+sinceTime,
			clickhouse.DateNamed("since", known.latest.Add(-maxDelay), clickhouse.MilliSeconds))
		if err != nil {
			return err
		}
		if err := c.adoptRowsLocked(recent); err != nil {
			return err
		}
		if c.position.keys >= stored.keys && c.position.versions >= stored.versions {
			return nil
		}
	}
	rows, err := readRows(ctx, c.conn)
	if err != nil {
		return err
	}
	return c.replaceRowsLocked(rows)
}

// updateSnapshot brings the snapshot up to date with stored rows.
func (c *Catalogue) updateSnapshot(rows []row) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	return c.adoptRowsLocked(rows)
}

// adoptRowsLocked adds the rows that are newer than the known ones.
func (c *Catalogue) adoptRowsLocked(rows []row) error {
	all := maps.Clone(c.rows)
	changed := false
	for _, r := range rows {
		if known, exists := all[r.key]; !exists || r.compareVersion(known) < 0 {
			all[r.key] = r
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return c.replaceRowsLocked(slices.Collect(maps.Values(all)))
}

// replaceRowsLocked sets the current rows.
func (c *Catalogue) replaceRowsLocked(rows []row) error {
	next, err := newSnapshot(rows)
	if err != nil {
		return err
	}
	c.rows = make(map[key]row, len(rows))
	c.position = position{keys: uint64(len(rows))}
	for _, r := range rows {
		c.rows[r.key] = r
		c.position.versions += r.Version
		c.position.latest = schema.LaterTime(c.position.latest, r.ChangedAt)
	}
	c.snapshot.Store(next)
	return nil
}

// Subject returns the campaign as the subject of results.
func (c *Campaign) Subject() schema.Subject {
	return schema.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}
}

// Subject returns an experiment of the widget as the subject of results; 0: the widget itself.
func (w *Widget) Subject(experiment int64) schema.Subject {
	return schema.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID, ExperimentID: experiment}
}

// Subjects returns the campaigns and experiments of the account, in the order of their ids.
func (o *AccountResources) Subjects() []schema.Subject {
	var subjects []schema.Subject
	for _, c := range ByID(o.Campaigns) {
		subjects = append(subjects, c.Subject())
	}
	for _, w := range ByID(o.Widgets) {
		for _, e := range w.Experiments {
			subjects = append(subjects, w.Subject(e.ID))
		}
	}
	return subjects
}

// SubjectName returns the name of a campaign, or of an experiment with its widget.
func (o *AccountResources) SubjectName(s schema.Subject) string {
	if s.Kind == schema.SubjectCampaign {
		return o.Campaigns[s.ID].Name
	}
	widget := o.Widgets[s.ID]
	name := widget.Name
	for _, e := range widget.Experiments {
		if e.ID == s.ExperimentID && e.Name != "" {
			name += ": " + e.Name
		}
	}
	return name
}

// Placed is a resource of a website, which may have a key.
type Placed interface {
	WebsiteAndKey() (website int64, key string)
}

// WebsiteAndKey returns the website and the key of the goal.
func (g Goal) WebsiteAndKey() (website int64, key string) { return g.WebsiteID, g.Key }

// WebsiteAndKey returns the website of the target, which has no key.
func (t Target) WebsiteAndKey() (website int64, key string) { return t.WebsiteID, "" }

// WebsiteAndKey returns the website and the key of the campaign.
func (c Campaign) WebsiteAndKey() (website int64, key string) { return c.WebsiteID, c.Key }

// WebsiteAndKey returns the website of the widget, which has no key.
func (w Widget) WebsiteAndKey() (website int64, key string) { return w.WebsiteID, "" }

// ids are known ids with their keys; empty: without one.
type ids map[int64]string

// declaredOf returns the ids of the resources of a website.
func declaredOf[R Placed](resources map[int64]R, website int64) ids {
	found := ids{}
	for id, r := range resources {
		if owner, key := r.WebsiteAndKey(); owner == website {
			found[id] = key
		}
	}
	return found
}
