package engine

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/engine/visitors"
)

// TestChoose checks the chosen source and its reason.
func TestChoose(t *testing.T) {
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	const many = source.MaxInProcessEvents + 1
	cubes := rollup.State{Generation: generation.ID{Number: 1}, Through: day.Add(time.Hour), Newest: day}
	rows := cubes
	rows.Visitors = visitors.Generation{ID: generation.ID{Number: 1}}
	current, withVisitors, older := rollup.NewCurrent(rollup.Shard{State: cubes}), rollup.NewCurrent(rollup.Shard{State: rows}), rollup.NewCurrent(rollup.Shard{State: cubes})
	older.Lacks = true
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
		"few events":               {p(same), state{events: source.MaxInProcessEvents, rollup: current}, source.NameInProcess, "at most 100000"},
		"a rollup":                 {p(same), state{events: many, rollup: current}, source.NameRollup, "all by first day"},
		"a rollup by device":       {p(func(p *plan.Plan) { p.Dimension = query.ByDevice }), state{events: many, rollup: current}, source.NameRollup, "device by first day"},
		"no rollup":                {p(same), state{events: many}, source.NameSinglePass, "no current rollup"},
		"goal values":              {p(func(p *plan.Plan) { p.Filters.GoalValue = big.NewRat(1, 1) }), state{events: many, rollup: current}, source.NameSinglePass, "goal events"},
		"a z-score":                {p(func(p *plan.Plan) { p.Filters.ZScore = 2 }), state{events: many, rollup: current}, source.NameSinglePass, "goal events"},
		"a z-score of visitors":    {p(func(p *plan.Plan) { p.Filters.ZScore = 2 }), state{events: many, rollup: withVisitors}, source.NameVisitors, "goal events"},
		"hours of visitors":        {p(func(p *plan.Plan) { p.Interval = query.Hourly }), state{events: many, rollup: withVisitors}, source.NameVisitors, "hours"},
		"visitors are not needed":  {p(same), state{events: many, rollup: withVisitors}, source.NameRollup, "all by first day"},
		"part of a day":            {p(func(p *plan.Plan) { p.Filters.From = day.Add(time.Minute) }), state{events: many, rollup: current}, source.NameSinglePass, "whole days"},
		"hours":                    {p(func(p *plan.Plan) { p.Interval = query.Hourly }), state{events: many, rollup: current}, source.NameSinglePass, "hours"},
		"all events, and a rollup": {p(same).WithAllEvents(), state{events: many, rollup: current}, source.NameRollup, ""},
		"all events, and an older rollup": {
			p(same).WithAllEvents(), state{events: many, rollup: older}, source.NameSinglePass, "does not have all events",
		},
		"no cube": {
			p(func(p *plan.Plan) { p.Filters.Texts = []query.TextFilter{{Attribute: "utmTerm", Pattern: "x"}} }), state{events: many, rollup: current}, source.NameSinglePass, "no cube",
		},
		"a rollup that declined": {
			p(same), state{events: many, rollup: current}.without(source.NameRollup, "the generation was replaced"), source.NameSinglePass, "the generation was replaced",
		},
		"visitors that declined": {
			p(func(p *plan.Plan) { p.Filters.ZScore = 2 }), state{events: many, rollup: withVisitors}.without(source.NameVisitors, "being replaced"), source.NameSinglePass, "being replaced",
		},
		"a single pass that declined": {
			p(same), state{events: many}.without(source.NameSinglePass, "too many visitors"), source.NameReference, "no current rollup; too many visitors",
		},
		"both declined": {
			p(same), state{events: many, rollup: current}.without(source.NameRollup, "a").without(source.NameSinglePass, "b"), source.NameReference, "a; rows of visitors have at most 62 variations; b",
		},
		"no variations":                  {p(func(p *plan.Plan) { p.Variations = nil }), state{events: many}, source.NameReference, "1 to 62 variations"},
		"too many variations":            {p(func(p *plan.Plan) { p.Variations = make([]plan.Variation, source.MaxRanks+1) }), state{events: many}, source.NameReference, "1 to 62 variations"},
		"a dimension on several shards":  {p(func(p *plan.Plan) { p.Dimension = query.ByDevice }), state{events: many, sharded: true}, source.NameReference, "shard"},
		"no dimension on several shards": {p(same), state{events: many, sharded: true}, source.NameSinglePass, "no current rollup"},
	} {
		chosen, reason := choose(&source.Execution{Plan: test.plan, Store: &source.Store{}}, &test.state, source.Limits{})
		if chosen.Name() != test.want || !strings.Contains(reason, test.reason) {
			t.Errorf("%s: %s, because %q; want %s, because … %s", name, chosen.Name(), reason, test.want, test.reason)
		}
	}
}
