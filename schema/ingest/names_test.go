package ingest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// keyedLine is a view, or the goal that follows it, with keys in the place of ids.
func keyedLine(event, campaign, variation string) string {
	return fmt.Sprintf(`{"eventId":"%[1]s %[2]s %[3]s","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view",`+
		`"campaignId":%[2]q,"variationId":%[3]q}`, event, campaign, variation) + "\n"
}

func namesOf(t *testing.T, conn driver.Conn) string {
	t.Helper()
	stored := must.Get(schema.ReadNames(t.Context(), conn))(t)
	kinds := []schema.NameKind{schema.NameCampaign, schema.NameVariation, schema.NameGoal}
	var names []string
	for _, n := range slices.SortedFunc(maps.Values(stored), func(a, b schema.Name) int {
		return cmp.Or(cmp.Compare(a.WebsiteID, b.WebsiteID),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.CampaignID, b.CampaignID), cmp.Compare(a.ID, b.ID))
	}) {
		names = append(names, fmt.Sprintf("%s %s of %d from %s", n.Kind, n.Key, n.CampaignID, n.Source))
	}
	return strings.Join(names, ", ")
}

// TestNamesPrecedeEvents imports events with keys. The names are stored before the events, so that a kill between both
// leaves no event without its name.
func TestNamesPrecedeEvents(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	broken := errors.New("the store is down")
	failing := schematest.HookedConn{Conn: conn, Before: func(_ context.Context, statement string) error {
		if strings.Contains(statement, "INTO events ") {
			return broken
		}
		return nil
	}}
	path := write(t, "e.ndjson", keyedLine("a", "12", "control")+keyedLine("a", "layout", "b"))
	campaign, _, _ := schema.IDOf(1, schema.NameCampaign, "layout")
	variation, _, _ := schema.IDOf(1, schema.NameVariation, "b")
	want := fmt.Sprintf("campaign  of 0 from e.ndjson, campaign layout of 0 from e.ndjson, variation  of 12 from "+
		"e.ndjson, variation b of %d from e.ndjson", campaign)

	must.Get(ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), path, ingest.Options{DryRun: true}))(t)
	check.Equal(t, namesOf(t, conn), "", "names of a dry run")
	_, err := ingest.ImportFile(t.Context(), ingest.NewWriter(failing, nil), path,
		ingest.Options{})
	must.That(t, errors.Is(err, broken), "the import returns %v", err)
	check.Equal(t, namesOf(t, conn), want, "names of a failed import")
	must.Get(ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), path, ingest.Options{}))(t)
	check.Equal(t, namesOf(t, conn), want, "names of an import")
	check.Equal(t, number(t, conn, fmt.Sprintf("SELECT count() FROM events WHERE subject_id = %d AND variation_id = %d",
		campaign, variation)), 1, "events")
}

// TestNamesAreBounded sends more names than a website may have. The holder of a public key cannot fill the memory.
func TestNamesAreBounded(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	var campaigns, variations strings.Builder
	for i := range 10_002 {
		campaigns.WriteString(keyedLine("a", fmt.Sprint("c", i), "0"))
	}
	for i := range 202 {
		variations.WriteString(keyedLine("b", "c1", fmt.Sprint("v", i)))
	}
	w := ingest.NewWriter(conn, nil)
	rejected := map[string]int{}
	o := ingest.Options{Reject: func(_ int64, reason string) { rejected[reason]++ }}
	must.Get(ingest.ImportFile(t.Context(), w, write(t, "c.ndjson", campaigns.String()), o))(t)
	must.Get(ingest.ImportFile(t.Context(), w, write(t, "v.ndjson", variations.String()), o))(t)
	check.Equal(t, fmt.Sprint(rejected), fmt.Sprint(map[string]int{
		"too_many_names: the website has 10000 campaigns and goals that are not declared": 2,
		"too_many_names: the campaign has 200 variations that are not declared":           2, // control does not count
	}), "rejected")
	clear(rejected)
	must.Get(ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil),
		write(t, "d.ndjson", keyedLine("a", "x", "0")+keyedLine("a", "c7", "0")), o))(t)
	check.Equal(t, fmt.Sprint(rejected),
		fmt.Sprint(map[string]int{"too_many_names: the website has 10000 campaigns and goals that are not declared": 1}),
		"rejected after a restart")
}

