package embedded

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// insertRow inserts a row by a batch of the driver, which describes the table before.
func insertRow(t *testing.T, conn driver.Conn, statement string, values ...any) {
	t.Helper()
	batch, err := conn.PrepareBatch(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Append(values...); err != nil {
		t.Fatal(err)
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}

// TestInsertsFollowChangesOfTheTable changes a table in all ways between inserts, and by
// another connection.
func TestInsertsFollowChangesOfTheTable(t *testing.T) {
	conn, other := database(t), connect(t)
	name := one[string](t, conn, "SELECT currentDatabase()") + ".t"
	exec(t, conn, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
	insertRow(t, conn, "INSERT INTO t", uint64(1))
	insertRow(t, conn, "INSERT INTO t", uint64(2))
	exec(t, other, "ALTER TABLE "+name+" ADD COLUMN text String")
	insertRow(t, conn, "INSERT INTO t", uint64(3), "three")
	exec(t, conn, "/* a comment */ ALTER TABLE t MODIFY COLUMN text LowCardinality(String)")
	insertRow(t, conn, "INSERT INTO t (text, n)", "four", uint64(4))
	exec(t, other, "ALTER TABLE "+name+" RENAME COLUMN text TO word")
	insertRow(t, conn, "INSERT INTO t (word, n)", "five", uint64(5))
	if got := one[string](t, conn, "SELECT arrayStringConcat(groupArray(concat(toString(n), word)), ' ') FROM (SELECT * FROM t ORDER BY n)"); got != "1 2 3three 4four 5five" {
		t.Errorf("rows %q", got)
	}
	exec(t, other, "DROP TABLE "+name)
	if _, err := conn.PrepareBatch(t.Context(), "INSERT INTO t"); err == nil {
		t.Error("a batch for a dropped table is accepted")
	}
	exec(t, conn, "CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s")
	insertRow(t, conn, "INSERT INTO t", "text")
	exec(t, conn, "CREATE TABLE u (x Int8) ENGINE = MergeTree ORDER BY x")
	exec(t, conn, "EXCHANGE TABLES t AND u")
	insertRow(t, conn, "INSERT INTO t", int8(1))
	if got := one[uint64](t, conn, "SELECT count() FROM t"); got != 1 {
		t.Errorf("%d rows, want 1", got)
	}
}

// TestDescriptionsAreKept checks that a description is kept, and not across a change that
// ends while it is read.
func TestDescriptionsAreKept(t *testing.T) {
	var d described
	key, is := d.keyOf(&request{sql: "DESCRIBE TABLE t", settings: map[string]string{"max_execution_time": "5"}})
	again, _ := d.keyOf(&request{sql: "DESCRIBE TABLE t", settings: map[string]string{"max_execution_time": "6"}})
	if !is || key != again {
		t.Errorf("keys %q, %q", key, again)
	}
	if other, _ := d.keyOf(&request{sql: "DESCRIBE TABLE t", database: "d"}); other == key {
		t.Error("the database is not part of the key")
	}
	if _, is := d.keyOf(&request{sql: "SELECT 1"}); is {
		t.Error("a query is taken for a description")
	}
	_, changes := d.cachedAnswer(key)
	d.storeAnswer(key, []byte("columns"), changes)
	if kept, _ := d.cachedAnswer(key); string(kept) != "columns" {
		t.Errorf("kept %q", kept)
	}
	for _, sql := range []string{"SELECT 1", "INSERT INTO t VALUES (1)", "-- a comment\nSELECT 1"} {
		if err := d.runAndInvalidate(sql, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if kept, _ := d.cachedAnswer(key); kept == nil {
			t.Errorf("%s drops the description", sql)
		}
	}
	for _, sql := range []string{"ALTER TABLE t DROP COLUMN c", "-- SELECT\nDROP TABLE t", "/* */ RENAME TABLE t TO u", "CREATE TABLE t AS u", "RESTORE DATABASE d", "ATTACH TABLE t"} {
		_, before := d.cachedAnswer(key)
		err := d.runAndInvalidate(sql, func() error { d.storeAnswer(key, []byte("read before the change"), before+1); return nil })
		if err != nil {
			t.Fatal(err)
		}
		kept, after := d.cachedAnswer(key)
		if kept != nil {
			t.Errorf("%s keeps the description", sql)
		}
		d.storeAnswer(key, []byte("columns"), before)
		if kept, _ := d.cachedAnswer(key); kept != nil {
			t.Errorf("%s: an old description is kept", sql)
		}
		d.storeAnswer(key, []byte("columns"), after)
	}
}
