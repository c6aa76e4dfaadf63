package population

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"lifthouse/schema"
)

// Event is an event with the texts from which its ids are computed. VisitorID
// is the hash of Visitor, and EventID is the hash of the text that appendID writes.
type Event struct {
	schema.Event
	Visitor string
	number  int // of the visitor's events
}

// appendID appends the event id as the sender writes it.
func (e *Event) appendID(b []byte) []byte {
	b = append(append(b, e.Visitor...), '/')
	return strconv.AppendInt(b, int64(e.number), 10)
}

// generator generates visitors one by one. The random numbers of a visitor depend
// only on the scenario's seed, the subject and the visitor's number. So visitors can
// be generated in any order.
type generator struct {
	*subject
	source *rand.PCG
	*rand.Rand
	chunk *chunk

	visitorName     string
	visitorID       uint64
	variation       *sharedVariation
	eventCount      int
	firstAttributes schema.Attributes // of the first visit
	visitAttributes schema.Attributes // of the current visit
}

func newGenerator(s *subject, c *chunk) *generator {
	source := rand.NewPCG(0, 0)
	return &generator{subject: s, source: source, Rand: rand.New(source), chunk: c}
}

// addVisitor adds the events of visitor n to the chunk.
func (g *generator) addVisitor(n int) {
	g.source.Seed(g.seed, mixBits(g.seed+uint64(n)))
	g.visitorName = g.key + "-" + strconv.FormatUint(g.scenario.Seed, 10) + "-" + strconv.Itoa(n)
	g.visitorID = schema.HashID(g.visitorName)
	g.eventCount = 0
	g.variation = g.variations.drawRow(g.Rand)
	g.firstAttributes = drawAttributes(g.Rand)
	g.visitAttributes = g.firstAttributes
	if g.scenario.standard {
		g.standardVisits()
		return
	}
	g.generateVisits()
}

// hours has few visits at night and most visits in the evening. Row n is hour n in UTC, with its weight.
var hours = newWeightedTable(
	[]float64{2, 1.4, 1, 0.8, 0.8, 1.1, 2, 3.2, 4.2, 4.9, 5.3, 5.5, 5.6, 5.5, 5.4, 5.4, 5.5, 5.7, 6.1, 6.6, 6.8, 6.2, 4.8, 3.2},
	func(weight float64) float64 { return weight },
)

// drawTime draws a time of day. Day 0 is the scenario's first day.
func (g *generator) drawTime(day int) time.Time {
	sinceMidnight := time.Duration((float64(hours.drawIndex(g.Rand)) + g.Float64()) * float64(time.Hour))
	return g.start.AddDate(0, 0, day).Add(sinceMidnight.Truncate(time.Millisecond))
}

// drawNext draws the time of the next event of a visit: 1 s after the given
// time, plus an exponential delay with a mean of 3 minutes.
func (g *generator) drawNext(after time.Time) time.Time {
	return after.Add(time.Second + time.Duration(g.ExpFloat64()*float64(3*time.Minute)).Truncate(time.Millisecond))
}

// meanExtraDays is the mean of the exponential number of days, before rounding
// down, between two visits of a visitor, in addition to 1 day.
const meanExtraDays = 2.5

// generateVisits generates the visits of a visitor. Each outcome occurs in one visit,
// after the views of the visit.
func (g *generator) generateVisits() {
	t := &g.scenario.Traffic
	visits := 1 + g.drawRepeats(t.Returning)
	visitOf := make([]int, len(g.outcomes)) // index of the visit with the outcome; -1: none
	for i := range g.outcomes {
		visitOf[i] = -1
		if g.Float64() < g.outcomeProbability(&g.outcomes[i], g.variation.id, &g.firstAttributes) {
			visitOf[i] = g.IntN(visits)
		}
	}
	multiple := g.drawMultipleExposures()
	day := g.IntN(g.scenario.Days)
	for visit := range visits {
		at := g.drawTime(day)
		if visit > 0 && g.Float64() < t.SourceChanges {
			drawSource(g.Rand, &g.visitAttributes)
		}
		g.addView(at, g.variation.id)
		for range g.drawRepeats(1 - 1/t.Views) {
			at = g.drawNext(at)
			g.addView(at, g.variation.id)
		}
		if multiple && visit == visits-1 {
			at = g.drawNext(at)
			g.addView(at, g.drawOtherVariation())
		}
		for i := range g.outcomes {
			if visitOf[i] == visit {
				at = g.drawNext(at)
				g.outcomeEvents(&g.outcomes[i], at)
			}
		}
		day += 1 + int(g.ExpFloat64()*meanExtraDays)
	}
}

