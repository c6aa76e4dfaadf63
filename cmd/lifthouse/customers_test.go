package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// The customers of the test of privacy, and their visitor, as they are sent.
const (
	email    = "jane.doe@example.com"
	shopID   = "shop-customer-4711"
	itsPhone = "phone-of-jane"
)

// rowsWith returns the tables that have a row with one of some texts.
func rowsWith(t *testing.T, h *house, texts ...string) (found []string) {
	t.Helper()
	tables := must.Get(schema.QueryRows(t.Context(), h.store.Conn,
		"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine NOT LIKE '%View'",
		func(row driver.Rows, name *string) error { return row.Scan(name) }))(t)
	check.That(t, len(tables) > 10, "%d tables", len(tables))
	for _, table := range tables {
		var n uint64
		statement := "SELECT countIf(arrayExists(text -> position(lower(toString(tuple(*))), text) > 0, " +
			"{texts:Array(String)})) FROM " + table
		must.OK(t, h.store.Conn.QueryRow(t.Context(), statement, clickhouse.Named("texts", texts)).Scan(&n))
		if n > 0 {
			found = append(found, fmt.Sprintf("%s: %d", table, n))
		}
	}
	return found
}

// filesWith returns the files of the embedded store that have one of some texts.
func filesWith(t *testing.T, h *house, texts ...string) (found []string) {
	t.Helper()
	var path string
	must.OK(t, h.store.Conn.QueryRow(t.Context(), "SELECT arrayElement(data_paths, 1) FROM system.tables "+
		"WHERE database = currentDatabase() AND name = 'customers'").Scan(&path))
	root := filepath.Dir(filepath.Dir(strings.TrimSuffix(path, "/")))
	files := 0
	must.OK(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // a merge may remove it
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // a merge may remove it
		}
		files++
		for _, text := range texts {
			if strings.Contains(strings.ToLower(string(content)), text) {
				found = append(found, path)
			}
		}
		return nil
	}))
	check.That(t, files > 20, "%d files in %s", files, root)
	return found
}

// TestCustomersAreStoredAsHashes sends customers in all ways, also in lines that are rejected, and looks for them in
// all tables, files and answers. After an erasure, the hashes are gone, too.
func TestCustomersAreStoredAsHashes(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const head = `"time":"2026-05-02T11:00:00Z","websiteId":1,`
	events := `{"eventId":"v",` + head + `"visitor":"` + itsPhone + `","event":"view","campaignId":12,"variationId":1}
{"eventId":"o-1",` + head + `"visitor":"` + itsPhone + `","event":"goal","goalId":3,"customer":"` + email + `"}
{"eventId":"o-2",` + head + `"event":"goal","goalId":3,"value":5,"customer":"` + shopID + `"}
{` + head + `"event":"customer","customer":"` + email + `"}
`
	h.must("import", write("events.ndjson", events))
	rejected := `{"eventId":"r-1",` + head + `"event":"goal","goalId":3,"value":"x","customer":"` + email + `"}
{"eventId":"r-2",` + head + `"event":"goal","goalId":3,"value":"x","customer":"` + shopID + `"}
{"eventId":"r-3",` + head + `"event":"view","customer":"` + shopID + `"}
not JSON but ` + email + `
`
	_, out, complaints := h.run("import", write("rejected.ndjson", rejected))
	answers := out + complaints
	mapping := write("mapping.yaml", "fields:\n  eventId: id\n  time: at\n  websiteId: {value: 1}\n"+
		"  visitor: {value: \"\"}\n  event: {value: goal}\n  goalId: {value: 3}\n  value: total\n  customer: buyer\n")
	_, out, complaints = h.run("import", "-m", mapping,
		write("orders.csv", "id,at,total,buyer\n1,yesterday,5,"+shopID+"\n2,2026-05-02T11:00:00Z,x,"+shopID+"\n"))
	answers += out + complaints
	must.OK(t, h.store.Conn.Exec(t.Context(), "INSERT INTO events_inbox (website_id, event_id, time, event, goal_id, "+
		"value, customer) VALUES (1, 'i-1', '2026-05-02 11:00:00', 'goal', '3', '5', '"+email+"')"))
	must.Get(ingest.NewInbox(h.store.Conn, h.store.Writer).MoveRows(t.Context()))(t)
	for _, args := range [][]string{
		{"events"},
		{"events", "--rejects"},
		{"events", "--visitor", itsPhone},
		{"events", "--customer", email},
		{"report", "campaign", "12", "--json"},
		{"export"},
		{"audit"},
	} {
		answers += h.must(args...)
	}
	check.That(t, strings.Contains(h.must("events", "--customer", email), "Website 1"), "the orders are stored")
	for _, text := range []string{email, shopID} {
		check.That(t, !strings.Contains(strings.ToLower(answers), text), "%s is in an answer:\n%s", text, answers)
	}
	sent := []string{email, shopID, "jane.doe"}
	check.That(t, rowsWith(t, h, sent...) == nil, "rows with customers: %v", rowsWith(t, h, sent...))
	check.That(t, filesWith(t, h, sent...) == nil, "files with customers: %v", filesWith(t, h, sent...))

	salt := h.store.Catalogue.Snapshot().SaltOf(1)
	check.Equal(t, len(salt), 32, "size of the salt")
	var hashes []string
	for _, text := range []string{email, shopID} {
		id := schema.HashCustomer(salt, text)
		hashes = append(hashes, fmt.Sprint(id), schema.FormatCustomer(id))
	}
	hashes = append(hashes, fmt.Sprint(schema.HashID(itsPhone)))
	check.That(t, len(rowsWith(t, h, hashes...)) >= 3, "the hashes are in %v", rowsWith(t, h, hashes...))
	h.must("forget", "--customer", email, "--customer", shopID, "--yes")
	check.That(t, rowsWith(t, h, hashes...) == nil, "after an erasure, hashes are in %v", rowsWith(t, h, hashes...))
	h.must("facts", "--verify")
}

