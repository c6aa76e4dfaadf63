package loadgen

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Cost is what some work took: of several rounds, the medians.
type Cost struct {
	WallMS float64 `json:"wallMs"`
	CPUMS  float64 `json:"cpuMs"`  // of this process, which holds the store
	PeakMB float64 `json:"peakMB"` // of the store's queries; 0: too short to be seen
}

// costOf measures work that is done once.
func costOf(ctx context.Context, conn driver.Conn, work func() error) (Cost, error) {
	peak, stop := watchMemory(ctx, conn)
	wall, cpu, err := spent(work)
	stop()
	return Cost{milliseconds(wall), milliseconds(cpu), float64(peak.Load()) / 1e6}, err
}

// spent is what work takes of time and of this process's cores.
func spent(work func() error) (wall, cpu time.Duration, err error) {
	before, err := cpuTime()
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	err = work()
	wall = time.Since(started)
	after, usageErr := cpuTime()
	return wall, after - before, errors.Join(err, usageErr)
}

// memoryTick is how often the memory of what runs is looked at: the peak of a
// query is kept by the store, so only queries shorter than this are missed.
const memoryTick = 20 * time.Millisecond

const peakMemory = "SELECT max(peak_memory_usage) FROM system.processes WHERE query NOT LIKE '%system.processes%'"

// watchMemory notes the most that the store's queries hold, until stop.
func watchMemory(ctx context.Context, conn driver.Conn) (peak *atomic.Int64, stop func()) {
	peak = new(atomic.Int64)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(memoryTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				var now int64
				if conn.QueryRow(ctx, peakMemory).Scan(&now) == nil {
					peak.Store(max(peak.Load(), now))
				}
			}
		}
	}()
	return peak, func() { cancel(); <-ended }
}

func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// medianCost is the median of each figure by itself.
func medianCost(costs []Cost) Cost {
	of := func(figure func(Cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = figure(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return Cost{
		of(func(c Cost) float64 { return c.WallMS }),
		of(func(c Cost) float64 { return c.CPUMS }),
		of(func(c Cost) float64 { return c.PeakMB }),
	}
}
