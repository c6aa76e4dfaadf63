package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestSmoke(t *testing.T) {
	conn := connect(t)
	ctx := t.Context()
	if err := conn.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := conn.ServerVersion()
	t.Log(v, err)
	for _, sql := range []string{"CREATE DATABASE smoke", "CREATE TABLE smoke.t (a UInt64, s LowCardinality(String)) ENGINE = MergeTree ORDER BY a"} {
		if err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	db := connect(t, func(o *clickhouse.Options) { o.Auth.Database = "smoke" })
	b, err := db.PrepareBatch(ctx, "INSERT INTO t (a, s)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100000 {
		if err := b.Append(uint64(i), "x\ty"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(); err != nil {
		t.Fatal(err)
	}
	var n uint64
	if err := db.QueryRow(ctx, "SELECT count() FROM t WHERE s = {s:String} AND a < {n:UInt64}", clickhouse.Named("s", "x\ty"), clickhouse.Named("n", 1000)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	t.Log(n)
	err = db.QueryRow(ctx, "SELECT count() FROM nosuch").Scan(&n)
	var e *clickhouse.Exception
	t.Log(errors.As(err, &e), err)
	rows, err := db.Query(ctx, "SELECT throwIf(number = 5000000) FROM numbers(10000000)")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
	}
	t.Log(rows.Err(), errors.As(rows.Err(), &e), e)
	c2, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	t0 := time.Now()
	err = db.QueryRow(c2, "SELECT count() FROM numbers(1e12) WHERE NOT ignore(sipHash64(number))").Scan(&n)
	t.Log(err, time.Since(t0))
}