// renewedOrders are a view, the order that wins a customer, and a renewal without a visitor, at times before now.
func renewedOrders(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	text := `{"eventId":"v","time":"2026-05-02T10:00:00Z","websiteId":1,"visitor":"a","event":"view","campaignId":12,"variationId":1}
{"eventId":"o-1","time":"2026-05-02T11:00:00Z","websiteId":1,"visitor":"a","event":"goal","goalId":3,"value":5,"customer":"c"}
{"eventId":"o-2","time":"2026-05-12T11:00:00Z","websiteId":1,"event":"goal","goalId":3,"value":7,"customer":"c"}
`
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestCopiesHaveTheCustomers copies a store: the salt, the orders without a visitor, and thus the reports.
func TestCopiesHaveTheCustomers(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	h.must("import", renewedOrders(t))
	copied := newHouse(t)
	must.Get(copied.store.Catalogue.CopyFrom(t.Context(), h.store.Conn))(t)
	for range 2 {
		must.Get(ingest.CopyEvents(t.Context(), copied.store.Writer, h.store.Conn, func(uint64, uint64) {}))(t)
	}
	check.Equal(t, copied.reported("campaign", "12"), "0/0/0 1/1/12", "the report of the copy")
	orders := h.must("events", "--customer", "c")
	check.Contains(t, orders, "won by the first order of visitor", "orders of the customer")
	check.Equal(t, copied.must("events", "--customer", "c"), orders, "orders of the customer in the copy")
}

// TestShortHistoryIsNamed checks that a report warns if it is not known who was a customer before.
func TestShortHistoryIsNamed(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	h.must("import", renewedOrders(t))
	check.Contains(t, h.must("report", "campaign", "12"), "customers are known since 2026-05-02T11:00:00Z only", "the report")
	history := filepath.Join(t.TempDir(), "history.csv")
	const export = "Id,Created at,Email,Total,Cancelled at\n1,2026-01-02 10:00:00 +0000,x@example.com,5,\n"
	must.OK(t, os.WriteFile(history, []byte(export), 0o600))
	h.must("import", "-m", "shopify-customers", "--website", "1", history)
	report := h.must("report", "campaign", "12")
	check.That(t, !strings.Contains(report, "customers are known"), "with a history: %s", report)
	check.Contains(t, strings.Join(strings.Fields(report), " "),
		"Orders without a visitor that belong to customers won in the test: 1, with a value of 7.", "the report")
}

// TestLostRowsOfCustomersAreFound deletes rows of customers. A deep check finds them by their number.
func TestLostRowsOfCustomersAreFound(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	h.must("import", renewedOrders(t))
	must.OK(t, h.store.Conn.Exec(t.Context(),
		"ALTER TABLE customers DELETE WHERE visitor_id != 0 SETTINGS mutations_sync = 2"))
	code, out, _ := h.run("check", "--deep")
	check.Equal(t, code, exitFailed, "exit status")
	check.Contains(t, out, "rows of the table customers are lost: 1", "the check")
}

// TestOldCustomersAreDropped checks that the orders of a customer stay as long as an event of a visitor does, or the last
// order is not old.
func TestOldCustomersAreDropped(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	h.must("import", renewedOrders(t))
	drop := func(before string) int {
		at := must.Get(time.Parse(time.DateOnly, before))(t)
		return must.Get(h.store.Writer.DropOldCustomers(t.Context(), at))(t)
	}
	check.Equal(t, drop("2027-01-01"), 0, "customers with a visitor")
	must.OK(t, h.store.Conn.Exec(t.Context(), "ALTER TABLE events DELETE WHERE true SETTINGS mutations_sync = 2"))
	check.Equal(t, drop("2026-05-12"), 0, "customers with a younger order")
	check.Equal(t, drop("2026-05-13"), 1, "old customers")
	check.Contains(t, h.must("events", "--customer", "c"), "No order", "orders of the customer")
}
