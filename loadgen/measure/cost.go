// Package measure measures the time, CPU time and memory of work on a store in
// the same process, and describes the machine.
package measure

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Cost is the cost of some work.
type Cost struct {
	WallMS float64 `json:"wallMs"` // elapsed time
	CPUMS  float64 `json:"cpuMs"`  // CPU time of this process, which runs the store
	PeakMB float64 `json:"peakMB"` // largest memory of one store query, in 10^6 bytes; 0: the queries were too short to sample
}

// Run runs work once and returns its cost.
func Run(ctx context.Context, conn driver.Conn, work func() error) (Cost, error) {
	peak, stop := samplePeakMemory(ctx, conn)
	cost, err := RunTimed(work)
	stop()
	cost.PeakMB = float64(peak.Load()) / 1e6
	return cost, err
}

// RunTimed runs work once and returns its cost without the memory.
func RunTimed(work func() error) (Cost, error) {
	cpuBefore, err := cpuTime()
	if err != nil {
		return Cost{}, err
	}
	started := time.Now()
	err = work()
	wall := time.Since(started)
	cpuAfter, usageErr := cpuTime()
	return Cost{WallMS: inMilliseconds(wall), CPUMS: inMilliseconds(cpuAfter - cpuBefore)}, errors.Join(err, usageErr)
}

// samplePeriod is the time between two samples of the memory of running queries. The
// store records the peak of each query, so only queries shorter than this period are
// missed.
const samplePeriod = 20 * time.Millisecond

const peakMemory = "SELECT max(peak_memory_usage) FROM system.processes WHERE query NOT LIKE '%system.processes%'"

// samplePeakMemory records the peak memory of the store's queries, in bytes,
// until stop is called.
func samplePeakMemory(ctx context.Context, conn driver.Conn) (peak *atomic.Int64, stop func()) {
	peak = new(atomic.Int64)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(samplePeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				var sample int64
				if conn.QueryRow(ctx, peakMemory).Scan(&sample) == nil {
					peak.Store(max(peak.Load(), sample))
				}
			}
		}
	}()
	return peak, func() { cancel(); <-done }
}

// cpuTime returns the user and system CPU time of this process.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Median returns the median of each figure separately.
func Median(costs []Cost) Cost {
	median := func(figure func(Cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = figure(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return Cost{
		median(func(c Cost) float64 { return c.WallMS }),
		median(func(c Cost) float64 { return c.CPUMS }),
		median(func(c Cost) float64 { return c.PeakMB }),
	}
}

// Insertion is the result of inserting the standard data set into a store.
type Insertion struct {
	Scale           float64 `json:"scale"`
	Visitors        int     `json:"visitors"`
	Events          int     `json:"events"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
}

// MergeParts merges the parts of the events table, which the store otherwise
// merges in the background.
func MergeParts(ctx context.Context, conn driver.Conn) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE events FINAL SETTINGS optimize_skip_merged_partitions = 1")
}

// WaitForMerges returns once the store has run no merge for 3 seconds, so that
// background merges do not distort a measurement.
func WaitForMerges(ctx context.Context, conn driver.Conn) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for idle := 0; idle < 3; {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return err
		}
		if idle++; merges > 0 {
			idle = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