// drawRepeats draws the number of successes before the first failure. The mean
// is probability/(1-probability).
func (g *generator) drawRepeats(probability float64) int {
	n := 0
	for g.Float64() < probability {
		n++
	}
	return n
}

// drawMultipleExposures draws whether the visitor also sees another variation.
func (g *generator) drawMultipleExposures() bool {
	return g.Float64() < g.scenario.Traffic.MultipleExposures && len(g.variations.rows) > 1
}

// drawOtherVariation draws a variation that is not the visitor's own variation.
func (g *generator) drawOtherVariation() int64 {
	n := g.IntN(len(g.variations.rows) - 1)
	if g.variations.rows[n].id == g.variation.id {
		n = len(g.variations.rows) - 1
	}
	return g.variations.rows[n].id
}

// outcomeEvents adds the event of an outcome at the given time, and repeated
// goal events after it.
func (g *generator) outcomeEvents(o *outcome, at time.Time) {
	if o.Goal == nil {
		g.addEvent(Event{Event: schema.Event{Kind: o.kind, Time: at, VariationID: g.variation.id}})
		return
	}
	mean := g.meanValue(o, g.variation.id, &g.firstAttributes)
	for range 1 + g.drawRepeats(o.Again) {
		g.addEvent(Event{Event: g.goalEvent(o.Goal, mean, at)})
		at = g.drawNext(at)
	}
}

// goalEvent draws a goal event. Its value is log-normal. Its profit and its
// extra value are proportional to the value, with random factors.
func (g *generator) goalEvent(goal *Goal, mean float64, at time.Time) schema.Event {
	e := schema.Event{Kind: schema.KindGoal, GoalID: goal.ID, Time: at, VariationID: g.variation.id}
	if mean > 0 {
		value := mean * math.Exp(goal.Spread*g.NormFloat64()-goal.Spread*goal.Spread/2)
		e.Value = roundToCents(value)
		e.Profit = roundToCents(value * (goal.Margin + goal.Noise*g.NormFloat64()))
		e.ExtraValue = roundToCents(value * goal.Extra * g.ExpFloat64())
	}
	return e
}

// roundToCents converts an amount in the sender's currency unit to the stored
// unit, rounded to cents and limited to the storable range.
func roundToCents(amount float64) int64 {
	amount = max(min(amount, schema.MaxMoney), -schema.MaxMoney)
	return int64(math.Round(amount*100)) * (schema.MoneyScale / 100)
}

func (g *generator) addView(at time.Time, variation int64) {
	g.addEvent(Event{Event: schema.Event{Kind: schema.KindView, Time: at, VariationID: variation}})
}

// addEvent fills in the remaining fields of the event and adds the event to the
// chunk. It draws whether the event is late and whether the event is
// duplicated.
func (g *generator) addEvent(e Event) {
	e.WebsiteID = g.website.ID
	e.Subject = g.kind
	e.SubjectID = g.id
	e.ExperimentID = g.experimentID
	e.Visitor = g.visitorName
	e.VisitorID = g.visitorID
	e.Attributes = g.visitAttributes
	e.number = g.eventCount
	g.eventCount++
	var id [64]byte
	e.EventID = schema.HashID(string(e.appendID(id[:0])))
	if g.scenario.Lines {
		e.Details = detailsOf(&e.Event)
	}
	t := &g.scenario.Traffic
	if g.Float64() < t.Late {
		g.chunk.late = append(g.chunk.late, e)
	} else {
		g.chunk.prompt = append(g.chunk.prompt, e)
	}
	if g.Float64() < t.Duplicates {
		g.chunk.late = append(g.chunk.late, e)
	}
}
