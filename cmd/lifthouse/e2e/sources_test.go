package e2e

import (
	"bufio"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lifthouse/cmd/internal/arrivals"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// serveEmpty serves a store without a catalogue, as in a new folder.
func serveEmpty(t *testing.T) (p *process, store string) {
	t.Helper()
	store = "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	return start(t, "serve", store), store
}

// addSource creates a source of the website shop.example.com, whose address begins with url. It returns the address and
// what add prints for the sender.
func addSource(t *testing.T, store, url, name string, flags ...string) (address, text string) {
	t.Helper()
	args := []string{"source", "add", name, "--domain=shop.example.com", "--public-url=" + url, store}
	out, text := succeed(t, nil, append(args, flags...)...)
	return strings.TrimSpace(out), text
}

// Words of the events in these tests. The store has hashes and ids of them.
var (
	campaignKeys  = []string{"checkout-layout", "CONV-1001"}
	variationKeys = []string{"control", "b", "2"}
	goalKeys      = []string{"purchase", "add_to_cart"}
)

// storedLines returns the stored events as sorted lines, with the visitors and the event ids that are known.
func storedLines(t *testing.T, store string, known ...string) []string {
	t.Helper()
	ids := map[schema.NameKind]map[int64]string{}
	for kind, keys := range map[schema.NameKind][]string{
		schema.NameCampaign: campaignKeys, schema.NameVariation: variationKeys, schema.NameGoal: goalKeys,
	} {
		ids[kind] = map[int64]string{}
		for _, key := range keys {
			id, _, err := schema.IDOf(1, kind, key)
			must.OK(t, err)
			ids[kind][id] = key
		}
	}
	textOf := func(hash string) string {
		at := slices.IndexFunc(known,
			func(text string) bool { return fmt.Sprintf("%016x", schema.HashID(text)) == hash })
		if at < 0 {
			return "unknown"
		}
		return known[at]
	}
	out, _ := succeed(t, nil, "events", "--last=1000", "--json", store)
	var lines []string
	listed := map[string]bool{} // copies of an event are stored until they are merged
	for scanner := bufio.NewScanner(strings.NewReader(out)); scanner.Scan(); {
		a := must.JSON[arrivals.Arrival](t, scanner.Bytes())
		if a.Rejected != nil {
			lines = append(lines, "rejected: "+a.Rejected.Reason)
			continue
		}
		e := a.Event
		identity := fmt.Sprint(e.Visitor, e.EventID, e.CampaignID)
		if listed[identity] {
			continue
		}
		listed[identity] = true
		line := fmt.Sprintf("goal %s %s", ids[schema.NameGoal][e.GoalID], e.Value)
		if e.VariationID != nil {
			line = fmt.Sprintf("view %s/%s", ids[schema.NameCampaign][e.CampaignID],
				ids[schema.NameVariation][*e.VariationID])
		}
		line += fmt.Sprintf(", visitor %s, id %s", textOf(e.Visitor), textOf(e.EventID))
		if e.Device != "" {
			line += ", " + e.Device
		}
		if past := a.At.Sub(e.Time); past.Abs().Minutes() > 2 {
			line += fmt.Sprintf(", arrived %v after it happened", past)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// checkStored compares the stored events.
func checkStored(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	check.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "stored events")
}
