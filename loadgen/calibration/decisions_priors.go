package calibration

import (
	"fmt"
	"math/rand/v2"

	"lifthouse/engine/effects"
	"lifthouse/engine/worth"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// pastIdeas are the true effects of the campaigns that ended before a campaign, in minimum effects.
type pastIdeas struct {
	campaigns int
	mean, sd  float64
}

// seedOfPools is the seed of the campaigns from which priors are learned. All campaigns of a scenario have one prior.
const seedOfPools = 76

// withLearnedPrior returns the Bayesian campaign with the prior that it learns from simulated campaigns, each as large as
// its plan.
func (c *campaign) withLearnedPrior(from pastIdeas) *campaign {
	random := rand.New(rand.NewPCG(seedOfPools, uint64(from.campaigns))) //nolint:gosec // a simulation
	critical := criticalValues()
	var past []effects.PastTest
	for range from.campaigns {
		ended := runCampaign(random, from.mean+from.sd*random.NormFloat64(), false, critical)
		ended.effect.Value *= c.mde
		ended.effect.StandardError *= c.mde
		past = append(past, effects.PastTest{Effects: []stats.PooledEffect{ended.effect}})
	}
	prior := worth.PriorOf(effects.NewPast(c.mde, past).Pool)
	return c.asBayesian().changedCopy(func(changed *campaign) { changed.learned = &prior })
}

// describeLearned describes a learned prior.
func describeLearned(prior *catalogue.Prior) string {
	return fmt.Sprintf("prior of %d campaigns: %.1f ± %.1f %%", *prior.Campaigns, prior.Mean, prior.StandardDeviation)
}

// learnedPriors are learned from nothing, from harmful ideas, and from ideas that change little.
func learnedPriors() []pastIdeas {
	return []pastIdeas{{0, 0, 0}, {15, -0.3, 0.25}, {60, 0, 0.05}}
}

// priorScenarios are of campaigns whose prior is learned: errors, or else the power.
func priorScenarios(errors bool) (all []scenario) {
	even := usual.withShares(50, 50)
	four := usual.withShares(25, 25, 25, 25)
	for _, from := range learnedPriors() {
		c := even.withLearnedPrior(from)
		if errors {
			all = append(all, c.withFewerLooks().errorScenario(partNoEffect, "", ordinaryVisitors))
		} else {
			all = append(all, c.powerScenario("", decisionPower))
		}
	}
	if errors {
		harmful := learnedPriors()[1]
		all = append(all, four.withLearnedPrior(harmful).withFewerLooks().errorScenario(partNoEffect, "", ordinaryVisitors))
	}
	return all
}
