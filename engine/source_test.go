package engine

import (
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"math/big"
	"strings"
	"testing"
	"time"
)

// TestChoose checks the chosen source and its reason.
func TestChoose(t *testing.T) {
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	const many = MaxInProcessEvents + 1
	rollup := &rollupState{generation: 1, through: day.Add(time.Hour), newest: day}
	variations := []plan.Variation{{ID: 0}, {ID: 1}}
	p := func(change func(*plan.Plan)) *plan.Plan {
		p := &plan.Plan{Request: query.Request{Metric: query.ValuePerVisitor}, Variations: variations, Top: plan.MaxBreakdown}
		change(p)
		return p
	}
	same := func(*plan.Plan) {}
	for name, test := range map[string]struct {
		plan         *plan.Plan
		state        state
		want, reason string
	}{
		"few events":               {p(same), state{events: MaxInProcessEvents, rollup: rollup}, SourceInProcess, "at most 100000"},
		"a rollup":                 {p(same), state{events: many, rollup: rollup}, SourceRollup, "all by first day"},
		"a rollup by device":       {p(func(p *plan.Plan) { p.Dimension = query.ByDevice }), state{events: many, rollup: rollup}, SourceRollup, "device by first day"},
		"no rollup":                {p(same), state{events: many}, SourceSinglePass, "no current rollup"},
		"goal values":              {p(func(p *plan.Plan) { p.Filters.GoalValue = big.NewRat(1, 1) }), state{events: many, rollup: rollup}, SourceSinglePass, "goal events"},
		"a z-score":                {p(func(p *plan.Plan) { p.Filters.ZScore = 2 }), state{events: many, rollup: rollup}, SourceSinglePass, "goal events"},
		"part of a day":            {p(func(p *plan.Plan) { p.Filters.From = day.Add(time.Minute) }), state{events: many, rollup: rollup}, SourceSinglePass, "whole days"},
		"hours":                    {p(func(p *plan.Plan) { p.Interval = query.Hourly }), state{events: many, rollup: rollup}, SourceSinglePass, "hours"},
		"all events, and a rollup": {p(same).WithAllEvents(), state{events: many, rollup: rollup, through: rollup.through}, SourceRollup, ""},
		"all events, and an older rollup": {
			p(same).WithAllEvents(), state{events: many, rollup: rollup, through: rollup.through.Add(1)}, SourceSinglePass, "does not have all events",
		},
		"no cube": {
			p(func(p *plan.Plan) { p.Filters.Texts = []query.TextFilter{{Attribute: "utmTerm", Pattern: "x"}} }), state{events: many, rollup: rollup}, SourceSinglePass, "no cube",
		},
		"a rollup that declined": {
			p(same), state{events: many, rollup: rollup}.without(SourceRollup, "the generation was replaced"), SourceSinglePass, "the generation was replaced",
		},
		"a single pass that declined": {
			p(same), state{events: many}.without(SourceSinglePass, "too many visitors"), SourceReference, "no current rollup; too many visitors",
		},
		"both declined": {
			p(same), state{events: many, rollup: rollup}.without(SourceRollup, "a").without(SourceSinglePass, "b"), SourceReference, "a; b",
		},
		"no variations":                  {p(func(p *plan.Plan) { p.Variations = nil }), state{events: many}, SourceReference, "1 to 62 variations"},
		"too many variations":            {p(func(p *plan.Plan) { p.Variations = make([]plan.Variation, maxRanks+1) }), state{events: many}, SourceReference, "1 to 62 variations"},
		"a dimension on several shards":  {p(func(p *plan.Plan) { p.Dimension = query.ByDevice }), state{events: many, sharded: true}, SourceReference, "shard"},
		"no dimension on several shards": {p(same), state{events: many, sharded: true}, SourceSinglePass, "no current rollup"},
	} {
		chosen, reason := choose(&execution{Plan: test.plan, store: &store{}}, &test.state, Limits{})
		if chosen.name() != test.want || !strings.Contains(reason, test.reason) {
			t.Errorf("%s: %s, because %q; want %s, because … %s", name, chosen.name(), reason, test.want, test.reason)
		}
	}
}
