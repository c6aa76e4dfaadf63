package embedded

import (
	"errors"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestErrorsHaveTheirCodes(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64, CONSTRAINT small CHECK id < 10) ENGINE = MergeTree ORDER BY id")
	for _, tt := range []struct {
		sql      string
		settings clickhouse.Settings
		code     int32
		name     string
	}{
		{"SELEC 1", nil, 62, "SYNTAX_ERROR"},
		{"DROP TABLE t; SELECT 1", nil, 62, "SYNTAX_ERROR"},
		{"SELECT * FROM missing", nil, 60, "UNKNOWN_TABLE"},
		{"SELECT missing", nil, 47, "UNKNOWN_IDENTIFIER"},
		{"CREATE TABLE t (id UInt64) ENGINE = Memory", nil, 57, "TABLE_ALREADY_EXISTS"},
		{"DROP TABLE missing", nil, 60, "UNKNOWN_TABLE"},
		{"INSERT INTO t VALUES (11)", nil, 469, "VIOLATED_CONSTRAINT"},
		{"INSERT INTO t SELECT 11", nil, 469, "VIOLATED_CONSTRAINT"},
		{"SELECT throwIf(1, 'a (FAKE_NAME) b')", nil, 395, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"},
		{endless("timeout"), clickhouse.Settings{"max_execution_time": 0.1}, 159, "TIMEOUT_EXCEEDED"},
		{"SELECT groupArray(number) FROM numbers(10000000)", clickhouse.Settings{"max_memory_usage": 1_000_000}, 241, "MEMORY_LIMIT_EXCEEDED"},
		{"SELECT count() FROM numbers(1000)", clickhouse.Settings{"max_rows_to_read": 10}, 158, "TOO_MANY_ROWS"},
	} {
		err := conn.Exec(with(t.Context(), tt.settings), tt.sql)
		var e *clickhouse.Exception
		check.That(t, errors.As(err, &e), "%s: %v, want %d %s", tt.sql, err, tt.code, tt.name)
		check.Equal(t, e.Code, tt.code, "%s: %v, want %d %s", tt.sql, err, tt.code, tt.name)
		check.Equal(t, e.CodeName, tt.name, "%s: %v, want %d %s", tt.sql, err, tt.code, tt.name)
	}
}

func TestErrorInBatch(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64, name String, CONSTRAINT small CHECK id < 1000) ENGINE = MergeTree ORDER BY id")
	batch := must.Get(conn.PrepareBatch(t.Context(), "INSERT INTO t (id, name)"))(t)
	for i := range uint64(1001) {
		must.OK(t, batch.Append(i, "x"))
	}
	check.Equal(t, code(batch.Send()), 469)
	exec(t, conn, "DROP TABLE t")
	err := conn.InsertFormat(t.Context(), "CSV", "INSERT INTO t", strings.NewReader("1,x"))
	check.That(t, code(err) == 60, "insert into a dropped table: %v, want code 60 (UNKNOWN_TABLE)", err)
	fillWhole(t)
}

func fillWhole(t *testing.T) {
	t.Helper()
	conn := created(t, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
	fill(t, conn, 0, 10)
	check.Equal(t, one[uint64](t, conn, "SELECT count() FROM t"), 10, "rows after failed inserts")
}

// TestErrorInMidStream checks that after an error the rows already read do not pass for the complete result.
func TestErrorInMidStream(t *testing.T) {
	conn := connect(t, func(o *clickhouse.Options) { o.MaxOpenConns = 1 })
	for _, at := range []int{1, 100_000, 5_000_000, 9_999_999} {
		rows, err := conn.Query(t.Context(), "SELECT number, throwIf(number = {at:UInt64}) FROM numbers(10000000)", clickhouse.Named("at", at))
		if err != nil {
			check.Equal(t, code(err), 395, "error at row %d: %v", at, err)
			continue
		}
		n := 0
		for rows.Next() {
			n++
		}
		check.Equal(t, code(rows.Err()), 395, "error at row %d: %d rows, then %v, want code 395", at, n, rows.Err())
		check.That(t, n <= at, "error at row %d: %d rows, then %v, want code 395", at, n, rows.Err())
		check.Equal(t, code(rows.Close()), 395, "Close")
		check.Equal(t, one[uint8](t, conn, "SELECT 7"), 7, "the next statement")
	}
}

// TestExceptionMarkerInRows reads a row with the marker of an exception that the driver recognizes.
func TestExceptionMarkerInRows(t *testing.T) {
	conn := connect(t)
	const marker = "\r\n__exception__\r\nCode: 60. DB::Exception: no"
	check.Equal(t, one[string](t, conn, "SELECT {s:String}", clickhouse.Named("s", marker)), marker)
}

// TestInsertWithoutRows checks an insert whose rows the driver cannot encode. The driver then sends no rows.
func TestInsertWithoutRows(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
	err := conn.InsertFormat(t.Context(), "Native", "INSERT INTO t", strings.NewReader(""))
	check.That(t, code(err) == codeNoData, "got %v, want code %d (NO_DATA_TO_INSERT)", err, codeNoData)
}

func TestNewException(t *testing.T) {
	for _, tt := range []struct {
		text    string
		code    int32
		name    string
		message string
	}{
		{"Code: 60. DB::Exception: No t. (UNKNOWN_TABLE)", 60, "UNKNOWN_TABLE", "No t. (UNKNOWN_TABLE)"},
		{"Code: 210. DB::NetException: No. (NETWORK_ERROR) (version 26.7.2.1)", 210, "NETWORK_ERROR", "No. (NETWORK_ERROR) (version 26.7.2.1)"},
		{"Code: 395. DB::Exception: (A_B) of the user", 395, "", "(A_B) of the user"},
		{"out of luck", 1002, "", "out of luck"},
		{"Code: 99999999999. DB::Exception: x", 1002, "", "x"},
	} {
		e := newException(tt.text)
		check.Equal(t, e.Code, tt.code, "newException(%q) = %d, %q, %q", tt.text, e.Code, e.CodeName, e.Message)
		check.Equal(t, e.CodeName, tt.name, "newException(%q) = %d, %q, %q", tt.text, e.Code, e.CodeName, e.Message)
		check.Equal(t, e.Message, tt.message, "newException(%q) = %d, %q, %q", tt.text, e.Code, e.CodeName, e.Message)
	}
}
