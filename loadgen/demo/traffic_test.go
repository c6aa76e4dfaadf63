package demo_test

import (
	"reflect"
	"testing"
	"time"

	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTraffic checks that visitors of every running experiment arrive, that each visit begins with a view, and that
// each call returns the events since the last one.
func TestTraffic(t *testing.T) {
	start := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	traffic, again := demo.NewTraffic(start), demo.NewTraffic(start)
	visitors := map[uint64]bool{}
	subjects := map[schema.SubjectKind]map[int64]int{schema.SubjectCampaign: {}, schema.SubjectWidget: {}}
	goals, last := 0, start
	const seconds = 1800
	for n := range seconds {
		now := start.Add(time.Duration(n+1) * time.Second)
		events := traffic.NextEvents(now)
		same := again.NextEvents(now)
		must.That(t, reflect.DeepEqual(events, same), "%v and %v from equal starts", events, same)
		for _, e := range events {
			must.That(t, !e.Time.Before(last) && !e.Time.After(now), "an event of %s after one of %s, at %s", e.Time, last, now)
			last = e.Time
			check.That(t, visitors[e.VisitorID] || e.Kind == schema.KindView, "a visit begins with %s", e.Kind)
			visitors[e.VisitorID] = true
			subjects[e.Subject][e.SubjectID]++
			if e.Kind == schema.KindGoal {
				goals++
			}
		}
	}
	if n := len(visitors); n < 1.9*seconds || n > 2.1*seconds {
		t.Errorf("%d visitors in %d seconds", n, seconds)
	}
	check.That(t, len(subjects[schema.SubjectCampaign]) == 7 && len(subjects[schema.SubjectWidget]) == 1 && goals >= 100, "events by subject %v, %d goals", subjects, goals)
}
