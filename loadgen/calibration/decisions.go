package calibration

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// DecisionOptions configure a simulation of decisions.
type DecisionOptions struct {
	Experiments int // of each scenario; some have fewer, or 2.5 times as many
	Seed        uint64
	Workers     int            // concurrent simulations
	Only        *regexp.Regexp // selects the scenarios by their ids; nil: all

	Progress func(phase string, done, total int) // called repeatedly; nil: never
}

// DecisionDefaults has the default options, except Workers.
var DecisionDefaults = DecisionOptions{Experiments: 4000, Seed: 1}

// Decisions is the result of a simulation of decisions.
type Decisions struct {
	Experiments int           `json:"experiments"` // of each scenario
	Seed        uint64        `json:"seed"`
	Seconds     float64       `json:"seconds"`
	Outside     int           `json:"outside"` // rows outside their bands
	Rows        []DecisionRow `json:"rows"`
}

// Err returns an error if rows are outside their bands.
func (d *Decisions) Err() error {
	if d.Outside > 0 {
		return fmt.Errorf("%d of %d rates of decisions are outside their bands", d.Outside, len(d.Rows))
	}
	return nil
}

// DecisionRow is an observed rate with its limits. The band extends from Least to
// Most, widened by two standard errors.
type DecisionRow struct {
	Part        string  `json:"part"`
	Scenario    string  `json:"scenario"`
	Methodology string  `json:"methodology"`
	Planned     int64   `json:"plannedVisitors"` // up to tau = 1; 0 if there is no plan
	Measure     string  `json:"measure"`
	Experiments int     `json:"experiments"`
	Count       int     `json:"count"`
	Rate        float64 `json:"rate"` // Count / Experiments
	Error       float64 `json:"standardError"`
	Least       float64 `json:"least"`
	Most        float64 `json:"most"`
	Lower       float64 `json:"lower"`   // of the band
	Upper       float64 `json:"upper"`   // of the band
	Outside     bool    `json:"outside"` // Rate is outside the band
}

// PlanText formats the planned sample.
func (r DecisionRow) PlanText() string {
	if r.Planned == 0 {
		return "–"
	}
	return fmt.Sprint(r.Planned)
}

// LimitText formats the limits of the rate.
func (r DecisionRow) LimitText() string {
	number := func(rate float64) string { return strings.TrimRight(fmt.Sprintf("%.4f", rate), "0") }
	switch {
	case r.Least <= 0:
		return "≤ " + number(r.Most)
	case r.Most >= 1:
		return "≥ " + number(r.Least)
	}
	return number(r.Least) + "–" + number(r.Most)
}

// BandText formats the band of the rate.
func (r DecisionRow) BandText() string { return fmt.Sprintf("%.4f–%.4f", r.Lower, r.Upper) }

// Verdict returns "ok" or "OUTSIDE".
func (r DecisionRow) Verdict() string {
	if r.Outside {
		return "OUTSIDE"
	}
	return "ok"
}

// scenario is a simulated experiment that is repeated many times. Each part of the
// table contains one kind of scenario.
type scenario struct {
	part, name, methodology string
	planned                 int64
	measure                 string
	least, most             float64 // limits of the rate
	factor                  float64 // of the number of experiments; 0: 1
	// occurs runs one experiment and reports whether the measured event occurs.
	occurs func(random *rand.Rand) bool
}

// experimentCount returns the number of experiments.
func (s *scenario) experimentCount(o *DecisionOptions) int {
	if s.factor == 0 {
		return o.Experiments
	}
	return int(s.factor * float64(o.Experiments))
}

func (s *scenario) id() string {
	return fmt.Sprintf("%s: %s, %s, plan %d, %s", s.part, s.name, s.methodology, s.planned, s.measure)
}

// RunDecisions simulates the daily sums of campaigns on a simulated clock. It decides each campaign
// with the engine's schedule, looks, ledger and report, and compares the rates of errors and
// decisions with their limits. Equal seeds give equal rows for each scenario, whatever the number of
// workers and the other scenarios.
func RunDecisions(ctx context.Context, o *DecisionOptions) (*Decisions, error) {
	selected := decisionScenarios()
	if o.Only != nil {
		selected = slices.DeleteFunc(selected, func(s scenario) bool { return !o.Only.MatchString(s.id()) })
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("no scenario matches %q", o.Only)
	}
	return runScenarios(ctx, selected, o)
}

func runScenarios(ctx context.Context, scenarios []scenario, o *DecisionOptions) (*Decisions, error) {
	started := time.Now()
	counts, err := countOccurrences(ctx, scenarios, o)
	if err != nil {
		return nil, err
	}
	d := &Decisions{Experiments: o.Experiments, Seed: o.Seed}
	for i := range scenarios {
		s := &scenarios[i]
		row := DecisionRow{
			Part: s.part, Scenario: s.name, Methodology: s.methodology, Planned: s.planned, Measure: s.measure,
			Experiments: s.experimentCount(o), Count: int(counts[i].Load()), Least: s.least, Most: s.most,
		}
		row.setRateAndBand()
		countIf(&d.Outside, row.Outside)
		d.Rows = append(d.Rows, row)
	}
	d.Seconds = time.Since(started).Seconds()
	return d, nil
}

// simulationBatch is the number of experiments that a worker simulates at a time.
const simulationBatch = 25

// countOccurrences returns, for each scenario, the number of experiments in which the measured
// event occurs.
func countOccurrences(ctx context.Context, scenarios []scenario, o *DecisionOptions) ([]atomic.Int64, error) {
	type batch struct{ scenario, from, to int }
	var batches []batch
	all := 0
	for i := range scenarios {
		n := scenarios[i].experimentCount(o)
		for from := 0; from < n; from += simulationBatch {
			batches = append(batches, batch{i, from, min(from+simulationBatch, n)})
		}
		all += n
	}
	counts := make([]atomic.Int64, len(scenarios))
	p := &progress{report: o.Progress}
	p.startPhase("simulated experiments", all)
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range o.Workers {
		workers.Go(func() error {
			for at := int(next.Add(1)) - 1; at < len(batches) && ctx.Err() == nil; at = int(next.Add(1)) - 1 {
				b := batches[at]
				s := &scenarios[b.scenario]
				for i := b.from; i < b.to; i++ {
					if s.occurs(s.newRandom(o.Seed, i)) {
						counts[b.scenario].Add(1)
					}
				}
				p.addDone(b.to - b.from)
			}
			return ctx.Err()
		})
	}
	return counts, workers.Wait()
}

// newRandom returns the source of the random numbers of an experiment. It depends only
// on the seed, the scenario and the experiment.
func (s *scenario) newRandom(seed uint64, experiment int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.id()))
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(experiment)))
}

// setRateAndBand sets the rate and its band.
func (r *DecisionRow) setRateAndBand() {
	n := float64(r.Experiments)
	r.Rate = float64(r.Count) / n
	deviation := func(rate float64) float64 { return math.Sqrt(rate * (1 - rate) / n) }
	r.Error = deviation(r.Rate)
	r.Lower = max(0, r.Least-2*deviation(r.Least))
	r.Upper = min(1, r.Most+2*deviation(r.Most))
	r.Outside = r.Rate < r.Lower || r.Rate > r.Upper
}
