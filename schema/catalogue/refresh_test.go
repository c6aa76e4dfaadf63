package catalogue_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestSwitchReadsItsResourcesOnly starts a campaign. Neither the change nor the poll of another server may read the
// whole catalogue.
func TestSwitchReadsItsResourcesOnly(t *testing.T) {
	conn := &schematest.RecordingConn{Conn: schematest.OpenMigrated(t)}
	servers := twoServers(t, conn)
	_ = conn.TakeQueries()
	owned, _, err := servers[0].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 12,
		!servers[0].Snapshot().AccountResources(1).Campaigns[12].Active)
	must.OK(t, err)
	live := owned.Campaigns[12]
	must.OK(t, servers[1].RefreshSnapshot(t.Context()))
	for _, query := range conn.TakeQueries() {
		check.Contains(t, query, "WHERE")
	}
	for _, server := range servers {
		is := server.Snapshot().AccountResources(1).Campaigns[12].State
		check.That(t, is.Active == live.Active, "a server has %+v, want %+v", is, live.State)
	}
	requireEqual(t, conn, servers)
}

// TestRefreshFindsEveryChange changes a catalogue in all ways. Each server must have what a new one reads.
func TestRefreshFindsEveryChange(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	servers := twoServers(t, conn)
	writers := 0
	insert := func(changedAt string, version int, active bool) {
		t.Helper()
		writers++
		must.OK(t, conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO catalogue (account_id, kind, id, facet, version, body, archived, writer, changed_at)
VALUES (1, 'campaign', 12, 'state', %d, '{"active":%v,"createDate":"2026-01-01T00:00:00Z","updateDate":"2026-01-01T00:00:00Z"}', false, 'w%d', '%s')`, version, active, writers, changedAt)))
	}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{
			"switch of a campaign",
			func() { _, _, _ = servers[0].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 13, true) },
		},
		{
			"switch of a widget",
			func() { _, _, _ = servers[0].Switch(t.Context(), 1, 0, schema.SubjectWidget, 7, true) },
		},
		{"token", func() {
			_, _, _ = servers[0].CreateToken(t.Context(),
				catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
		}},
		{"a server whose clock is years late", func() { insert("2020-01-01 00:00:00", 50, true) }},
		{"another server", func() { insert("2040-01-01 00:00:00", 51, false) }},
		{"switch of both", func() {
			_, _, _ = servers[0].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 12, false)
			_, _, _ = servers[1].Switch(t.Context(), 1, 0, schema.SubjectCampaign, 13, false)
		}},
		{"archived", func() {
			file := servers[0].Snapshot().CatalogueFile()
			file.Prune = true
			site := &file.Accounts[0].Websites[0]
			site.Campaigns = site.Campaigns[:len(site.Campaigns)-1]
			must.Get(servers[0].ApplyFile(t.Context(), file, false))(t)
		}},
		{"the same version", func() { insert("2040-01-01 00:00:01", 51, true) }},
		{"an outdated version", func() { insert("2040-01-01 00:00:02", 9, true) }},
		{"merged", func() {
			must.OK(t, conn.Exec(t.Context(), "OPTIMIZE TABLE catalogue FINAL"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change()
			for _, server := range servers {
				must.OK(t, server.RefreshSnapshot(t.Context()))
			}
			requireEqual(t, conn, servers)
		})
	}
}

func twoServers(t *testing.T, conn driver.Conn) []*catalogue.Catalogue {
	t.Helper()
	var servers []*catalogue.Catalogue
	for range 2 {
		c := must.Get(catalogue.Open(t.Context(), conn))(t)
		servers = append(servers, c)
	}
	mustApply(t, servers[0], whole)
	must.OK(t, servers[1].RefreshSnapshot(t.Context()))
	return servers
}

// requireEqual compares the snapshots with that of a new server.
func requireEqual(t *testing.T, conn driver.Conn, servers []*catalogue.Catalogue) {
	t.Helper()
	fresh := must.Get(catalogue.Open(t.Context(), conn))(t)
	for _, server := range servers {
		if !reflect.DeepEqual(server.Snapshot(), fresh.Snapshot()) {
			t.Errorf("a server has\n%+v, want\n%+v", server.Snapshot().AccountResources(1),
				fresh.Snapshot().AccountResources(1))
		}
	}
}
