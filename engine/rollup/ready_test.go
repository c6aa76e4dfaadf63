package rollup

import (
	"slices"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// TestLargeTailsWaitForImportsToEnd has an imported campaign, one that is being
// imported, and one with new visitors.
func TestLargeTailsWaitForImportsToEnd(t *testing.T) {
	s := New(nil, nil, &Index{})
	of := func(campaign int64) plan.Subject { return plan.Subject{Kind: schema.SubjectCampaign, ID: campaign} }
	imported := backlog{subject: of(1), stored: 3_000_000}
	visited := backlog{subject: of(2), stored: 200_000, state: &State{Events: 199_000}}
	importing := backlog{subject: of(3), stored: 1_000_000}
	look := func(seconds float64) (ready []int64) {
		if !s.lastLook.IsZero() {
			s.lastLook = time.Now().Add(-time.Duration(seconds * float64(time.Second)))
		}
		for _, d := range s.ready([]backlog{imported, visited, importing}) {
			ready = append(ready, d.subject.ID)
		}
		return ready
	}
	want := func(when string, got []int64, want ...int64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("%s: refreshed %v, want %v", when, got, want)
		}
	}

	want("at first", look(0), 1, 2, 3)
	importing.stored += 10_000
	want("an import", look(1), 2)
	importing.stored += 10_000
	want("it goes on", look(1), 2)
	importing.stored += 10_000
	want("it has slowed down", look(10), 1, 2, 3)
	importing.stored += 100_000
	want("another one", look(1), 2)
	waits := s.observed[imported.subject]
	waits.deferredSince = waits.deferredSince.Add(-maxDeferral)
	s.observed[imported.subject] = waits
	importing.stored += 100_000
	want("one has waited for long", look(1), 1, 2)
	want("it has ended", look(1), 1, 2, 3)
}
