package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"
)

// workload makes one task after the other. The same seed gives the same tasks,
// but for the ids of events, which are each run's own.
type workload struct {
	mix      Mix
	subjects *subjects
	random   *rand.Rand
	run      string // begins the ids of this run's visitors and events
	now      func() time.Time
	visitors int
	weights  []float64 // of campaigns, cumulated
}

func newWorkload(o *Options, s *subjects) *workload {
	w := &workload{
		mix: o.Mix, subjects: s, random: rand.New(rand.NewPCG(o.Seed, 1)),
		run: "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36), now: time.Now,
	}
	sum := 0.0
	for _, f := range s.campaigns {
		sum += math.Sqrt(float64(f.Views + 1))
		w.weights = append(w.weights, sum)
	}
	return w
}

func (w *workload) next() task {
	t := task{kind: w.mix.pick(w.random)}
	switch t.kind {
	case Dashboard:
		t.path, t.conditional = one(w.random, w.subjects.polled), true
	case Opened:
		t.path = one(w.random, w.subjects.polled)
	case Uncached:
		small := one(w.random, w.subjects.small)
		t.path, t.fresh = small.results(""), true
	case Filtered:
		t.path = w.filtered()
	case Breakdown:
		f := w.campaign()
		t.path = f.results("dimension=" + one(w.random, []string{"device", "country", "channel", "referrer"}) + "&" + w.metric())
	case Series:
		f := w.campaign()
		t.path = f.results("interval=" + one(w.random, []string{"day", "week"}) + "&" + w.metric())
	case List:
		t.path = one(w.random, w.subjects.lists)
	case Ingest:
		t.path, t.events = "/events", w.batch()
	}
	return t
}

// campaign draws one: the larger, the likelier, by the square root of its
// views, so that neither one large campaign nor many small ones are all there is.
func (w *workload) campaign() *campaign {
	at := w.random.Float64() * w.weights[len(w.weights)-1]
	for i, upTo := range w.weights {
		if at < upTo {
			return &w.subjects.campaigns[i]
		}
	}
	panic("unreachable: the last weight is the sum")
}

func (w *workload) metric() string {
	return "compareMetric=" + one(w.random, []string{"goalConversionRate", "valuePerVisitor", "profitPerVisitor"})
}

// filtered asks about some of a campaign's visitors, as an analyst does: by
// one or two attributes, often in a window, sometimes by value.
func (w *workload) filtered() string {
	f, query := w.campaign(), url.Values{}
	for range 1 + w.random.IntN(2) {
		name := one(w.random, []string{"device", "country", "referrer", "visitorType"})
		values := w.subjects.values[name]
		switch {
		case len(values) == 0:
		case name == "device" || name == "country":
			query.Set("filters["+name+"][]", one(w.random, values))
		default:
			query.Set("filters["+name+"]", one(w.random, values))
		}
	}
	start := f.CreateDate
	if f.StartDate != nil {
		start = *f.StartDate
	}
	if days := int(w.now().Sub(start).Hours() / 24); days > 2 && w.random.IntN(2) == 0 {
		from := w.random.IntN(days - 1)
		query.Set("filters[dateFrom]", start.AddDate(0, 0, from).Format(time.DateOnly))
		query.Set("filters[dateTo]", start.AddDate(0, 0, from+1+w.random.IntN(days-from)).Format(time.DateOnly))
	}
	switch w.random.IntN(8) {
	case 0:
		query.Set("filters[goalValue]", strconv.Itoa(5+w.random.IntN(100)))
	case 1:
		query.Set("filters[zScore]", one(w.random, []string{"3", "4", "5"}))
	}
	return f.results(w.metric() + "&" + query.Encode())
}

// sentEvent is an event as senders write it.
type sentEvent struct {
	EventID     string  `json:"eventId"`
	Time        int64   `json:"time"`
	WebsiteID   int64   `json:"websiteId"`
	Visitor     string  `json:"visitor"`
	Event       string  `json:"event"`
	CampaignID  int64   `json:"campaignId"`
	VariationID int64   `json:"variationId"`
	GoalID      int64   `json:"goalId,omitempty"`
	Value       float64 `json:"value,omitempty"`
	Device      string  `json:"device,omitempty"`
	Country     string  `json:"country,omitempty"`
	VisitorType string  `json:"visitorType,omitempty"`
}

// batch is the events of one to three new visitors, a line each.
func (w *workload) batch() []byte {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	into := w.subjects.into
	for range 1 + w.random.IntN(3) {
		w.visitors++
		e := sentEvent{
			Time: w.now().UnixMilli(), WebsiteID: into.websiteID, Visitor: fmt.Sprintf("%s-%d", w.run, w.visitors), CampaignID: into.ID,
			VisitorType: one(w.random, w.subjects.values["visitorType"]),
		}
		if at := w.random.IntN(1 + len(into.Variations)); at > 0 {
			e.VariationID = into.Variations[at-1].ID
		}
		if devices := w.subjects.values["device"]; len(devices) > 0 {
			e.Device = one(w.random, devices)
		}
		if countries := w.subjects.values["country"]; len(countries) > 0 {
			e.Country = one(w.random, countries)
		}
		for view := range 1 + w.random.IntN(3) {
			e.EventID, e.Event = fmt.Sprintf("%s/%d", e.Visitor, view), "view"
			_ = encoder.Encode(e) // into memory, of numbers and texts: it cannot fail
		}
		if into.PrimaryGoalID != 0 && w.random.IntN(10) == 0 {
			e.EventID, e.Event, e.GoalID, e.Value = e.Visitor+"/goal", "goal", into.PrimaryGoalID, float64(100+w.random.IntN(20_000))/100
			_ = encoder.Encode(e)
		}
	}
	return lines.Bytes()
}

func one[T any](random *rand.Rand, of []T) T { return of[random.IntN(len(of))] }
