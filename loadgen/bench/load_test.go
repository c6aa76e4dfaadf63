package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// newLoad returns a load of list requests to a server with the handler.
func newLoad(t *testing.T, o Options, handler http.HandlerFunc) *load {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return &load{
		client:   newClient(&o),
		workload: newWorkload(&Options{Mix: Mix{List: 1}, Seed: 1}, &targets{lists: []string{"/"}}),
		random:   rand.New(rand.NewPCG(o.Seed, 0)),
		inFlight: make(chan struct{}, o.MaxInFlight),
	}
}

// TestStallLengthensLatencies uses a server that responds to no request until the 60th request has arrived. A
// closed-loop generator would never send that many requests. Latencies that count from the actual start of a request
// would be too short.
func TestStallLengthensLatencies(t *testing.T) {
	const stalled, rate = 60, 400
	var arrived sync.WaitGroup
	arrived.Add(stalled)
	var mutex sync.Mutex
	seen := 0
	o := Defaults
	l := newLoad(t, o, func(http.ResponseWriter, *http.Request) {
		mutex.Lock()
		seen++
		waits := seen <= stalled
		mutex.Unlock()
		if waits {
			arrived.Done()
			arrived.Wait()
		}
	})
	step := must.Get(l.runStep(t.Context(), "", rate, 400*time.Millisecond))(t)
	same := &load{random: rand.New(rand.NewPCG(o.Seed, 0))}
	var scheduled [stalled]time.Duration
	at := time.Duration(0)
	for i := range scheduled {
		at += same.drawGap(rate)
		scheduled[i] = at
	}
	waited := time.Duration(0) // of all requests together
	for _, start := range scheduled {
		waited += scheduled[stalled-1] - start
	}
	all := step.All
	total := all.Latency.Mean * float64(all.Succeeded)
	check.Equal(t, all.FailedShare(), 0, "the requests took %.0f ms together, want at least %v: %+v", total, waited,
		all)
	check.That(t, total >= 0.99*float64(waited.Microseconds())/1000,
		"the requests took %.0f ms together, want at least %v: %+v", total, waited, all)
	longest := scheduled[stalled-1] - scheduled[0]
	check.That(t, all.Latency.Max >= 0.99*float64(longest.Microseconds())/1000,
		"the longest request took %.0f ms, want at least %v", all.Latency.Max, longest)
}

