package effects

import (
	"fmt"

	"lifthouse/engine/wording"
)

// LiftInWords says what lift is expected.
func (e *Estimate) LiftInWords() string {
	inPercent := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	return fmt.Sprintf("Expected a lift of %s.", e.InWords(inPercent))
}

// AppendNothing appends how many shipped variations are probably worth nothing, if any.
func AppendNothing(said []string, variations float64) []string {
	switch {
	case variations < .5:
		return said
	case variations < 1.5:
		return append(said, "About 1 of them is worth nothing.")
	}
	return append(said, fmt.Sprintf("About %.0f of them are worth nothing.", variations))
}

// InWords writes an estimate with its interval.
func (e *Estimate) InWords(write func(float64) string) string {
	return fmt.Sprintf("%s (%.0f %% interval %s to %s)", write(e.Value), 100*Level, write(e.Interval[0]),
		write(e.Interval[1]))
}

// InWords says how large effects typically are here. of is the word for what the pool is made of.
func (pool *PoolSummary) InWords(metric, of string) string {
	in := func(x float64) string { return "±" + wording.FormatPercent(x, 1, false) }
	if pool.Campaigns == 0 {
		return fmt.Sprintf("No %s is known yet: an experiment is assumed to change %s by %s.", of, metric,
			in(pool.TypicalEffect.Value))
	}
	text := fmt.Sprintf("An experiment here typically changes %s by %s (from %s", metric,
		in(pool.TypicalEffect.Value), wording.CountNoun(pool.Campaigns, of))
	if pool.Campaigns < leastPool {
		text += fmt.Sprintf("; %s is assumed without any", in(pool.Anchor))
	}
	return text + ")."
}

// leastPool is the number of campaigns from which their effects say more than the assumption before them.
const leastPool = 5
