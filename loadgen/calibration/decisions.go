package calibration

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// DecisionOptions configure a simulation of decisions.
type DecisionOptions struct {
	Experiments int // of each scenario
	Seed        uint64
	Workers     int            // concurrent simulations
	Only        *regexp.Regexp // selects the scenarios by their ids; nil: all

	Progress func(phase string, done, total int) // called repeatedly; nil: never
}

// DecisionDefaults has the default options, except Workers.
var DecisionDefaults = DecisionOptions{Experiments: 4000, Seed: 1}

// Validate returns an error that lists all invalid options, or nil.
func (o *DecisionOptions) Validate() error {
	var errs []error
	check := func(name string, value, least, most int) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("invalid %s %d: must be from %d to %d", name, value, least, most))
		}
	}
	check("experiments", o.Experiments, 1, 1_000_000)
	check("workers", o.Workers, 1, 1024)
	if len(o.selected(decisionScenarios())) == 0 {
		errs = append(errs, fmt.Errorf("invalid only %q: must match a scenario", o.Only))
	}
	return errors.Join(errs...)
}

func (o *DecisionOptions) selected(all []scenario) []scenario {
	if o.Only == nil {
		return all
	}
	var selected []scenario
	for _, s := range all {
		if o.Only.MatchString(s.id()) {
			selected = append(selected, s)
		}
	}
	return selected
}

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

// DecisionRow is an observed rate with its limits. The band is the range from Least
// to Most, widened by two standard errors.
type DecisionRow struct {
	Part        string  `json:"part"`
	Scenario    string  `json:"scenario"`
	Methodology string  `json:"methodology"`
	Plan        string  `json:"plan"`            // source of the planned sample; "" if there is none
	Planned     int64   `json:"plannedVisitors"` // for a plan from the data, the value for the true rate
	Measure     string  `json:"measure"`
	Experiments int     `json:"experiments"` // that the measure counts
	Count       int     `json:"count"`
	Rate        float64 `json:"rate"` // Count / Experiments
	Least       float64 `json:"least"`
	Most        float64 `json:"most"`
	Lower       float64 `json:"lower"`   // of the band
	Upper       float64 `json:"upper"`   // of the band
	Outside     bool    `json:"outside"` // Rate is outside the band
}

// scenario is a simulated experiment, which is repeated many times. The parts of the
// table are kinds of scenarios.
type scenario struct {
	part, name, methodology string
	plan                    string
	planned                 int64
	measures                []decisionMeasure
	// simulate runs one experiment and returns an observation for each measure.
	simulate func(random *rand.Rand) []observation
}

// id identifies a scenario: its part, name, methodology, planned sample and first
// measure.
func (s *scenario) id() string {
	return fmt.Sprintf("%s: %s, %s, plan %s %d, %s", s.part, s.name, s.methodology, s.plan, s.planned, s.measures[0].name)
}

// decisionMeasure is a rate that a scenario measures, and its limits.
type decisionMeasure struct {
	name        string
	least, most float64 // limits of the rate; see stated
	stated      bool    // the limits are relative to the mean of the stated chances
}

// observation is the result of one experiment for one measure.
type observation struct {
	counted  bool    // the measure counts this experiment
	occurred bool    // the event that the measure counts occurred
	stated   float64 // chance of the event that the report states
}

// RunDecisions simulates the sufficient statistics of experiments, decides each
// experiment as a campaign is decided, and compares the rates of errors and of
// decisions with their limits. Equal seeds give equal rows for each scenario,
// whatever the number of workers and the other scenarios.
func RunDecisions(ctx context.Context, o *DecisionOptions) (*Decisions, error) {
	return runScenarios(ctx, o.selected(decisionScenarios()), o)
}

func runScenarios(ctx context.Context, scenarios []scenario, o *DecisionOptions) (*Decisions, error) {
	started := time.Now()
	observed, err := observe(ctx, scenarios, o)
	if err != nil {
		return nil, err
	}
	d := &Decisions{Experiments: o.Experiments, Seed: o.Seed}
	for i := range scenarios {
		for m := range scenarios[i].measures {
			row := scenarios[i].row(m, observed[i])
			countIf(&d.Outside, row.Outside)
			d.Rows = append(d.Rows, row)
		}
	}
	d.Seconds = time.Since(started).Seconds()
	return d, nil
}

// simulationBatch is the number of experiments that a worker simulates at a time.
const simulationBatch = 25

// observe returns the observations by scenario, experiment and measure.
func observe(ctx context.Context, scenarios []scenario, o *DecisionOptions) ([][][]observation, error) {
	observed := make([][][]observation, len(scenarios))
	for i := range observed {
		observed[i] = make([][]observation, o.Experiments)
	}
	p := &progress{report: o.Progress}
	p.start("simulated experiments", len(scenarios)*o.Experiments)
	batches := (o.Experiments + simulationBatch - 1) / simulationBatch
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range o.Workers {
		workers.Go(func() error {
			for {
				batch := int(next.Add(1)) - 1
				if batch >= len(scenarios)*batches {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				s, into := &scenarios[batch/batches], observed[batch/batches]
				from := batch % batches * simulationBatch
				to := min(from+simulationBatch, o.Experiments)
				for i := from; i < to; i++ {
					into[i] = s.simulate(s.random(o.Seed, i))
				}
				p.add(to - from)
			}
		})
	}
	return observed, workers.Wait()
}

// random returns the source of the random numbers of an experiment. It depends only
// on the seed, the scenario and the experiment.
func (s *scenario) random(seed uint64, experiment int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.id()))
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(experiment)))
}

// row returns the row of a measure. The stated chances are added in the order of the
// experiments, because a sum of floats depends on the order.
func (s *scenario) row(measure int, observed [][]observation) DecisionRow {
	m := s.measures[measure]
	row := DecisionRow{
		Part: s.part, Scenario: s.name, Methodology: s.methodology, Plan: s.plan, Planned: s.planned,
		Measure: m.name, Least: m.least, Most: m.most,
	}
	stated := 0.0
	for _, experiment := range observed {
		if at := experiment[measure]; at.counted {
			row.Experiments++
			countIf(&row.Count, at.occurred)
			stated += at.stated
		}
	}
	n := float64(row.Experiments)
	if m.stated && n > 0 {
		row.Least, row.Most = row.Least+stated/n, row.Most+stated/n
	}
	row.test()
	return row
}

// test sets the rate and its band. A row without experiments shows nothing and is
// outside its band.
func (r *DecisionRow) test() {
	if r.Experiments == 0 {
		r.Outside = true
		return
	}
	n := float64(r.Experiments)
	r.Rate = float64(r.Count) / n
	error2 := func(rate float64) float64 {
		rate = min(max(rate, 0), 1)
		return 2 * math.Sqrt(rate*(1-rate)/n)
	}
	r.Lower, r.Upper = max(0, r.Least-error2(r.Least)), min(1, r.Most+error2(r.Most))
	r.Outside = r.Rate < r.Lower || r.Rate > r.Upper
}