func TestRequestsNotSentAreCounted(t *testing.T) {
	o := Defaults
	o.MaxInFlight, o.Timeout = 2, 20*time.Millisecond
	l := newLoad(t, o, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	step, err := l.runStep(t.Context(), "", 500, 200*time.Millisecond)
	f := step.All
	must.That(t, err == nil, "%v: %+v", err, f)
	check.Equal(t, f.Succeeded, 0, "%v: %+v", err, f)
	check.That(t, f.NotSent != 0, "%v: %+v", err, f)
	check.That(t, f.Statuses["timeout"] != 0, "%v: %+v", err, f)
	check.Equal(t, f.Scheduled, f.NotSent+int64(f.Statuses["timeout"]), "%v: %+v", err, f)
	check.Equal(t, f.FailedShare(), 1, "%v: %+v", err, f)
	if err := (&Result{Steps: []Step{step}}).Err(); err == nil {
		t.Error("no error although all requests failed")
	}
}

func TestFailuresHaveNoLatency(t *testing.T) {
	l := newLoad(t, Defaults,
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	step, err := l.runStep(t.Context(), "", 500, 100*time.Millisecond)
	f := step.All
	must.That(t, err == nil, "%v: %+v", err, f)
	check.Equal(t, f.Statuses["503"], int(f.Scheduled), "%v: %+v", err, f)
	check.Equal(t, f.Succeeded, 0, "%v: %+v", err, f)
	check.Equal(t, f.Latency.Max, 0, "%v: %+v", err, f)
}

func TestMixShares(t *testing.T) {
	mix := must.Get(ParseMix("dashboard=70, list=28,uncached=2,series=0"))(t)
	small := campaign{ID: 7}
	found := &targets{
		campaigns: []campaign{small}, small: []campaign{small}, results: []string{"/results"},
		lists: []string{"/list"},
	}
	w, same := newWorkload(&Options{Mix: mix, Seed: 3}, found), newWorkload(&Options{Mix: mix, Seed: 3}, found)
	drawn := map[Kind]int{}
	for range 20_000 {
		a, b := w.nextTask(), same.nextTask()
		must.Equal(t, a.kind, b.kind, "%+v, %+v", a, b)
		must.Equal(t, a.path, b.path, "%+v, %+v", a, b)
		must.Equal(t, a.conditional, (a.kind == Dashboard), "%+v, %+v", a, b)
		must.Equal(t, a.noCache, (a.kind == Uncached), "%+v, %+v", a, b)
		drawn[a.kind]++
	}
	for _, kind := range Kinds {
		want := float64(mix[kind]) * 200
		check.That(t, math.Abs(float64(drawn[kind])-want) <= 5*math.Sqrt(want)+1, "%s: %d, want about %.0f", kind,
			drawn[kind], want)
	}
}

// withCapacity simulates a server that meets the target up to a rate, except in one slow step.
func withCapacity(capacity float64, slowStep int) measureFunc {
	n := 0
	return func(_ context.Context, _ string, rate float64) (Step, error) {
		n++
		s := Step{Rate: rate, All: Figures{Scheduled: 1000, Succeeded: 1000, Latency: Latency{P99: 10}}}
		switch {
		case n == slowStep:
			s.All.Latency.P99 = 500
		case rate > 2*capacity:
			s.All.Succeeded = 900
		case rate > capacity:
			s.All.Latency.P99 = 51
		}
		return s, nil
	}
}

func TestClimbFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{10, 137, 1000, 54_321} {
		for _, slowStep := range []int{0, 1, 2} {
			o := Defaults
			o.Rate, o.Ladder = 10, true
			steps, best, err := findHighestRate(t.Context(), &o, withCapacity(capacity, slowStep))
			must.That(t, err == nil, "capacity %g: %g, %v", capacity, best, err)
			check.That(t, best <= capacity, "capacity %g: %g, %v", capacity, best, err)
			check.That(t, best >= capacity/searchPrecision, "capacity %g: %g, %v", capacity, best, err)
			for i, s := range steps {
				want := s.Rate <= capacity && i+1 != slowStep
				check.Equal(t, s.Met, want, "capacity %g, step %d at %g: met %t, %q", capacity, i, s.Rate, s.Met,
					s.Miss)
				check.Equal(t, (s.Miss == ""), want, "capacity %g, step %d at %g: met %t, %q", capacity, i, s.Rate,
					s.Met, s.Miss)
			}
		}
	}
	o := Defaults
	o.Ladder = true
	steps, best, err := findHighestRate(t.Context(), &o, withCapacity(o.Rate/2, 0))
	r := (&Result{TargetP99: 50, Saturation: best, Steps: steps})
	must.That(t, err == nil, "no rate meets the target: best %g after %d steps, error %v", best, len(steps), r.Err())
	check.Equal(t, best, 0, "no rate meets the target: best %g after %d steps, error %v", best, len(steps), r.Err())
	check.Equal(t, len(steps), 2, "no rate meets the target: best %g after %d steps, error %v", best, len(steps),
		r.Err())
	check.That(t, r.Err() != nil, "no rate meets the target: best %g after %d steps, error %v", best, len(steps),
		r.Err())
}

func TestClimbKeepsStepsWhenInterrupted(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	steps, best, err := findHighestRate(t.Context(), &Options{Rate: 1, TargetP99: time.Second},
		func(context.Context, string, float64) (Step, error) {
			if n++; n > 3 {
				return Step{}, stop
			}
			return Step{}, nil
		})
	check.That(t, errors.Is(err, stop), "%d steps, %g, %v", len(steps), best, err)
	check.Equal(t, len(steps), 3, "%d steps, %g, %v", len(steps), best, err)
	check.Equal(t, best, 2.25, "%d steps, %g, %v", len(steps), best, err)
}
