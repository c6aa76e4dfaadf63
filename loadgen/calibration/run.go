// Package calibration runs many experiments whose truth is known through the
// whole system, events in and results out over HTTP, and counts how often the
// answers are wrong: as often as they say, or not.
package calibration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"
)

// Options are how many experiments there are, and of what size.
type Options struct {
	Null     int // experiments without an effect
	Effect   int // experiments with one
	Visitors int // of an experiment of two even groups
	Seed     uint64
	Parallel int // requests at once

	Progress func(phase string, done, of int) // nil, or told of what is done

	rules []rule
}

// Defaults of the options.
var Defaults = Options{Null: 2000, Effect: 1000, Visitors: 1000, Seed: 1, Parallel: 4, rules: allRules}

// Fault says what is wrong with the options, all of it, or nothing.
func (o *Options) Fault() error {
	var faults []error
	fault := func(name string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, fmt.Errorf("%s %d: want %d to %d", name, value, least, most))
		}
	}
	fault("experiments-aa", o.Null, 0, 100_000)
	fault("experiments-ab", o.Effect, 0, 100_000)
	fault("experiments-aa and experiments-ab together", o.Null+o.Effect, len(shapes), 200_000)
	fault("visitors", o.Visitors, 100, 15_000)
	fault("parallel", o.Parallel, 1, 64)
	return errors.Join(faults...)
}

// Result is what was counted, and judged.
type Result struct {
	Null     int     `json:"experimentsAA"`
	Effect   int     `json:"experimentsAB"`
	Visitors int     `json:"visitors"`
	Seed     uint64  `json:"seed"`
	Reports  int     `json:"reports"`
	Seconds  float64 `json:"seconds"`
	Judged   int     `json:"judged"` // cells that a verdict is passed on
	Outside  int     `json:"outside"`
	Cells    []Cell  `json:"cells"`
}

// Err says that cells lie outside their bands, or nothing.
func (r *Result) Err() error {
	if r.Outside > 0 {
		return fmt.Errorf("%d of %d judged cells lie outside their bands", r.Outside, r.Judged)
	}
	return nil
}

// neverSignificant is how many experiments are read at level 100: enough to
// see whether any is significant.
const neverSignificant = 100

// Run sends the events of all experiments, has the system report each by every
// rule, and judges what it said.
func Run(ctx context.Context, s *System, o *Options) (*Result, error) {
	started := time.Now()
	all := experimentsOf(o)
	if err := s.Apply(ctx, catalogueOf(all, o, o.rules[0])); err != nil {
		return nil, err
	}
	var err error
	if s.tokens, err = s.Tokens(ctx); err != nil {
		return nil, err
	}
	p := &progress{tell: o.Progress}
	p.start("events", len(all))
	if err := s.send(ctx, all, o, p); err != nil {
		return nil, err
	}
	tallies, reports := map[cellKey]*tally{}, 0
	for _, r := range o.rules {
		if err := s.Apply(ctx, catalogueOf(all, o, r)); err != nil {
			return nil, err
		}
		read := all
		if r.level == 100 {
			read = all[:min(len(all), neverSignificant)]
		}
		p.start(fmt.Sprintf("%s %d", r.methodology, r.level), len(read)*len(metrics))
		if err := s.readAll(ctx, read, r, o.Parallel, tallies, p); err != nil {
			return nil, err
		}
		reports += len(read) * len(metrics)
	}
	result := &Result{Null: o.Null, Effect: o.Effect, Visitors: o.Visitors, Seed: o.Seed, Reports: reports, Cells: cellsOf(tallies, o)}
	judge(result)
	result.Seconds = time.Since(started).Seconds()
	return result, nil
}

// readAll reads the experiments' reports by one rule, and counts them.
func (s *System) readAll(ctx context.Context, all []experiment, r rule, parallel int, tallies map[cellKey]*tally, p *progress) error {
	readers, ctx := errgroup.WithContext(ctx)
	var counting sync.Mutex
	next := make(chan *experiment)
	readers.Go(func() error {
		defer close(next)
		for i := range all {
			select {
			case next <- &all[i]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range parallel {
		readers.Go(func() error {
			var parser fastjson.Parser
			for e := range next {
				for _, metric := range metrics {
					report, err := s.report(ctx, &parser, e, metric, r.looksAt(e))
					if err != nil {
						return err
					}
					counting.Lock()
					key := cellKey{r, metric, e.shape.name}
					if tallies[key] == nil {
						tallies[key] = &tally{}
					}
					tallies[key].count(e, metric, report)
					counting.Unlock()
					p.add(1)
				}
			}
			return nil
		})
	}
	return readers.Wait()
}

// progress tells how far a run is.
type progress struct {
	sync.Mutex
	tell     func(phase string, done, of int)
	phase    string
	done, of int
}

func (p *progress) start(phase string, of int) {
	p.Lock()
	defer p.Unlock()
	p.phase, p.done, p.of = phase, 0, of
}

func (p *progress) add(more int) {
	p.Lock()
	defer p.Unlock()
	p.done += more
	if p.tell != nil {
		p.tell(p.phase, p.done, p.of)
	}
}
