package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The maximum number of names of campaigns and goals of a website, and of variations of a campaign. They bound the
// memory that the holder of a public key can use: every subject has counters in memory.
const (
	maxWebsiteNames  = 10_000
	maxCampaignNames = 200
)

// Names are the names in the events of a store. They are stored before the events that use them.
type Names struct {
	conn driver.Conn

	mu      sync.RWMutex
	keys    map[schema.NamedID]string
	counts  map[schema.NamedID]int // names of a website (kind empty), and of a campaign's variations
	pending []schema.Name

	storing sync.Mutex // held while pending names are stored
}

// openNames reads the names of a store.
func openNames(ctx context.Context, conn driver.Conn) (*Names, error) {
	stored, err := schema.ReadNames(ctx, conn)
	if err != nil {
		return nil, err
	}
	n := &Names{conn: conn, keys: map[schema.NamedID]string{}, counts: map[schema.NamedID]int{}}
	for id, name := range stored {
		n.keys[id] = name.Key
		n.counts[countedWith(id)]++
	}
	return n, nil
}

// countedWith identifies the names that are limited together.
func countedWith(id schema.NamedID) schema.NamedID {
	if id.Kind == schema.NameVariation {
		return schema.NamedID{WebsiteID: id.WebsiteID, Kind: schema.NameCampaign, ID: id.CampaignID}
	}
	return schema.NamedID{WebsiteID: id.WebsiteID}
}

// KeyOf returns the key of an id; empty: none was sent.
func (n *Names) KeyOf(id schema.NamedID) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.keys[id]
}

// noteName notes that an event uses a name. It returns an error if another key has this id, or if there are too many
// names.
func (n *Names) noteName(id schema.NamedID, key, source string) error {
	n.mu.RLock()
	known, has := n.keys[id]
	n.mu.RUnlock()
	if has && (key == "" || key == known) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known, has = n.keys[id]
	limit, of := maxWebsiteNames, countedWith(id)
	if id.Kind == schema.NameVariation {
		limit = maxCampaignNames
	}
	switch {
	case has && (key == "" || key == known):
		return nil
	case has && known != "":
		return fmt.Errorf("key_collision: the key %q has the same id as %q", clipText(key), clipText(known))
	case !has && n.counts[of] >= limit:
		if id.Kind == schema.NameVariation {
			return fmt.Errorf("too_many_names: the campaign has %d variations", limit)
		}
		return fmt.Errorf("too_many_names: the website has %d campaigns and goals", limit)
	case !has:
		n.counts[of]++
	}
	n.keys[id] = key
	n.pending = append(n.pending, schema.Name{NamedID: id, Key: key, Source: source, FirstAt: time.Now()})
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
