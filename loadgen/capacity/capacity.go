// Package capacity simulates a server of Lifthouse with measured costs: how long reports take and how old their data are
// at a load, and which part of the machine ends it.
package capacity

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Costs are CPU times, as loadgen folds and loadgen bench measure them.
type Costs struct {
	Insert  time.Duration `json:"insert"`  // of an event that is stored, with the merges of its part
	Fold    time.Duration `json:"fold"`    // of an event that is folded while it arrives: the visitor is read again
	Refresh time.Duration `json:"refresh"` // of a refresh, whatever it folds
	Cached  time.Duration `json:"cached"`  // of a report whose data are unchanged
	Report  time.Duration `json:"report"`  // of a report that is computed from cells
	Slice   time.Duration `json:"slice"`   // of a report by an attribute, of a campaign of a million visitors
}

// Load is what arrives each second.
type Load struct {
	Events  float64 `json:"events"`
	Reports float64 `json:"reports"`
	// shares of the reports that are computed from cells, and by an attribute; the others are cached
	Computed float64 `json:"computed"`
	Sliced   float64 `json:"sliced"`
}

// Result is what a load leads to.
type Result struct {
	Busy       float64       `json:"busy"` // share of the cores that work needs; above 1, queues grow without end
	ReportMean time.Duration `json:"reportMean"`
	ReportP50  time.Duration `json:"reportP50"`
	ReportP99  time.Duration `json:"reportP99"`
	FreshP50   time.Duration `json:"freshP50"` // from the acceptance of an event until reports have it
	FreshP99   time.Duration `json:"freshP99"`
	RefreshMax time.Duration `json:"refreshMax"` // longest refresh; a refresh is one thread, so this is what limits a shard
}

const (
	// shortestInterval and longestInterval are those of engine/facts: the time between two refreshes is 100 times the
	// last one, within these.
	shortestInterval = 3 * time.Second
	longestInterval  = 10 * time.Second
	// batchEvents is the number of events of an insert.
	batchEvents = 500
	// simulated is the simulated time, of which the first third is not counted.
	simulated = 10 * time.Minute
)

// task is work that waits for a core or has one.
type task struct {
	arrived time.Duration
	cost    time.Duration
	done    func(ended time.Duration)
}

// server is a simulated server: tasks wait in one queue for the next free core.
type server struct {
	now   time.Duration
	free  int
	queue []task
	due   eventHeap
	work  time.Duration // done so far
}

// event is something that happens at a time.
type event struct {
	at     time.Duration
	happen func()
}

type eventHeap []event

func (h eventHeap) Len() int           { return len(h) }
func (h eventHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h eventHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)        { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// schedule lets something happen after a delay.
func (s *server) schedule(after time.Duration, happen func()) {
	heap.Push(&s.due, event{s.now + after, happen})
}

// submit gives a task to a core, or lets it wait for one.
func (s *server) submit(t task) {
	t.arrived = s.now
	if s.free == 0 {
		s.queue = append(s.queue, t)
		return
	}
	s.free--
	s.start(t)
}

func (s *server) start(t task) {
	s.schedule(t.cost, func() {
		s.work += t.cost
		if t.done != nil {
			t.done(s.now)
		}
		if len(s.queue) == 0 {
			s.free++
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.start(next)
	})
}

// simulation has the state of the facts and what was observed.
type simulation struct {
	server
	costs       Costs
	load        Load
	random      *rand.Rand
	unfolded    []time.Duration // acceptance times of batches
	reports     []time.Duration
	freshness   []time.Duration
	longestFold time.Duration
}

// Simulate returns what a load leads to on a number of cores of one shard. The same seed gives the same result.
func Simulate(costs Costs, load Load, cores int, seed uint64) Result {
	s := &simulation{
		server: server{free: cores}, costs: costs, load: load,
		random: rand.New(rand.NewPCG(seed, uint64(cores))), //nolint:gosec // a simulation
	}
	s.arriveBatches()
	s.arriveReports()
	s.refresh()
	for s.due.Len() > 0 && s.now < simulated {
		next, _ := heap.Pop(&s.due).(event)
		s.now = next.at
		next.happen()
	}
	return Result{
		Busy: s.neededCores() / float64(cores), ReportMean: meanOf(s.reports),
		ReportP50: percentile(s.reports, 0.5), ReportP99: percentile(s.reports, 0.99),
		FreshP50: percentile(s.freshness, 0.5), FreshP99: percentile(s.freshness, 0.99),
		RefreshMax: s.longestFold,
	}
}

// neededCores returns the number of cores that the load needs in the long run: its work in a second.
func (s *simulation) neededCores() float64 {
	report := s.load.Computed*s.costs.Report.Seconds() + s.load.Sliced*s.costs.Slice.Seconds() +
		(1-s.load.Computed-s.load.Sliced)*s.costs.Cached.Seconds()
	return s.load.Events*(s.costs.Insert+s.costs.Fold).Seconds() + s.load.Reports*report +
		s.costs.Refresh.Seconds()/shortestInterval.Seconds()
}

// isCounted reports whether the simulation has settled.
func (s *simulation) isCounted() bool { return s.now > simulated/3 }

// until returns the time until the next arrival of a Poisson process.
func (s *simulation) until(rate float64) time.Duration {
	return time.Duration(s.random.ExpFloat64() / rate * float64(time.Second))
}

func (s *simulation) arriveBatches() {
	if s.load.Events <= 0 {
		return
	}
	s.schedule(s.until(s.load.Events/batchEvents), func() {
		s.submit(task{cost: batchEvents * s.costs.Insert, done: func(ended time.Duration) {
			s.unfolded = append(s.unfolded, ended)
		}})
		s.arriveBatches()
	})
}

func (s *simulation) arriveReports() {
	if s.load.Reports <= 0 {
		return
	}
	s.schedule(s.until(s.load.Reports), func() {
		arrived := s.now
		s.submit(task{cost: s.drawReport(), done: func(ended time.Duration) {
			if s.isCounted() {
				s.reports = append(s.reports, ended-arrived)
			}
		}})
		s.arriveReports()
	})
}

// drawReport returns the cost of a report of the mix.
func (s *simulation) drawReport() time.Duration {
	switch drawn := s.random.Float64(); {
	case drawn < s.load.Sliced:
		return s.costs.Slice
	case drawn < s.load.Sliced+s.load.Computed:
		return s.costs.Report
	}
	return s.costs.Cached
}

// refresh folds what waits. It is one task at a time, because a refresh is one thread.
func (s *simulation) refresh() {
	folding := s.unfolded
	s.unfolded = nil
	began := s.now
	cost := s.costs.Refresh + time.Duration(len(folding)*batchEvents)*s.costs.Fold
	s.submit(task{cost: cost, done: func(ended time.Duration) {
		if s.isCounted() {
			for _, accepted := range folding {
				s.freshness = append(s.freshness, ended-accepted)
			}
			s.longestFold = max(s.longestFold, ended-began)
		}
		pause := min(max(shortestInterval, 100*cost), longestInterval)
		s.schedule(max(pause-(ended-began), 0), s.refresh)
	}})
}

// meanOf returns the mean of durations; 0: there are none.
func meanOf(of []time.Duration) (mean time.Duration) {
	for _, d := range of {
		mean += d / time.Duration(len(of))
	}
	return mean
}

// percentile returns a percentile of durations; 0: there are none.
func percentile(of []time.Duration, share float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[int(math.Ceil(share*float64(len(of))))-1]
}