// TestKeyOfAnotherID sends an id that is computed from a key, and then the key: both mean the same, and the key becomes
// known.
func TestKeyOfAnotherID(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	campaign, _, _ := schema.IDOf(1, schema.NameCampaign, "layout")
	w := ingest.NewWriter(conn, nil)
	for i, name := range []string{fmt.Sprint(campaign), "layout", fmt.Sprint(campaign)} {
		report := must.Get(ingest.ImportFile(t.Context(), w, write(t, "e.ndjson", keyedLine(fmt.Sprint(i), name, "0")),
			ingest.Options{}))(t)
		check.Equal(t, report.Rejected, 0, "rejected")
	}
	names := must.Get(schema.ReadNames(t.Context(), conn))(t)
	check.Equal(t, names[schema.NamedID{WebsiteID: 1, Kind: schema.NameCampaign, ID: campaign}].Key, "layout", "key")
	check.Equal(t, number(t, conn, "SELECT uniqExact(subject_id) FROM events"), 1, "campaigns")
}

// TestKeysThatLookLikeNumbers imports versions as keys, as texts and as numbers.
func TestKeysThatLookLikeNumbers(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	var keys, numbers strings.Builder
	for i, key := range []string{"2.0", "12.0", ".", "1e3", "1.5", "-"} {
		keys.WriteString(keyedLine(fmt.Sprint(i), key, key))
	}
	for i, number := range []string{"2.0", "1e3", "1.5", "1e400", "-1.0"} {
		view := strings.ReplaceAll(keyedLine(fmt.Sprint(i), "NUMBER", "b"), `"NUMBER"`, number)
		variation := strings.ReplaceAll(keyedLine(fmt.Sprint(i), "a", "NUMBER"), `"variationId":"NUMBER"`, `"variationId":`+number)
		goal := fmt.Sprintf(`{"eventId":"g","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":%s}`, number)
		exposures := fmt.Sprintf(`{"eventId":"g","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view",`+
			`"exposures":[{"campaignId":%s,"variationId":"x"}]}`, number)
		numbers.WriteString(view + variation + goal + "\n" + exposures + "\n")
	}
	w := ingest.NewWriter(conn, nil)
	rejected := map[string]int{}
	o := ingest.Options{Reject: func(_ int64, reason string) {
		_, reason, _ = strings.Cut(reason, `": `)
		rejected[reason]++
	}}
	report := must.Get(ingest.ImportFile(t.Context(), w, write(t, "k.ndjson", keys.String()), o))(t)
	check.Equal(t, report.Rejected, 0, "rejected keys: %v", rejected)
	must.Get(ingest.ImportFile(t.Context(), w, write(t, "n.ndjson", numbers.String()), o))(t)
	const reason = `a number must be an integer, which is an id; a key such as "2.0" must be a text`
	check.Equal(t, fmt.Sprint(rejected), fmt.Sprint(map[string]int{reason: 20}), "rejected numbers")

	mapping := must.Get(ingest.ReadMapping(strings.NewReader("{fields: {websiteId: {value: 1}, visitor: v, time: {value: " +
		"\"2026-05-01T12:00:00Z\"}, eventId: v}, events: [{fields: {event: {value: view}, campaignId: c, variationId: c}}]}")))(t)
	clear(rejected)
	o.Mapping = mapping
	must.Get(ingest.ImportFile(t.Context(), w, write(t, "m.ndjson", `{"v":"a","c":2.5}`+"\n"+`{"v":"b","c":"2.5"}`+"\n"), o))(t)
	check.Equal(t, fmt.Sprint(rejected), fmt.Sprint(map[string]int{reason: 1}), "rejected with a mapping")
	must.Get(ingest.ImportFile(t.Context(), w, write(t, "m.csv", "v,c\na,3.0\n"), o))(t)
	check.That(t, strings.Contains(namesOf(t, conn), "campaign 3.0 of 0"), "names: %s", namesOf(t, conn))
}
