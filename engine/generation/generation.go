// Package generation stores rows that are computed from the events. The rows of a
// subject are a generation. A rebuild writes a new one beside the current one,
// which reports read until the new one is complete.
package generation

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ID identifies a generation.
type ID struct {
	Number uint64 // unique in the store; 0: no generation
	Bucket uint16 // partition of its rows
}

// sharedBuckets is the number of buckets that small generations share. A large
// generation has a bucket of its own, which is dropped and merged as a whole. So
// the number of partitions does not grow with the number of small subjects.
const sharedBuckets = 64

// HasOwnBucket reports whether no other generation is in the bucket.
func (id ID) HasOwnBucket() bool { return id.Bucket >= sharedBuckets }

// New returns a new generation without rows.
func New(ctx context.Context, conn driver.Conn, number uint64, large bool) (ID, error) {
	if !large {
		return ID{number, uint16(number % sharedBuckets)}, nil
	}
	used, err := buckets(ctx, conn)
	for bucket := uint16(sharedBuckets); ; bucket++ {
		if !slices.Contains(used, bucket) {
			return ID{number, bucket}, err
		}
	}
}

// NewShared returns a new generation without rows, of a store in which other processes begin
// generations too: two large ones rarely have the same bucket, and may.
func NewShared(number uint64, large bool) ID {
	if !large {
		return ID{number, uint16(number % sharedBuckets)}
	}
	return ID{number, uint16(sharedBuckets + number%(math.MaxUint16-sharedBuckets))} //nolint:gosec // below 2^16
}

// buckets returns the buckets with rows.
func buckets(ctx context.Context, conn driver.Conn) ([]uint16, error) {
	partitions, err := schema.QueryNames(ctx, conn, "SELECT DISTINCT partition FROM system.parts WHERE database = currentDatabase() AND table IN {tables:Array(String)} AND active AND rows > 0",
		clickhouse.Named("tables", schema.RollupTables))
	if err != nil {
		return nil, fmt.Errorf("list the buckets of generations: %w", err)
	}
	used := make([]uint16, len(partitions))
	for i, text := range partitions {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("list the buckets of generations: %w", err)
		}
		used[i] = uint16(n)
	}
	return used, nil
}

// Sweep deletes all rows except those of the given generations. When it returns,
// they are removed from disk. Tables are not swept at the same moment, nor are the
// parts of a table: readers must notice rows that are missing. several is whether other
// processes may begin generations meanwhile.
func Sweep(ctx context.Context, conn driver.Conn, kept []ID, several bool) error {
	for _, table := range schema.RollupTables {
		dead, err := others(ctx, conn, table, kept)
		if err != nil {
			return err
		}
		if several {
			if err := removeShared(ctx, conn, table, dead); err != nil {
				return err
			}
		}
		for bucket, numbers := range dead {
			shared := slices.ContainsFunc(kept, func(id ID) bool { return id.Bucket == bucket })
			if err := remove(ctx, conn, table, bucket, numbers, shared); err != nil {
				return err
			}
		}
	}
	return nil
}

// others returns the stored generations by bucket, except the given ones.
func others(ctx context.Context, conn driver.Conn, table string, kept []ID) (map[uint16][]uint64, error) {
	numbers := make([]uint64, len(kept))
	for i, id := range kept {
		numbers[i] = id.Number
	}
	found := map[uint16][]uint64{}
	err := schema.EachRow(ctx, conn, "SELECT DISTINCT bucket, generation FROM "+table+" WHERE generation NOT IN {kept:Array(UInt64)}", func(row driver.Rows) error {
		var bucket uint16
		var number uint64
		err := row.Scan(&bucket, &number)
		found[bucket] = append(found[bucket], number)
		return err
	}, clickhouse.Named("kept", numbers))
	if err != nil {
		return nil, fmt.Errorf("list the generations of %s: %w", table, err)
	}
	return found, nil
}

// removeShared deletes the rows of generations in shared buckets, in which other processes may
// begin generations meanwhile, and removes them from dead.
func removeShared(ctx context.Context, conn driver.Conn, table string, dead map[uint16][]uint64) error {
	var numbers []uint64
	for bucket, some := range dead {
		if bucket < sharedBuckets {
			numbers = append(numbers, some...)
			delete(dead, bucket)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	err := conn.Exec(ctx, "ALTER TABLE "+table+" DELETE WHERE bucket < {buckets:UInt16} AND generation IN {numbers:Array(UInt64)} SETTINGS mutations_sync = 1",
		clickhouse.Named("buckets", uint16(sharedBuckets)), clickhouse.Named("numbers", numbers))
	if err != nil {
		return fmt.Errorf("delete rows of %s: %w", table, err)
	}
	return nil
}

// remove deletes the rows of generations in a bucket, or all of the bucket.
func remove(ctx context.Context, conn driver.Conn, table string, bucket uint16, numbers []uint64, shared bool) (err error) {
	id := clickhouse.Named("bucket", strconv.Itoa(int(bucket)))
	if shared {
		err = conn.Exec(ctx, "ALTER TABLE "+table+" DELETE IN PARTITION ID {bucket:String} WHERE generation IN {numbers:Array(UInt64)} SETTINGS mutations_sync = 1",
			id, clickhouse.Named("numbers", numbers))
	} else {
		err = conn.Exec(ctx, "ALTER TABLE "+table+" DROP PARTITION ID {bucket:String}", id)
	}
	if err != nil {
		return fmt.Errorf("delete rows of %s: %w", table, err)
	}
	return nil
}
