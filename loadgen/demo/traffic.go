package demo

import (
	"math/rand/v2"
	"slices"
	"time"

	"lifthouse/schema"
)

// visitorsPerSecond is the mean number of visitors of the live shop. It is much more than the shop had before, so that
// the numbers move while one looks.
const visitorsPerSecond = 2

// Traffic draws the visitors of the shop from a moment on. They behave as those of ShopEvents.
type Traffic struct {
	random  *rand.Rand
	arrival time.Time      // of the next visitor
	waiting []schema.Event // that visitors on the site will send
}

// NewTraffic returns the traffic from start on. Equal starts have equal traffic.
func NewTraffic(start time.Time) *Traffic {
	return &Traffic{random: rand.New(rand.NewPCG(uint64(start.UnixNano()), 0)), arrival: start} //nolint:gosec // synthetic
}

// NextEvents returns the events from the last call until now, in the order of their times.
func (t *Traffic) NextEvents(now time.Time) []schema.Event {
	for !t.arrival.After(now) {
		visit := t.drawVisit()
		describeEvents(visit)
		t.waiting = append(t.waiting, visit...)
		t.arrival = t.arrival.Add(time.Duration(t.random.ExpFloat64() * float64(time.Second) / visitorsPerSecond))
	}
	slices.SortStableFunc(t.waiting, func(a, b schema.Event) int { return a.Time.Compare(b.Time) })
	n := 0
	for n < len(t.waiting) && !t.waiting[n].Time.After(now) {
		n++
	}
	events := t.waiting[:n:n]
	t.waiting = t.waiting[n:]
	return events
}

// drawVisit returns the events of a visitor of one of the campaigns, or of the widget's experiment, who arrives now.
func (t *Traffic) drawVisit() (events []schema.Event) {
	campaigns := campaignPopulations(t.arrival)
	widgets := widgetPopulations(t.arrival)
	experiment := widgets[len(widgets)-1]
	total := experiment.Visitors
	for i := range campaigns {
		total += campaigns[i].Visitors
	}
	at := t.random.IntN(total)
	seed := t.random.Uint64()
	for i := range campaigns {
		c := &campaigns[i]
		at -= c.Visitors
		if at < 0 {
			c.Visitors = 1
			c.Seed = seed
			events = slices.Collect(c.GenerateEvents())
			events = append(events, supportRequests(events)...)
			events = append(events, trials(events)...)
			return moveEvents(events, t.arrival)
		}
	}
	experiment.Visitors = 1
	experiment.Seed = seed
	return moveEvents(slices.Collect(experiment.widgetEvents()), t.arrival)
}

// moveEvents moves the events of a visit, so that it begins at start.
func moveEvents(events []schema.Event, start time.Time) []schema.Event {
	by := start.Truncate(time.Millisecond).Sub(events[0].Time)
	for i := range events {
		events[i].Time = events[i].Time.Add(by)
	}
	return events
}
