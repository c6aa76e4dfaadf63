package embedded

import (
	"fmt"
	"testing"
	"time"

	"lifthouse/schema/schematest/must"
)

func BenchmarkSelectOne(b *testing.B) {
	conn := connect(b)
	for b.Loop() {
		one[uint8](b, conn, "SELECT 1")
	}
}

func BenchmarkSelectOneParallel(b *testing.B) {
	conn := connect(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one[uint8](b, conn, "SELECT 1")
		}
	})
}

// BenchmarkStream scans ten million rows through the driver.
func BenchmarkStream(b *testing.B) {
	const n = 10_000_000
	conn := connect(b)
	b.SetBytes(8 * n)
	for b.Loop() {
		rows := must.Get(conn.Query(b.Context(), "SELECT number FROM numbers(10000000)"))(b)
		var v, count uint64
		for ; rows.Next(); count++ {
			must.OK(b, rows.Scan(&v))
		}
		if err := rows.Err(); err != nil || count != n {
			b.Fatal(count, err)
		}
	}
}

// BenchmarkStreamBytes reads the same rows without the driver, to measure the transport alone.
func BenchmarkStreamBytes(b *testing.B) {
	const n = 10_000_000
	b.SetBytes(8 * n)
	buffer := make([]byte, 64<<10)
	for b.Loop() {
		a := must.Get(engine.startStatement(b.Context(), &request{sql: "SELECT number FROM numbers(10000000)", format: "Native"}))(b)
		total, err := 0, error(nil)
		for err == nil {
			var k int
			k, err = a.Read(buffer)
			total += k
		}
		if total < 8*n {
			b.Fatal(total, err)
		}
		must.OK(b, a.Close())
	}
}

// BenchmarkInsert inserts a million events in batches of 100,000 rows.
func BenchmarkInsert(b *testing.B) {
	const batches, size = 10, 100_000
	conn := database(b)
	exec(b, conn, `CREATE TABLE events (
		at         DateTime64(3, 'UTC'),
		visitor_id String,
		name       LowCardinality(String),
		value      Float64,
		country    LowCardinality(String),
		properties Map(LowCardinality(String), String)
	) ENGINE = MergeTree ORDER BY (name, visitor_id, at)`)
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	names := []string{"view", "click", "purchase", "signup"}
	countries := []string{"DE", "FR", "US", "JP", "BR"}
	properties := []map[string]string{{"plan": "free", "device": "phone"}, {"plan": "pro"}, {}}
	for b.Loop() {
		for k := range batches {
			batch := must.Get(conn.PrepareBatch(b.Context(), "INSERT INTO events"))(b)
			for i := range size {
				n := k*size + i
				must.OK(b, batch.Append(start.Add(time.Duration(n)*time.Millisecond), fmt.Sprintf("visitor-%07d", n%50_000),
					names[n%len(names)], float64(n%1000)/10, countries[n%len(countries)], properties[n%len(properties)]))
			}
			must.OK(b, batch.Send())
		}
	}
	b.ReportMetric(float64(b.N)*batches*size/b.Elapsed().Seconds(), "rows/s")
}
