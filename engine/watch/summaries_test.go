package watch_test

import (
	"context"
	"errors"
	"testing"

	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestSummariesAreComputedWhenTheyAreAwaited asks for the summaries of a campaign twice: what is kept needs no slot. A
// request that gets none ends with its error, and so does one whose context ends.
func TestSummariesAreComputedWhenTheyAreAwaited(t *testing.T) {
	p := newPast(t, nil)
	p.arrive(0, []int{50, 50}, 5, 8)
	must.OK(t, p.server.facts.RefreshFacts(t.Context()))
	owned := p.catalogue.Snapshot().AccountResources(1)
	subjects := []schema.Subject{banner, banner} // of equal ones, one is computed
	versions, _, err := p.server.ReadVersions(t.Context(), owned, subjects)
	must.OK(t, err)
	admitted, waits := 0, 0
	admit := func(context.Context) (func(), error) { admitted++; return func() {}, nil }
	request := watch.Bulk{
		Owned: owned, Subjects: subjects, Versions: versions, Admit: admit, BeforeWait: func() { waits++ },
	}
	ask := func(ctx context.Context, of watch.Bulk) (found []*watch.Summary, err error) {
		for summary, err := range p.server.summaries.AwaitSummaries(ctx, of) {
			if err != nil {
				return found, err
			}
			found = append(found, summary)
		}
		return found, nil
	}
	refused := request
	errBusy := errors.New("busy")
	refused.Admit = func(context.Context) (func(), error) { return nil, errBusy }
	_, err = ask(t.Context(), refused)
	check.That(t, errors.Is(err, errBusy), "without a slot: %v", err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = ask(ended, request)
	check.That(t, errors.Is(err, context.Canceled), "after the context has ended: %v", err)

	admitted, waits = 0, 0
	first := must.Get(ask(t.Context(), request))(t)
	must.Equal(t, len(first), 2, "summaries")
	check.Equal(t, admitted, 1, "slots of the first request")
	check.That(t, first[0] == first[1], "a summary was computed twice")
	second := must.Get(ask(t.Context(), request))(t)
	check.That(t, second[0] == first[0], "a kept summary was computed again")
	check.Equal(t, admitted, 1, "slots of the second request")
	check.That(t, waits <= 2, "%d waits: a kept summary is ready", waits)

	p.arrive(1, []int{50, 50}, 5, 8)
	must.OK(t, p.server.facts.RefreshFacts(t.Context()))
	request.Versions, _, err = p.server.ReadVersions(t.Context(), owned, subjects)
	must.OK(t, err)
	third := must.Get(ask(t.Context(), request))(t)
	check.That(t, third[0] != first[0], "the summary of earlier data was used")
	check.Equal(t, *third[0].Status.Visitors, int64(200), "visitors")
}
