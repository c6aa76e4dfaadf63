package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	growth     = 1.5   // of the rate from step to step
	fine       = 1.05  // ratio of a rate that misses to one that meets the target at which the search ends
	mostUnwell = 0.001 // share of failures that a step may have
	mostLadder = 40    // steps up: enough for a millionfold rate
)

type measuring func(ctx context.Context, phase string, rate float64) (Step, error)

// climb finds the highest rate that meets the target: up in steps until one
// misses it twice (a single hiccup shall not end the search), then by halves
// between the last that met it and the first that did not.
func climb(ctx context.Context, o *Options, measure measuring) (steps []Step, best float64, err error) {
	meets := func(phase string, rate float64) (bool, error) {
		step, err := measure(ctx, phase, rate)
		if err != nil {
			return false, err
		}
		step.Why = missed(&step, o.TargetP99)
		step.Met = step.Why == ""
		steps = append(steps, step)
		o.done(&step)
		return step.Met, nil
	}
	missing := 0.0
	for rate, n := o.Rate, 0; missing == 0 && n < mostLadder; rate, n = rate*growth, n+1 {
		met, err := meets("up", rate)
		if err == nil && !met {
			met, err = meets("once more", rate)
		}
		switch {
		case err != nil:
			return steps, best, err
		case met:
			best = rate
		default:
			missing = rate
		}
	}
	for best > 0 && missing > 0 && missing/best > fine {
		rate := (best + missing) / 2
		met, err := meets("between", rate)
		switch {
		case err != nil:
			return steps, best, err
		case met:
			best = rate
		default:
			missing = rate
		}
	}
	return steps, best, nil
}

// missed says why a step misses the target; empty: it does not.
func missed(s *Step, target time.Duration) string {
	most := float64(target.Microseconds()) / 1000
	switch {
	case s.All.Failed() > mostUnwell:
		return fmt.Sprintf("%.2f %% failed or not sent", 100*s.All.Failed())
	case s.All.Latency.P99 > most:
		return fmt.Sprintf("p99 %.1f ms", s.All.Latency.P99)
	}
	return ""
}
