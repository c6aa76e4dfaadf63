// Package calibration measures the error rates of the whole system. It sends
// the events of many synthetic experiments with known effects to a server and
// reads their results over HTTP. It compares error rates and interval coverage
// with their nominal levels.
package calibration

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"
)

// Options configure a calibration.
type Options struct {
	Null     int // experiments without an effect (A/A)
	Effect   int // experiments with an effect (A/B)
	Visitors int // visitors of an experiment with two equal groups
	Seed     uint64

	Progress func(phase string, done, total int) // called repeatedly; nil: never

	rules []rule
}

// Defaults has the default options.
var Defaults = Options{Null: 2000, Effect: 1000, Visitors: 1000, Seed: 1, rules: allRules}

// MinExperiments is the least number of experiments: one of each shape.
var MinExperiments = len(shapes)

// concurrentRequests is the number of concurrent requests.
const concurrentRequests = 4

// Result is the result of a calibration.
type Result struct {
	Null     int     `json:"experimentsAA"`
	Effect   int     `json:"experimentsAB"`
	Visitors int     `json:"visitors"`
	Seed     uint64  `json:"seed"`
	Reports  int     `json:"reports"`
	Seconds  float64 `json:"seconds"`
	Tested   int     `json:"tested"`  // cells with an acceptance band
	Outside  int     `json:"outside"` // tested cells outside their bands
	Cells    []Cell  `json:"cells"`
}

// Err returns an error if cells are outside their acceptance bands.
func (r *Result) Err() error {
	if r.Outside > 0 {
		return fmt.Errorf("%d of %d tested cells are outside their acceptance bands", r.Outside, r.Tested)
	}
	return nil
}

// level100Experiments is the number of experiments whose reports are read at
// level 100. Few are enough, because no report may be significant.
const level100Experiments = 100

// Run sends the events of all experiments to the system, reads the report of
// each experiment under each rule, and tests the observed rates.
func Run(ctx context.Context, s *System, o *Options) (*Result, error) {
	started := time.Now()
	all := experimentsOf(o)
	if err := s.Apply(ctx, catalogueOf(all, o, o.rules[0])); err != nil {
		return nil, err
	}
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	s.tokens = tokens
	p := &progress{report: o.Progress}
	p.startPhase("events", len(all))
	if err := s.sendEvents(ctx, all, o, p); err != nil {
		return nil, err
	}
	if err := s.Fold(ctx); err != nil {
		return nil, err
	}
	reports := 0
	reading := reader{System: s, options: o, progress: p, tallies: map[tallyKey]*tally{}}
	for _, r := range o.rules {
		if err := s.Apply(ctx, catalogueOf(all, o, r)); err != nil {
			return nil, err
		}
		subset := all
		if r.level == 100 {
			subset = all[:min(len(all), level100Experiments)]
		}
		p.startPhase(fmt.Sprintf("%s %d", r.methodology, r.level), len(subset)*len(metrics))
		if err := reading.readReports(ctx, subset, r); err != nil {
			return nil, err
		}
		reports += len(subset) * len(metrics)
	}
	result := &Result{Null: o.Null, Effect: o.Effect, Visitors: o.Visitors, Seed: o.Seed, Reports: reports, Cells: cellsOf(reading.tallies, o)}
	testCells(result)
	result.Seconds = time.Since(started).Seconds()
	return result, nil
}

// reader reads reports and adds them to the tallies.
type reader struct {
	*System
	options  *Options
	progress *progress
	mu       sync.Mutex // protects tallies
	tallies  map[tallyKey]*tally
}

// readReports reads the reports of the experiments under one rule.
func (s *reader) readReports(ctx context.Context, all []experiment, r rule) error {
	readers, ctx := errgroup.WithContext(ctx)
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
	for range concurrentRequests {
		readers.Go(func() error {
			var parser fastjson.Parser
			for e := range next {
				if err := s.readExperiment(ctx, &parser, e, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return readers.Wait()
}

// readExperiment reads the report of each metric of an experiment under a rule.
func (s *reader) readExperiment(ctx context.Context, parser *fastjson.Parser, e *experiment, r rule) error {
	for _, metric := range metrics {
		report, err := s.readReport(ctx, parser, e, metric, r.readsDays(e))
		if err != nil {
			return err
		}
		if sent := e.visitorCount(s.options); report.visitors != sent {
			return fmt.Errorf("the results of campaign %d have %d visitors, want %d", e.id, report.visitors, sent)
		}
		s.mu.Lock()
		key := tallyKey{r, metric, e.shape.name}
		if s.tallies[key] == nil {
			s.tallies[key] = &tally{}
		}
		s.tallies[key].addResults(e, metric, report)
		s.mu.Unlock()
		s.progress.addDone(1)
	}
	return nil
}

// progress counts the completed work of a phase. It is safe for concurrent use.
type progress struct {
	sync.Mutex
	report      func(phase string, done, total int)
	phase       string
	done, total int
}

func (p *progress) startPhase(phase string, total int) {
	p.Lock()
	defer p.Unlock()
	p.phase = phase
	p.done = 0
	p.total = total
}

func (p *progress) addDone(n int) {
	p.Lock()
	defer p.Unlock()
	p.done += n
	if p.report != nil {
		p.report(p.phase, p.done, p.total)
	}
}
