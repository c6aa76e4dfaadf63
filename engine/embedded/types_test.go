package embedded

import (
	"database/sql/driver"
	"fmt"
	"math"
	"math/big"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func bigInt(s string) big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic(s)
	}
	return *n
}

// text is a value whose Go type belongs to a package that only the driver needs.
type text string

// Scan implements sql.Scanner.
func (t *text) Scan(v any) error {
	*t = text(fmt.Sprint(v))
	return nil
}

// Value implements driver.Valuer.
func (t text) Value() (driver.Value, error) { return string(t), nil }

func ptr[T any](v T) *T { return &v }

// everyType returns each type with values at its edges. The values are inserted by a batch and must be read back
// unchanged.
func everyType() []struct {
	name   string
	values []any
} {
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	return []struct {
		name   string
		values []any
	}{
		{"Bool", []any{true, false}},
		{"Int8", []any{int8(math.MinInt8), int8(math.MaxInt8)}},
		{"Int16", []any{int16(math.MinInt16), int16(math.MaxInt16)}},
		{"Int32", []any{int32(math.MinInt32), int32(math.MaxInt32)}},
		{"Int64", []any{int64(math.MinInt64), int64(math.MaxInt64)}},
		{"UInt8", []any{uint8(0), uint8(math.MaxUint8)}},
		{"UInt16", []any{uint16(0), uint16(math.MaxUint16)}},
		{"UInt32", []any{uint32(0), uint32(math.MaxUint32)}},
		{"UInt64", []any{uint64(0), uint64(math.MaxUint64)}},
		{"Int128", []any{bigInt("-170141183460469231731687303715884105728"), bigInt("170141183460469231731687303715884105727")}},
		{"UInt128", []any{bigInt("340282366920938463463374607431768211455")}},
		{"Int256", []any{bigInt("-57896044618658097711785492504343953926634992332820282019728792003956564819968")}},
		{"UInt256", []any{bigInt("115792089237316195423570985008687907853269984665640564039457584007913129639935")}},
		{"Float32", []any{float32(0), float32(math.SmallestNonzeroFloat32), float32(math.Inf(-1))}},
		{"Float64", []any{math.Copysign(0, -1), math.MaxFloat64, math.Inf(1), 0.1}},
		{"Decimal(9, 4)", []any{text("-12345.6789")}},
		{"Decimal(76, 20)", []any{text("12345678901234567890123456789012345678901234567890.12345678901234567891")}},
		{"String", []any{"", "a", "\x00\xff\t\n\\'\"`", "日本語 🦆"}},
		{"FixedString(4)", []any{"a\x00\xff\\"}},
		{"UUID", []any{text("123e4567-e89b-12d3-a456-426614174000")}},
		{"Date", []any{time.Date(2149, 6, 6, 0, 0, 0, 0, time.UTC)}},
		{"Date32", []any{time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"DateTime('UTC')", []any{at.Truncate(time.Second)}},
		{"DateTime64(3, 'UTC')", []any{at.Truncate(time.Millisecond), time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC)}},
		{"DateTime64(9, 'UTC')", []any{at}},
		{"IPv4", []any{net.IPv4(192, 0, 2, 1).To4()}},
		{"IPv6", []any{net.ParseIP("2001:db8::1")}},
		{"Enum8('a' = -1, 'b\\'' = 2)", []any{"a", "b'"}},
		{"Enum16('x' = 1000)", []any{"x"}},
		{"LowCardinality(String)", []any{"", "one", "two", "one"}},
		{"LowCardinality(Nullable(String))", []any{(*string)(nil), ptr("one")}},
		{"Nullable(UInt64)", []any{(*uint64)(nil), ptr(uint64(7))}},
		{"Nullable(String)", []any{(*string)(nil), ptr("")}},
		{"Array(UInt32)", []any{[]uint32{}, []uint32{1, 2, 3}}},
		{"Array(Array(String))", []any{[][]string{}, [][]string{{}, {"a\tb", ""}}}},
		{"Array(LowCardinality(String))", []any{[]string{"a", "b", "a"}}},
		{"Array(Nullable(Int64))", []any{[]*int64{nil, ptr(int64(-1))}}},
		{"Map(String, UInt64)", []any{map[string]uint64{}, map[string]uint64{"a": 1, "b": 2}}},
		{"Map(LowCardinality(String), Array(String))", []any{map[string][]string{"a": {"x", "y"}}}},
		{"Tuple(UInt8, String)", []any{[]any{uint8(1), "a"}}},
		{"Tuple(a UInt8, b Array(String))", []any{map[string]any{"a": uint8(1), "b": []string{"x"}}}},
		{"Array(Tuple(k String, v Float64))", []any{[]map[string]any{{"k": "a", "v": 1.5}}}},
	}
}

