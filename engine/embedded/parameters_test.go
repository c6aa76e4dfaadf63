package embedded

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/schematest/check"
)

// unusual returns texts that a layer between the driver and the engine could misinterpret.
func unusual() []string {
	random := rand.New(rand.NewPCG(1, 2))
	bytes := make([]byte, 512)
	for i := range bytes {
		bytes[i] = byte(random.UintN(256))
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []string{
		"", " ", "a", "\t", "\n", "\r\n", "\\", "\\\\", "\\N", "\\t", "\\0", "'", "''", "\"", "`", "NULL", "\x00", "a\x00b", "\x00\x00",
		"&x=1", "a=b&c", "%00", "%", "+", "?", "{x:String}", "/* */", "-- ", ";", "'; DROP TABLE t; --", "日本語",
		"\xff\xfe", "\xc3(", "\ufeff",
		strings.Repeat("x\\", 70_000), string(bytes), string(all),
	}
}

func TestStringParameters(t *testing.T) {
	conn := connect(t)
	for _, s := range unusual() {
		checkString(t, conn, s)
	}
}

func checkString(t *testing.T, conn driver.Conn, s string) {
	t.Helper()
	// The value is both read back and compared by the engine.
	var got string
	var length uint64
	err := conn.QueryRow(t.Context(), "SELECT {s:String}, length({s:String})", clickhouse.Named("s", s)).Scan(&got,
		&length)
	if err != nil {
		t.Errorf("%.100q: %v", s, err)
	} else if got != s || length != uint64(len(s)) {
		t.Errorf("%.100q came back as %.100q of %d bytes", s, got, length)
	}
}

func TestArrayParameters(t *testing.T) {
	conn := connect(t)
	// The driver quotes the strings of an array, but not these.
	want := []string{"", "a", "it's", `back\slash`, "a\tb\nc", `"`, "NULL", "日本語", "\x00"}
	if got := one[[]string](t, conn, "SELECT {a:Array(String)}", clickhouse.Named("a", want)); !reflect.DeepEqual(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	numbers := []uint64{0, 1, 1 << 63}
	got := one[[]uint64](t, conn, "SELECT {a:Array(UInt64)}", clickhouse.Named("a", numbers))
	check.That(t, reflect.DeepEqual(got, numbers), "got %v, want %v", got, numbers)
}

func TestOtherParameters(t *testing.T) {
	conn := database(t)
	if got := one[*string](t, conn, "SELECT {s:Nullable(String)}", clickhouse.Named("s", nil)); got != nil {
		t.Errorf("NULL came back as %q", *got)
	}
	check.Equal(t, one[int64](t, conn, "SELECT {n:Int64}", clickhouse.Named("n", int64(-1<<63))), -1<<63)
	at := time.Date(2024, 2, 29, 12, 30, 0, 123e6, time.UTC)
	got := one[time.Time](t, conn, "SELECT {t:DateTime64(3, 'UTC')}",
		clickhouse.DateNamed("t", at, clickhouse.MilliSeconds))
	check.That(t, got.Equal(at), "got %v, want %v", got, at)
	exec(t, conn, "CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s")
	exec(t, conn, "INSERT INTO {table:Identifier} SELECT {s:String}", clickhouse.Named("table", "t"),
		clickhouse.Named("s", "a\tb"))
	check.Equal(t, one[string](t, conn, "SELECT s FROM {table:Identifier}", clickhouse.Named("table", "t")), "a\tb")
	// A parameter is visible only to its own statement.
	err := conn.Exec(t.Context(), "SELECT {s:String}")
	check.Equal(t, code(err), 456, "a statement without its parameter: %v", err)
}

func FuzzStringParameter(f *testing.F) {
	for _, s := range unusual() {
		if len(s) < 1000 { // longer ones take minutes to minimize
			f.Add(s)
		}
	}
	conn := connect(f)
	f.Fuzz(func(t *testing.T, s string) { checkString(t, conn, s) })
}
