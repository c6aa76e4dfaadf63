package catalogue_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestAuditOfTwoServers starts and stops one campaign by six clients of two servers. The audit must have the changes
// that took effect only.
func TestAuditOfTwoServers(t *testing.T) {
	tier.OnlyLong(t)
	for name, conn := range map[string]driver.Conn{
		"embedded": schematest.OpenMigrated(t),
		"server":   schematest.SharedServer(t).OpenMigrated(t),
	} {
		t.Run(name, func(t *testing.T) {
			servers := twoServers(t, conn)
			var clients sync.WaitGroup
			for client := range 6 {
				clients.Go(func() {
					for round := range tier.Of(3, 60) {
						_, found, err := servers[client%2].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 13,
							round%2 == 0)
						must.That(t, err == nil, "%v, %v", found, err)
						check.That(t, found, "%v, %v", found, err)
					}
				})
			}
			clients.Wait()
			owned, _, err := servers[0].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 13, false)
			must.OK(t, err)
			all := campaignAudit(t, servers[0], 13)
			must.That(t, len(all) >= 4, "%d changes, the last is %+v", len(all), all[0])
			check.Equal(t, all[0].Change, "inactive", "%d changes, the last is %+v", len(all), all[0])
			check.That(t, !owned.Campaigns[13].Active, "%d changes, the last is %+v", len(all), all[0])
			for i, entry := range all[1:] {
				later := all[i]
				check.That(t, later.Version > entry.Version, "version %d, %s, is followed by version %d, %s",
					entry.Version, entry.Change, later.Version, later.Change)
				check.That(t, later.Change != entry.Change, "version %d, %s, is followed by version %d, %s",
					entry.Version, entry.Change, later.Version, later.Change)
			}
		})
	}
}

// TestAuditOfFacts records two changes of facts in the same way, which are two entries.
func TestAuditOfFacts(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{{
		ID: 1, Name: "Shop", Websites: []catalogue.Website{{ID: 3, Domain: "a.example.com"}},
	}}}, false))(t)
	since := time.Now().Add(-time.Second)
	must.OK(t, c.RecordFactsChange(t.Context(), catalogue.VisitorsForgotten, 3))
	first := must.Get(c.ReadFactsChanges(t.Context(), 1))(t)[3]
	must.OK(t, c.RecordFactsChange(t.Context(), catalogue.EventsDeleted, 3))
	second := must.Get(c.ReadFactsChanges(t.Context(), 1))(t)[3]
	check.That(t, first.After(since), "the first change is of %v", first)
	check.That(t, !second.Before(first), "the second change is of %v, before %v", second, first)
	var changes []string
	for _, entry := range must.Get(c.ReadAuditLog(t.Context(), 1, since, 100))(t) {
		if entry.Kind == "facts" {
			changes = append(changes, entry.Change)
		}
	}
	slices.Sort(changes)
	check.Equal(t, slices.Equal(changes, []string{catalogue.EventsDeleted, catalogue.VisitorsForgotten}), true,
		"changes %q", changes)
	check.Equal(t, len(must.Get(c.ReadFactsChanges(t.Context(), 2))(t)), 0, "changes of another account")
}

// TestAuditOfARace stores what two servers wrote at the same time.
func TestAuditOfARace(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	mustApply(t, c, whole)
	const insert = `INSERT INTO audit (account_id, changed_at, changed_by, kind, id, facet, version, body) VALUES
(1, '2030-01-01 00:00:00.000', 'one', 'campaign', 13, 'state', 2,
	'{"active":true,"updateDate":"2030-01-01T00:00:00Z"}'),
(1, '2030-01-01 00:00:00.001', 'two', 'campaign', 13, 'state', 2,
	'{"active":true,"updateDate":"2030-01-01T00:00:00.001Z"}'),
(1, '2030-01-01 00:00:00.002', 'two', 'campaign', 13, 'state', 3,
	'{"active":true,"updateDate":"2030-01-01T00:00:00Z"}'),
(1, '2030-01-01 00:00:00.003', 'one', 'campaign', 13, 'state', 4, '{"active":true,"shareHistory":{"0":[]}}'),
(1, '2030-01-01 00:00:00.003', 'one', 'campaign', 13, 'state', 5, '{"active":false,"shareHistory":{"0":[]}}')`
	must.OK(t, conn.Exec(t.Context(), insert))
	var got []string
	for _, entry := range campaignAudit(t, c, 13) {
		got = append(got, entry.By+" "+entry.Change)
	}
	want := []string{"one inactive", "one changed", "one active"}
	must.That(t, len(got) >= 3, "%q, want %q first", got, want)
	check.That(t, slices.Equal(got[:3], want), "%q, want %q first", got, want)
}

// campaignAudit returns the changes of the state of a campaign, the latest first.
func campaignAudit(t *testing.T, c *catalogue.Catalogue, id int64) []catalogue.AuditEntry {
	t.Helper()
	all := must.Get(c.ReadAuditLog(t.Context(), 1, time.Unix(0, 0), 1_000_000))(t)
	return slices.DeleteFunc(all,
		func(e catalogue.AuditEntry) bool { return e.Kind != "campaign" || e.ID != id || e.Change == "created" })
}
