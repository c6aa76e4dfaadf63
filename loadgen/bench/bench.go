// Package bench puts a load on a running server and measures how long its
// answers take. The load is open: requests come when they are due, whether or
// not earlier ones are answered, as those of many people do.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options are what is asked of whom, and how much.
type Options struct {
	URL, Token     string
	IngestToken    string // empty: no events are sent
	AdminURL       string // of /metrics; empty: the server's own figures are not read
	Mix            Mix
	Campaigns      []int64 // to ask about; empty: all
	IngestCampaign int64   // that events are sent to; 0: the smallest
	Seed           uint64

	Rate         float64       // requests a second; of a ladder the first
	Duration     time.Duration // of a step
	WarmUp       time.Duration // at the first rate, before anything is measured
	Timeout      time.Duration // of a request
	MostUnderWay int           // requests; those due beyond are not sent

	Ladder    bool
	TargetP99 time.Duration

	Show      func(Live) // nil: nothing is shown meanwhile
	ShowEvery time.Duration
	Done      func(Step) // nil, or told of each step
}

// Defaults of the options that have one.
var Defaults = Options{
	URL: "http://127.0.0.1:8080", Seed: 1, Rate: 100, Duration: 15 * time.Second, WarmUp: 3 * time.Second,
	Timeout: 30 * time.Second, MostUnderWay: 1000, TargetP99: 50 * time.Millisecond,
}

// Result is what a run measured.
type Result struct {
	URL        string         `json:"url"`
	At         time.Time      `json:"at"`
	Generator  map[string]any `json:"generator"` // the machine that asked
	Mix        string         `json:"mix"`
	Seed       uint64         `json:"seed"`
	Notes      []string       `json:"notes"`
	TargetP99  float64        `json:"targetP99,omitempty"`  // milliseconds, of a ladder
	Saturation float64        `json:"saturation,omitempty"` // highest rate that met it; 0: none did
	Steps      []Step         `json:"steps"`                // in the order of their measuring
}

// Fault says what is wrong with the options, all of it, or nothing.
func (o *Options) Fault() error {
	var faults []string
	fault := func(wrong bool, name string, value any, want string) {
		if wrong {
			faults = append(faults, fmt.Sprintf("%s %q: want %s", name, fmt.Sprint(value), want))
		}
	}
	for name, address := range map[string]string{"url": o.URL, "admin-url": o.AdminURL} {
		u, err := url.Parse(address)
		fault((address != "" || name == "url") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""), name, address, "http://host:port")
	}
	fault(o.Token == "", "token", "", "a token of the scope read")
	fault(!(o.Rate > 0 && o.Rate <= 1e6), "rate", o.Rate, "requests a second, above 0, at most 1000000")
	fault(o.Duration <= 0, "duration", o.Duration, "above 0")
	fault(o.WarmUp < 0, "warm-up", o.WarmUp, "0 or more")
	fault(o.Timeout <= 0, "timeout", o.Timeout, "above 0")
	fault(o.MostUnderWay < 1, "most-under-way", o.MostUnderWay, "1 or more")
	fault(o.Ladder && o.TargetP99 <= 0, "target-p99", o.TargetP99, "above 0")
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("%s", strings.Join(faults, "; "))
}

// Run puts the load on the server. What was measured before it was interrupted
// is returned with the error.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{URL: o.URL, At: time.Now().UTC().Truncate(time.Second), Seed: o.Seed, Notes: []string{}, Generator: map[string]any{"cpus": runtime.NumCPU(), "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH}}
	if o.Mix[Ingest] > 0 && o.IngestToken == "" {
		r.Notes = append(r.Notes, fmt.Sprintf("ingest=%d is left out: there is no ingest token", o.Mix[Ingest]))
		kept := Mix{}
		for kind, weight := range o.Mix {
			if kind != Ingest {
				kept[kind] = weight
			}
		}
		if o.Mix = kept; kept.total() == 0 {
			return r, fmt.Errorf("the mix has nothing but events: give an ingest token")
		}
	}
	r.Mix = o.Mix.String()
	c := newClient(&o)
	defer c.http.CloseIdleConnections()
	found, err := c.find(ctx, &o)
	if err != nil {
		return r, err
	}
	l := &load{
		client: c, workload: newWorkload(&o, found), random: rand.New(rand.NewPCG(o.Seed, 0)),
		underWay: make(chan struct{}, o.MostUnderWay), show: o.Show, every: o.ShowEvery,
	}
	if o.WarmUp > 0 {
		if _, err := l.step(ctx, "warm-up", o.Rate, o.WarmUp); err != nil {
			return r, err
		}
	}
	measure := func(ctx context.Context, phase string, rate float64) (Step, error) {
		return l.observed(ctx, &o, phase, rate)
	}
	if o.Ladder {
		r.TargetP99 = float64(o.TargetP99.Microseconds()) / 1000
		r.Steps, r.Saturation, err = climb(ctx, &o, measure)
	} else {
		var s Step
		if s, err = measure(ctx, "load", o.Rate); err == nil {
			r.Steps = []Step{s}
			o.done(&s)
		}
	}
	r.judge()
	return r, err
}

func (o *Options) done(s *Step) {
	if o.Done != nil {
		o.Done(*s)
	}
}

// judge adds what a reader of the figures should know.
func (r *Result) judge() {
	note := func(wrong bool, text string) {
		if wrong && !slices.Contains(r.Notes, text) {
			r.Notes = append(r.Notes, text)
		}
	}
	for _, s := range r.Steps {
		note(s.All.Statuses["429"] > 0, "429: the token asks more often than the server's --rate-limit allows; serve with --rate-limit 0 to measure beyond it")
		note(s.All.NotSent > 0 && !r.ladder(), fmt.Sprintf("%d requests were not sent, since too many were under way: figures of such a step flatter", s.All.NotSent))
		note(s.Late.P99 > 5, "requests were sent more than 5 ms late (p99): the generator's machine is too busy, and its delay is in the figures")
	}
}

func (r *Result) ladder() bool { return r.TargetP99 > 0 }

// mostFailed is the share of failed requests beyond which a run has failed.
const mostFailed = 0.01

// Err says why the run is not a success, or nothing: a ladder has no rate that
// meets the target, or a load at one rate had too many failures.
func (r *Result) Err() error {
	if r.ladder() {
		if r.Saturation == 0 {
			return fmt.Errorf("no rate meets the target of p99 %g ms", r.TargetP99)
		}
		return nil
	}
	for _, s := range r.Steps {
		if s.All.Failed() > mostFailed {
			return fmt.Errorf("%.1f %% of the requests failed or were not sent; want at most %g %%", 100*s.All.Failed(), 100*mostFailed)
		}
	}
	return nil
}
