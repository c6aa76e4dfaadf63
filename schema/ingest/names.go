package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The maximum number of undeclared names of campaigns and goals of a website, and of undeclared variations of a
// campaign. They bound the memory that the holder of a public key can use: every subject has counters in memory. Names
// that the catalogue declares do not count.
const (
	MaxWebsiteNames  = 10_000
	maxCampaignNames = 200
)

// maxForgotten is the maximum number of names that are forgotten and whose events are not deleted yet.
const maxForgotten = 20_000

// NameOptions say which names are forgotten when there are too many.
type NameOptions struct {
	// IsDeclared reports whether the catalogue declares, or has declared, a name; nil: it declares none.
	IsDeclared func(schema.NamedID) bool
	// CountEvents returns the number of events of each name of a website; nil: names have none.
	CountEvents func(website int64) map[schema.NamedID]int64
	// SaltOf returns the secret with which the customers of a website are hashed; nil: none is stored.
	SaltOf func(website int64) ([]byte, error)
}

// Names are the names in the events of a store. They are stored before the events that use them.
type Names struct {
	NameOptions
	conn driver.Conn

	mu        sync.RWMutex
	known     map[schema.NamedID]schema.Name
	rooms     map[schema.NamedID]int // undeclared names of a website (kind empty), and of a campaign's variations
	pending   []schema.Name
	forgotten map[schema.NamedID]schema.Name // their events and their rows are not deleted yet
	dropping  map[schema.NamedID]bool        // forgotten names whose events are being deleted
	counts    map[int64]int                  // names that were forgotten, by website
	forgets   bool                           // whether names are forgotten; otherwise new ones are refused
	full      chan struct{}                  // receives after names were forgotten
	labels    map[int64]*websiteLabels       // by website

	storing sync.Mutex // held while pending names are stored
}

// openNames reads the names of a store.
func openNames(ctx context.Context, conn driver.Conn, o NameOptions) (*Names, error) {
	stored, err := schema.ReadNames(ctx, conn)
	if err != nil {
		return nil, err
	}
	n := &Names{
		NameOptions: o, conn: conn, known: stored, rooms: map[schema.NamedID]int{},
		forgotten: map[schema.NamedID]schema.Name{}, dropping: map[schema.NamedID]bool{}, counts: map[int64]int{},
		full: make(chan struct{}, 1),
	}
	for id := range stored {
		n.countName(id)
	}
	return n, n.openLabels(ctx)
}

// roomOf identifies the names that are limited together, and returns how many there may be.
func roomOf(id schema.NamedID) (room schema.NamedID, limit int) {
	if id.Kind == schema.NameVariation {
		return schema.NamedID{WebsiteID: id.WebsiteID, Kind: schema.NameCampaign, ID: id.CampaignID}, maxCampaignNames
	}
	return schema.NamedID{WebsiteID: id.WebsiteID}, MaxWebsiteNames
}

// isBounded reports whether a name counts for its room: the catalogue does not declare it, and it is not control.
func (n *Names) isBounded(id schema.NamedID) bool {
	return !isControl(id) && (n.IsDeclared == nil || !n.IsDeclared(id))
}

func isControl(id schema.NamedID) bool { return id.Kind == schema.NameVariation && id.ID == 0 }

func (n *Names) countName(id schema.NamedID) {
	if n.isBounded(id) {
		room, _ := roomOf(id)
		n.rooms[room]++
	}
}

// KeyOf returns the key of an id; empty: none was sent.
func (n *Names) KeyOf(id schema.NamedID) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.known[id].Key
}

// noteName notes that an event uses a name. It returns an error if another key has this id, or if there are too many
// names.
func (n *Names) noteName(id schema.NamedID, key, source string) error {
	n.mu.RLock()
	known, has := n.known[id]
	n.mu.RUnlock()
	isKnown := func() bool { return has && (key == "" || key == known.Key) }
	if isKnown() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known, has = n.known[id]
	if !has {
		if n.dropping[id] {
			return errors.New(
				"name_dropped: the rarest names are being deleted, and this is one of them: send it again")
		}
		if err := n.makeRoomLocked(id); err != nil {
			return err
		}
		known, has = n.forgotten[id]
		if has { // its events are still stored
			delete(n.forgotten, id)
			n.known[id] = known
		}
		n.countName(id)
	}
	switch {
	case isKnown():
		return nil
	case has && known.Key != "":
		return fmt.Errorf("key_collision: the key %q has the same id as %q", clipText(key), clipText(known.Key))
	}
	added := schema.Name{NamedID: id, Key: key, Source: source, FirstAt: time.Now()}
	n.known[id] = added
	n.pending = append(n.pending, added)
	return nil
}

