package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	rateFactor         = 1.5   // ratio of the rates of successive steps up
	searchPrecision    = 1.05  // the search ends when the lowest failing rate is within this factor of the best rate
	maxStepFailedShare = 0.001 // share of failed requests above which a step misses the target
	maxStepsUp         = 40    // 1.5 to the 40th power is about 10 million
)

// measureFunc measures one step.
type measureFunc func(ctx context.Context, phase string, rate float64) (Step, error)

// findHighestRate finds the highest rate that meets the target. It raises the rate until
// a step misses the target twice, because a single slow step must not end the search. It
// then bisects between the highest rate that met the target and the lowest rate that
// missed it.
func findHighestRate(ctx context.Context, o *Options, measure measureFunc) (steps []Step, best float64, err error) {
	meets := func(phase string, rate float64) (bool, error) {
		step, err := measure(ctx, phase, rate)
		if err != nil {
			return false, err
		}
		step.Miss = missReason(&step, o.TargetP99)
		step.Met = step.Miss == ""
		steps = append(steps, step)
		o.stepDone(&step)
		return step.Met, nil
	}
	missed := 0.0
	for rate, n := o.Rate, 0; missed == 0 && n < maxStepsUp; rate, n = rate*rateFactor, n+1 {
		met, err := meets("step up", rate)
		if err == nil && !met {
			met, err = meets("repeat", rate)
		}
		switch {
		case err != nil:
			return steps, best, err
		case met:
			best = rate
		default:
			missed = rate
		}
	}
	for best > 0 && missed > 0 && missed/best > searchPrecision {
		rate := (best + missed) / 2
		met, err := meets("bisect", rate)
		switch {
		case err != nil:
			return steps, best, err
		case met:
			best = rate
		default:
			missed = rate
		}
	}
	return steps, best, nil
}

// missReason returns the reason why a step misses the target, or "" if it meets
// the target.
func missReason(s *Step, target time.Duration) string {
	maxP99 := float64(target.Microseconds()) / 1000
	switch {
	case s.All.FailedShare() > maxStepFailedShare:
		return fmt.Sprintf("%.2f %% failed or not sent", 100*s.All.FailedShare())
	case s.All.Latency.P99 > maxP99:
		return fmt.Sprintf("p99 %.1f ms", s.All.Latency.P99)
	}
	return ""
}
