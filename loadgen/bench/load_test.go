package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// newLoad asks a handler for lists.
func newLoad(t *testing.T, o Options, handler http.HandlerFunc) *load {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return &load{
		client:   newClient(&o),
		workload: newWorkload(&Options{Mix: Mix{List: 1}, Seed: 1}, &subjects{lists: []string{"/"}}),
		random:   rand.New(rand.NewPCG(o.Seed, 0)),
		underWay: make(chan struct{}, o.MostUnderWay),
	}
}

// TestAStallIsChargedInFull has the server answer nobody until so many have
// asked: a generator that waits for answers would never get that far, and one
// that counts from the sending would call the waiting short.
func TestAStallIsChargedInFull(t *testing.T) {
	const together, rate = 60, 400
	var arrived sync.WaitGroup
	arrived.Add(together)
	var first sync.Mutex
	seen := 0
	o := Defaults
	l := newLoad(t, o, func(http.ResponseWriter, *http.Request) {
		first.Lock()
		seen++
		mine := seen <= together
		first.Unlock()
		if mine {
			arrived.Done()
			arrived.Wait()
		}
	})
	step, err := l.step(t.Context(), "", rate, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	same := &load{random: rand.New(rand.NewPCG(o.Seed, 0))}
	var due [together]time.Duration
	at := time.Duration(0)
	for i := range due {
		at += same.gap(rate)
		due[i] = at
	}
	least := float64((due[together-1] - due[together/2]).Microseconds()) / 1000 // half of them waited longer
	waited := 0
	for _, point := range step.Curve {
		if point.Milliseconds >= 0.99*least {
			waited = int(math.Round((1 - point.Share) * float64(step.All.Answered)))
			break
		}
	}
	if step.All.Failed() != 0 || waited < together/3 || step.All.Latency.Max < 0.99*float64((due[together-1]-due[0]).Microseconds())/1000 {
		t.Errorf("%d answers took %.0f ms or more, want some %d: %+v", waited, least, together/2, step.All)
	}
}

func TestWhatCannotBeSentIsCounted(t *testing.T) {
	o := Defaults
	o.MostUnderWay, o.Timeout = 2, 20*time.Millisecond
	l := newLoad(t, o, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	step, err := l.step(t.Context(), "", 500, 200*time.Millisecond)
	f := step.All
	if err != nil || f.Answered != 0 || f.NotSent == 0 || f.Statuses["timeout"] == 0 || f.Asked != f.NotSent+int64(f.Statuses["timeout"]) || f.Failed() != 1 {
		t.Errorf("%v: %+v", err, f)
	}
	if err := (&Result{Steps: []Step{step}}).Err(); err == nil {
		t.Error("all failed, and that is no failure")
	}
}

func TestRefusalsAreCountedByStatusAndMakeNothingLookQuick(t *testing.T) {
	l := newLoad(t, Defaults, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	step, err := l.step(t.Context(), "", 500, 100*time.Millisecond)
	if f := step.All; err != nil || f.Statuses["503"] != int(f.Asked) || f.Answered != 0 || f.Latency.Max != 0 || len(step.Curve) != 0 {
		t.Errorf("%v: %+v", err, f)
	}
}

func TestTheMixHasItsShares(t *testing.T) {
	mix, err := ParseMix("dashboard=70, list=28,uncached=2,series=0")
	if err != nil {
		t.Fatal(err)
	}
	small := campaign{ID: 7}
	found := &subjects{campaigns: []campaign{small}, small: []campaign{small}, polled: []string{"/polled"}, lists: []string{"/list"}}
	w, same := newWorkload(&Options{Mix: mix, Seed: 3}, found), newWorkload(&Options{Mix: mix, Seed: 3}, found)
	drawn := map[Kind]int{}
	for range 20_000 {
		a, b := w.next(), same.next()
		if a.kind != b.kind || a.path != b.path || a.conditional != (a.kind == Dashboard) || a.fresh != (a.kind == Uncached) {
			t.Fatalf("%+v, %+v", a, b)
		}
		drawn[a.kind]++
	}
	for _, kind := range Kinds {
		want := float64(mix[kind]) * 200
		if math.Abs(float64(drawn[kind])-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("%s: %d, want about %.0f", kind, drawn[kind], want)
		}
	}
}

func TestMixFaultsComeAtOnce(t *testing.T) {
	_, err := ParseMix("dashbord=1,list,list=-1,series=2,series=3")
	for _, says := range []string{`"dashbord=1"`, `"list"`, `"list=-1"`, "series stands twice"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not tell of %s", err, says)
		}
	}
	if _, err := ParseMix("list=0"); err == nil {
		t.Error("a mix of nothing")
	}
}

func TestOptionFaultsComeAtOnce(t *testing.T) {
	o := Options{URL: "localhost", AdminURL: "x", Rate: math.NaN(), WarmUp: -1, Ladder: true}
	err := o.Fault()
	for _, name := range []string{"url", "admin-url", "token", "rate", "duration", "warm-up", "timeout", "most-under-way", "target-p99"} {
		if err == nil || !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
	good := Defaults
	good.Token = "lh_x"
	if err := good.Fault(); err != nil {
		t.Error(err)
	}
}

// capable is a server that meets the target up to a rate, but for one hiccup.
func capable(capacity float64, hiccupAt int) measuring {
	n := 0
	return func(_ context.Context, _ string, rate float64) (Step, error) {
		n++
		s := Step{Rate: rate, All: Figures{Asked: 1000, Answered: 1000, Latency: Latency{P99: 10}}}
		switch {
		case n == hiccupAt:
			s.All.Latency.P99 = 500
		case rate > 2*capacity:
			s.All.Answered = 900
		case rate > capacity:
			s.All.Latency.P99 = 51
		}
		return s, nil
	}
}

func TestTheLadderFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{10, 137, 1000, 54_321} {
		for _, hiccup := range []int{0, 1, 2} {
			o := Defaults
			o.Rate, o.Ladder = 10, true
			steps, best, err := climb(t.Context(), &o, capable(capacity, hiccup))
			if err != nil || best > capacity || best < capacity/fine {
				t.Errorf("capacity %g: %g, %v", capacity, best, err)
			}
			for i, s := range steps {
				if s.Met != (s.Rate <= capacity && i+1 != hiccup) || s.Met != (s.Why == "") {
					t.Errorf("capacity %g, step %d at %g: met %t, %q", capacity, i, s.Rate, s.Met, s.Why)
				}
			}
		}
	}
	o := Defaults
	o.Ladder = true
	steps, best, err := climb(t.Context(), &o, capable(o.Rate/2, 0))
	if r := (&Result{TargetP99: 50, Saturation: best, Steps: steps}); err != nil || best != 0 || len(steps) != 2 || r.Err() == nil {
		t.Errorf("nothing meets the target: %g after %d steps, %v", best, len(steps), r.Err())
	}
}

func TestALadderThatIsInterruptedKeepsItsSteps(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	steps, best, err := climb(t.Context(), &Options{Rate: 1, TargetP99: time.Second}, func(context.Context, string, float64) (Step, error) {
		if n++; n > 3 {
			return Step{}, stop
		}
		return Step{}, nil
	})
	if !errors.Is(err, stop) || len(steps) != 3 || best != 2.25 {
		t.Errorf("%d steps, %g, %v", len(steps), best, err)
	}
}