// makeRoomLocked makes room for a new name. If the catalogue does not declare it and its room is full, it forgets a
// tenth of the names in the room, the rarest ones first, and of equally rare ones the oldest.
func (n *Names) makeRoomLocked(id schema.NamedID) error {
	room, limit := roomOf(id)
	if !n.isBounded(id) || n.rooms[room] < limit {
		return nil
	}
	var bounded []schema.Name // some may have been declared since they were counted
	for other, name := range n.known {
		if of, _ := roomOf(other); of == room && n.isBounded(other) {
			bounded = append(bounded, name)
		}
	}
	n.rooms[room] = len(bounded)
	if len(bounded) < limit {
		return nil
	}
	detail := fmt.Sprintf("too_many_names: the website has %d campaigns and goals that are not declared", limit)
	if id.Kind == schema.NameVariation {
		detail = fmt.Sprintf("too_many_names: the campaign has %d variations that are not declared", limit)
	}
	if !n.forgets || len(n.forgotten) >= maxForgotten {
		return errors.New(detail)
	}
	counts := map[schema.NamedID]int64{}
	if n.CountEvents != nil {
		counts = n.CountEvents(id.WebsiteID)
	}
	slices.SortFunc(bounded, func(a, b schema.Name) int {
		return cmp.Or(cmp.Compare(counts[a.NamedID], counts[b.NamedID]), a.FirstAt.Compare(b.FirstAt),
			cmp.Compare(a.ID, b.ID))
	})
	n.forgetLocked(bounded[:limit/10])
	return nil
}

// forgetLocked forgets names, and the variations of campaigns among them.
func (n *Names) forgetLocked(names []schema.Name) {
	ids := make([]schema.NamedID, len(names))
	for i := range names {
		ids[i] = names[i].NamedID
	}
	for _, name := range n.removeLocked(ids) {
		n.forgotten[name.NamedID] = name
		if n.isBounded(name.NamedID) {
			n.counts[name.WebsiteID]++
		}
	}
	n.signalLocked()
}

// removeLocked removes names, and the variations of campaigns among them, and returns them.
func (n *Names) removeLocked(ids []schema.NamedID) (removed []schema.Name) {
	is := map[schema.NamedID]bool{}
	for _, id := range ids {
		is[id] = true
	}
	for id, name := range n.known {
		room, _ := roomOf(id)
		isOfCampaign := id.Kind == schema.NameVariation && is[room]
		if !is[id] && !isOfCampaign {
			continue
		}
		if n.isBounded(id) {
			n.rooms[room]--
		}
		delete(n.known, id)
		removed = append(removed, name)
	}
	return removed
}

// removeNames removes names, and the variations of campaigns among them.
func (n *Names) removeNames(ids []schema.NamedID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removeLocked(ids)
	for _, id := range ids {
		delete(n.forgotten, id)
	}
}

// NameCounts counts the names of a website.
type NameCounts struct {
	Undeclared int `json:"undeclared"` // campaigns and goals
	Forgotten  int `json:"forgotten"`  // since the process started, because there were too many
}

// CountNames returns the numbers of names by website.
func (n *Names) CountNames() map[int64]NameCounts {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := map[int64]NameCounts{}
	for id := range n.known {
		if id.Kind != schema.NameVariation && n.isBounded(id) {
			of := all[id.WebsiteID]
			of.Undeclared++
			all[id.WebsiteID] = of
		}
	}
	for website, forgotten := range n.counts {
		all[website] = NameCounts{all[website].Undeclared, forgotten}
	}
	return all
}

