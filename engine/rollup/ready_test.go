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
	visited := backlog{subject: of(2), stored: 200_000, state: &State{Events: 198_000}, valid: true}
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

// TestFewEventsWaitForTheSecondLook has a campaign with one new event.
func TestFewEventsWaitForTheSecondLook(t *testing.T) {
	s := New(nil, nil, &Index{})
	visited := backlog{stored: 200_001, state: &State{Events: 200_000}, valid: true}
	look := func(pause time.Duration) bool {
		s.lastLook = time.Now().Add(-pause)
		return len(s.ready([]backlog{visited})) > 0
	}
	for n, want := range []bool{false, true, false, true} {
		if got := look(2 * time.Second); got != want {
			t.Errorf("look %d: refreshed %v, want %v", n+1, got, want)
		}
	}
	_ = look(time.Second)
	for range 2 {
		if !look(3 * time.Second) {
			t.Error("an event waits although the looks are rare")
		}
	}
	visited.valid = false
	for range 2 {
		if !look(time.Second) {
			t.Error("a rebuild waits")
		}
	}
}

// TestReportsReadTheRollupUntilEventsHaveWaited has a campaign whose last refresh was long ago.
func TestReportsReadTheRollupUntilEventsHaveWaited(t *testing.T) {
	now := time.Now()
	refreshed := progress{State{Through: now.Add(-time.Hour)}, now.Add(-time.Hour)}
	x := &Index{of: map[plan.Subject]progress{{}: refreshed}, waiting: map[plan.Subject]time.Time{}}
	for waited, want := range map[time.Duration]bool{0: true, maxAge - time.Second: true, maxAge: false} {
		x.waiting[plan.Subject{}] = now.Add(-waited)
		if _, lacks, usable := x.current(plan.Subject{}, now); !lacks || usable != want {
			t.Errorf("waited %s: lacks events %v, usable %v; want true, %v", waited, lacks, usable, want)
		}
	}
	x.shared = &shared{}
	x.waiting[plan.Subject{}] = now
	if _, _, usable := x.current(plan.Subject{}, now); usable {
		t.Error("usable although events of other processes may have waited for long")
	}
}
