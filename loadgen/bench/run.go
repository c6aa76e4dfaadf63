// Package bench load-tests a running server. The load is open-loop: requests
// are sent at scheduled times, whether or not earlier requests have been
// answered, as independent users do.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"
)

// Options configure a load test.
type Options struct {
	URL, Token  string
	IngestToken string // needed if the mix has events
	AdminURL    string // of /metrics; empty: the server's metrics are not read
	Mix         Mix
	Campaigns   []int64 // campaigns to request reports of; empty: all. The smallest one receives the events
	Seed        uint64

	Rate        float64       // requests per second; with Ladder, of the first step
	Duration    time.Duration // of each step
	WarmUp      time.Duration // at Rate, before the first measured step
	Timeout     time.Duration // of a request
	MaxInFlight int           // requests in flight; further requests are not sent

	Ladder    bool          // search the highest rate that meets TargetP99
	TargetP99 time.Duration // of a ladder

	Progress func(Progress) // called every 5 seconds while a step runs; nil: never
	StepDone func(*Step)    // called after each measured step; nil: never
}

// Defaults has the default options.
var Defaults = Options{
	URL: "http://127.0.0.1:8080", Seed: 1, Rate: 100, Duration: 15 * time.Second, WarmUp: 3 * time.Second,
	Timeout: 30 * time.Second, MaxInFlight: 1000, TargetP99: 50 * time.Millisecond,
}

// Result is the result of a load test.
type Result struct {
	URL        string    `json:"url"`
	At         time.Time `json:"at"`
	Mix        string    `json:"mix"`
	Seed       uint64    `json:"seed"`
	Notes      []string  `json:"notes"`
	TargetP99  float64   `json:"targetP99,omitempty"`  // of a ladder, in milliseconds
	Saturation float64   `json:"saturation,omitempty"` // highest rate that met TargetP99; 0: none
	Steps      []Step    `json:"steps"`                // in the order of measurement
	Bars       []Bar     `json:"bars,omitempty"`       // of the preset bulk
}

// Validate returns an error that lists all invalid options, or nil.
func (o *Options) Validate() error {
	var errs []error
	for _, of := range []struct{ name, address string }{{"url", o.URL}, {"admin-url", o.AdminURL}} {
		u, err := url.Parse(of.address)
		absent := of.address == "" && of.name != "url"
		isURL := err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
		if !absent && !isURL {
			const text = "invalid %s %q: must be a URL such as http://127.0.0.1:8080"
			errs = append(errs, fmt.Errorf(text, of.name, of.address))
		}
	}
	if o.Token == "" {
		errs = append(errs, errors.New("missing token: must be a token with scope read"))
	}
	if o.Mix[Ingest] > 0 && o.IngestToken == "" {
		errs = append(errs, errors.New("missing ingest-token: the mix has events, which need a token with scope ingest"))
	}
	return errors.Join(errs...)
}

// Run runs a load test. If Run is interrupted, it returns the measured steps
// with the error.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{
		URL: o.URL, At: time.Now().UTC().Truncate(time.Second), Mix: o.Mix.String(), Seed: o.Seed, Notes: []string{},
	}
	c := newClient(&o)
	defer c.http.CloseIdleConnections()
	found, err := c.findTargets(ctx, &o)
	if err != nil {
		return r, err
	}
	l := &load{
		client: c, workload: newWorkload(&o, found), random: rand.New(rand.NewPCG(o.Seed, 0)),
		inFlight: make(chan struct{}, o.MaxInFlight), progress: o.Progress,
	}
	if o.isBulk() { // before the warm-up: its first request may be the first of the server
		r.Bars, err = c.measureBulk(ctx, &o, found)
		if err != nil {
			return r, err
		}
	}
	if o.WarmUp > 0 {
		if _, err := l.runStep(ctx, "warm-up", o.Rate, o.WarmUp); err != nil {
			return r, err
		}
	}
	measure := func(ctx context.Context, phase string, rate float64) (Step, error) {
		return l.stepWithMetrics(ctx, &o, phase, rate)
	}
	if o.Ladder {
		r.TargetP99 = float64(o.TargetP99.Microseconds()) / 1000
		r.Steps, r.Saturation, err = findHighestRate(ctx, &o, measure)
	} else {
		err = r.measureOnce(ctx, &o, l, found)
	}
	r.addNotes()
	return r, err
}

// measureOnce measures a load at one rate. With the preset bulk, it first measures single reports without the others.
func (r *Result) measureOnce(ctx context.Context, o *Options, l *load, found *targets) (err error) {
	var alone Step
	if o.isBulk() {
		singles := *o
		singles.Mix = Mix{Opened: 1}
		without := *l
		without.workload = newWorkload(&singles, found)
		alone, err = without.stepWithMetrics(ctx, o, "single reports", o.Rate)
		if err != nil {
			return err
		}
		r.Steps = append(r.Steps, alone)
		o.stepDone(&alone)
	}
	s, err := l.stepWithMetrics(ctx, o, "load", o.Rate)
	if err != nil {
		return err
	}
	r.Steps = append(r.Steps, s)
	o.stepDone(&s)
	r.Bars = append(r.Bars, slowdown(&alone, &s)...)
	return nil
}

func (o *Options) stepDone(s *Step) {
	if o.StepDone != nil {
		o.StepDone(s)
	}
}

// maxSendDelay is the p99 send delay, in milliseconds, above which a result has
// a note.
const maxSendDelay = 5

// addNotes adds notes about conditions that limit the meaning of the figures.
func (r *Result) addNotes() {
	note := func(applies bool, text string) {
		if applies && !slices.Contains(r.Notes, text) {
			r.Notes = append(r.Notes, text)
		}
	}
	for _, s := range r.Steps {
		note(s.All.Statuses["429"] > 0, "status 429: the request rate exceeds the server's --rate-limit per token; start the server with --rate-limit 0 to measure higher rates")
		note(s.All.NotSent > 0 && !r.isLadder(), fmt.Sprintf("%d requests were not sent because too many were in flight; the latencies do not include them", s.All.NotSent))
		note(s.SendDelay.P99 > maxSendDelay, fmt.Sprintf("the p99 send delay exceeds %d ms: the machine of the load generator is too busy, and the latencies include the delay", maxSendDelay))
	}
}

func (r *Result) isLadder() bool { return r.TargetP99 > 0 }

// maxFailedShare is the share of failed requests above which a test at one rate
// fails.
const maxFailedShare = 0.01

// Err returns an error if no rate of a ladder met the target, if too many requests of a test at one rate failed, or if
// bars are missed.
func (r *Result) Err() error {
	if r.isLadder() {
		if r.Saturation == 0 {
			return fmt.Errorf("no rate met the target p99 of %g ms", r.TargetP99)
		}
		return nil
	}
	for _, s := range r.Steps {
		if s.All.FailedShare() > maxFailedShare {
			return fmt.Errorf("%.1f %% of the requests failed or were not sent; at most %g %% are allowed", 100*s.All.FailedShare(), 100*maxFailedShare)
		}
	}
	return r.missedBars()
}