// UndeclaredNames returns the names that the catalogue does not declare, of those that are asked for. They include
// forgotten ones whose events are not deleted yet.
func (n *Names) UndeclaredNames(isAsked func(schema.Name) bool) []schema.Name {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var found []schema.Name
	for _, names := range []map[schema.NamedID]schema.Name{n.known, n.forgotten} {
		for id, name := range names {
			if n.isBounded(id) && isAsked(name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// startForgetting lets names be forgotten.
func (n *Names) startForgetting() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgets = true
}

// inFlight is the maximum time from noting a name until its event is stored. The events of younger names are not
// deleted yet: an event that is stored afterwards would have no name.
const inFlight = 10 * time.Second

// takeForgotten returns the names whose events are to be deleted. Those that have been declared since are known again.
func (n *Names) takeForgotten() (taken []schema.Name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	isTooYoung := false
	defer func() {
		if isTooYoung {
			time.AfterFunc(inFlight, n.signalForgotten)
		}
	}()
	for id, name := range n.forgotten {
		if now.Sub(name.FirstAt) < inFlight {
			isTooYoung = true
			continue
		}
		delete(n.forgotten, id)
		if isControl(id) || n.isBounded(id) { // control is forgotten with its campaign
			n.dropping[id] = true
			taken = append(taken, name)
		} else {
			n.known[id] = name
		}
	}
	return taken
}

// restoreForgotten adds names whose events could not be deleted.
func (n *Names) restoreForgotten(names []schema.Name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range names {
		if _, has := n.known[names[i].NamedID]; !has {
			n.forgotten[names[i].NamedID] = names[i]
		}
	}
	n.signalLocked()
}

// endDrop notes that the events of names were deleted, or could not be.
func (n *Names) endDrop(names []schema.NamedID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range names {
		delete(n.dropping, id)
	}
}

// signalForgotten says that names are forgotten.
func (n *Names) signalForgotten() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signalLocked()
}

// signalLocked says that names are forgotten.
func (n *Names) signalLocked() {
	select {
	case n.full <- struct{}{}:
	default:
	}
}

// refreshNames reads the names again, because other servers may have forgotten some.
func (n *Names) refreshNames(ctx context.Context) error {
	stored, err := schema.ReadNames(ctx, n.conn)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.pending {
		stored[n.pending[i].NamedID] = n.pending[i]
	}
	maps.DeleteFunc(stored, func(id schema.NamedID, _ schema.Name) bool {
		_, is := n.forgotten[id]
		return is
	})
	n.known = stored
	clear(n.rooms)
	for id := range stored {
		n.countName(id)
	}
	return nil
}

// noteRows notes the names of the rows of one event. keys has the keys of the campaigns, variations and goals of these
// rows that were sent as texts.
func (n *Names) noteRows(rows []schema.Event, keys map[schema.NamedID]string, source string) error {
	if n == nil { // of a test without a store
		return nil
	}
	var faults []error
	note := func(website int64, kind schema.NameKind, campaign, id int64) {
		named := schema.NamedID{WebsiteID: website, Kind: kind, CampaignID: campaign, ID: id}
		faults = append(faults, n.noteName(named, keys[named], source))
	}
	for i := range rows {
		row := &rows[i]
		if row.GoalID != 0 && i == 0 {
			note(row.WebsiteID, schema.NameGoal, 0, row.GoalID)
		}
		if row.Subject == schema.SubjectCampaign {
			note(row.WebsiteID, schema.NameCampaign, 0, row.SubjectID)
			note(row.WebsiteID, schema.NameVariation, row.SubjectID, row.VariationID)
		}
	}
	return errors.Join(faults...)
}

// storeNames stores the names that were noted. When it returns, all names that were noted before the call are stored.
func (n *Names) storeNames(ctx context.Context) error {
	n.storing.Lock()
	defer n.storing.Unlock()
	n.mu.Lock()
	names := n.pending
	n.pending = nil
	n.mu.Unlock()
	const insert = "INSERT INTO names (website_id, kind, campaign_id, id, key, source, first_at)"
	err := schema.InsertRows(ctx, n.conn, insert,
		names, func(name *schema.Name) []any {
			return []any{
				name.WebsiteID, string(name.Kind), name.CampaignID, name.ID, name.Key, name.Source, name.FirstAt.UTC(),
			}
		})
	if err != nil {
		n.mu.Lock()
		n.pending = append(names, n.pending...)
		n.mu.Unlock()
		return fmt.Errorf("store names: %w", err)
	}
	return nil
}
