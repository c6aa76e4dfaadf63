package rollup

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"lifthouse/engine/generation"
	"lifthouse/engine/visit"
)

// TestNoneOfTheMostVisitedIsMissingAmongTheCandidates checks that the most
// frequent values after some events are among the candidates of the previous
// ranking. Each event moves at most one visitor.
func TestNoneOfTheMostVisitedIsMissingAmongTheCandidates(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	known := 0
	for range 300 {
		visitors := map[string]int64{}
		for value := range 1 + random.IntN(3*maxRanked) {
			visitors[strconv.Itoa(value)] = 1 + random.Int64N(1+random.Int64N(4_000))
		}
		before := &ranking{events: 1_000}
		for _, value := range visit.MostVisited(visitors)[:min(maxRanked, len(visitors))] {
			before.values, before.visitors = append(before.values, value), append(before.visitors, visitors[value])
		}
		events, top := random.IntN(60)*random.IntN(2), 1+random.IntN(80)
		rise := before.values[min(len(before.values)-1, top+random.IntN(40))]
		for range events {
			last := before.values[min(len(before.values), top)-1]
			if random.IntN(10) == 0 {
				last = before.values[random.IntN(len(before.values))]
			}
			visitors[last] -= min(1, visitors[last])
			visitors[rise]++
		}
		candidates, is := before.candidates(State{Events: 1_000 + uint64(events)}, top) //nolint:gosec // it is positive
		if !is {
			continue
		}
		known++
		for _, value := range visit.MostVisited(visitors)[:min(top, len(visitors))] {
			if !slices.Contains(candidates, value) {
				t.Fatalf("%q has %d visitors and is not among the candidates", value, visitors[value])
			}
		}
	}
	if known < 100 {
		t.Errorf("only %d of 300 rankings did", known)
	}
}

func TestARankingOfAnotherGenerationDoesNotDo(t *testing.T) {
	r := &ranking{generation: 1, events: 10, values: []string{"a"}, visitors: []int64{3}}
	for _, state := range []State{{Generation: generation.ID{Number: 2}, Events: 10}, {Generation: generation.ID{Number: 1}, Events: 9}, {Generation: generation.ID{Number: 1}, Events: 11}} {
		if values, is := r.candidates(state, 5); is {
			t.Errorf("candidates(%+v) = %v, want none", state, values)
		}
	}
	if values, is := r.candidates(State{Generation: generation.ID{Number: 1}, Events: 10}, 5); !is || !slices.Equal(values, r.values) {
		t.Errorf("candidates = %v, %v, want all", values, is)
	}
}