func TestTypesRoundTrip(t *testing.T) {
	conn := database(t)
	for _, typ := range everyType() {
		t.Run(typ.name, func(t *testing.T) {
			exec(t, conn, "CREATE OR REPLACE TABLE t (id UInt32, v "+typ.name+") ENGINE = MergeTree ORDER BY id")
			batch := must.Get(conn.PrepareBatch(t.Context(), "INSERT INTO t (id, v)"))(t)
			for i, v := range typ.values {
				must.OK(t, batch.Append(uint32(i), v))
			}
			must.OK(t, batch.Send())
			for i, v := range typ.values {
				got := reflect.New(reflect.TypeOf(v))
				must.OK(t,
					conn.QueryRow(t.Context(), "SELECT v FROM t WHERE id = {id:UInt32}",
						clickhouse.Named("id", i)).Scan(got.Interface()))
				check.That(t, same(got.Elem().Interface(), v), "%#v came back as %#v", v, got.Elem().Interface())
			}
		})
	}
}

func same(a, b any) bool {
	switch a := a.(type) {
	case time.Time:
		return a.Equal(b.(time.Time))
	case big.Int:
		other := b.(big.Int)
		return a.Cmp(&other) == 0
	case float64:
		return math.Float64bits(a) == math.Float64bits(b.(float64))
	case net.IP:
		return a.Equal(b.(net.IP))
	}
	return reflect.DeepEqual(a, b)
}

// TestWideTable inserts and reads a table with every type and enough rows for several blocks.
func TestWideTable(t *testing.T) {
	conn := database(t)
	create, query := "", ""
	var row []any
	for i, typ := range everyType() {
		create += fmt.Sprintf(", c%d %s", i, typ.name)
		query += fmt.Sprintf(", c%d", i)
		row = append(row, typ.values[0])
	}
	exec(t, conn, "CREATE TABLE t (id UInt32"+create+") ENGINE = MergeTree ORDER BY id")
	const n = 3000
	ctx := with(t.Context(), clickhouse.Settings{"max_block_size": 1000})
	batch := must.Get(conn.PrepareBatch(ctx, "INSERT INTO t (id"+query+")"))(t)
	for i := range n {
		must.OK(t, batch.Append(append([]any{uint32(i)}, row...)...))
	}
	must.OK(t, batch.Send())
	rows := must.Get(conn.Query(ctx, "SELECT id"+query+" FROM t ORDER BY id"))(t)
	defer func() { _ = rows.Close() }()
	got := make([]any, len(row)+1)
	got[0] = new(uint32)
	for i, v := range row {
		got[i+1] = reflect.New(reflect.TypeOf(v)).Interface()
	}
	count := 0
	for ; rows.Next(); count++ {
		must.OK(t, rows.Scan(got...))
		for i, v := range row {
			if back := reflect.ValueOf(got[i+1]).Elem().Interface(); !same(back, v) {
				t.Fatalf("row %d, %s: %#v came back as %#v", count, everyType()[i].name, v, back)
			}
		}
	}
	must.OK(t, rows.Err())
	check.Equal(t, count, n, "rows")
}
