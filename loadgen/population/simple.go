package population

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"lifthouse/schema"
)

// SimpleCampaign describes the visitors of one campaign with one goal. Equal
// values generate equal events in the same order.
type SimpleCampaign struct {
	WebsiteID         int64
	CampaignID        int64
	GoalID            int64
	Visitors          int
	Start             time.Time
	Days              int
	Variations        []SimpleVariation
	MultipleExposures float64 // share of visitors who also see a randomly drawn variation
	Seed              uint64
}

// SimpleVariation describes the behaviour of the visitors of one variation.
type SimpleVariation struct {
	ID             int64
	Share          int     // weight relative to the other variations
	ConversionRate float64 // share of visitors who place an order
	MeanValue      float64 // mean order value, in the sender's currency unit
}

// GenerateEvents returns all events, visitor by visitor. Each visitor has at least one
// view. An order follows the last view.
func (c *SimpleCampaign) GenerateEvents() iter.Seq[schema.Event] {
	return func(yield func(schema.Event) bool) {
		random := rand.New(rand.NewPCG(c.Seed, 0))
		for n := range c.Visitors {
			v := c.drawVisitor(random, n)
			for _, event := range v.generateEvents(c, random) {
				if !yield(event) {
					return
				}
			}
		}
	}
}

type simpleVisitor struct {
	name      string
	variation *SimpleVariation
	first     time.Time // first view
	schema.Attributes
	events []schema.Event
}

func (c *SimpleCampaign) drawVisitor(random *rand.Rand, n int) *simpleVisitor {
	return &simpleVisitor{
		name:      fmt.Sprintf("%d-%d-%d", c.CampaignID, c.Seed, n),
		variation: DrawByWeight(random, c.Variations, func(v *SimpleVariation) int { return v.Share }),
		first:     c.Start.Add(c.drawTime(random)),
		Attributes: schema.Attributes{
			Device:      drawValue(random, simpleDevices),
			Browser:     drawValue(random, simpleBrowsers),
			OS:          drawValue(random, simpleSystems),
			Country:     drawValue(random, simpleCountries),
			Channel:     drawValue(random, simpleChannels),
			VisitorType: drawValue(random, simpleVisitorTypes),
		},
	}
}

// drawTime draws a time since the start. The day is uniform, and the hour is
// normal around 15:00.
func (c *SimpleCampaign) drawTime(random *rand.Rand) time.Duration {
	day := time.Duration(random.IntN(c.Days)) * 24 * time.Hour
	hour := 15 + 5*random.NormFloat64()
	hour = math.Mod(hour+24, 24)
	return day + time.Duration(hour*float64(time.Hour)).Truncate(time.Millisecond)
}

// simpleLaterViews is the mean number of views after the first view, before
// rounding down.
const simpleLaterViews = 2.5

// simpleSpread is the sigma of the log-normal order values. Values near 1 are
// typical of shops.
const simpleSpread = 0.9

// generateEvents returns the visitor's events.
func (v *simpleVisitor) generateEvents(c *SimpleCampaign, random *rand.Rand) []schema.Event {
	v.addEvent(c, schema.KindView, v.first, v.variation.ID, 0)
	last := v.first
	for range int(random.ExpFloat64() * simpleLaterViews) {
		last = last.Add(time.Duration(random.ExpFloat64() * float64(20*time.Minute)).Truncate(time.Millisecond))
		v.addEvent(c, schema.KindView, last, v.variation.ID, 0)
	}
	if random.Float64() < c.MultipleExposures {
		other := c.Variations[random.IntN(len(c.Variations))].ID
		v.addEvent(c, schema.KindView, last.Add(time.Minute), other, 0)
	}
	if random.Float64() < v.variation.ConversionRate {
		value := v.variation.MeanValue * math.Exp(simpleSpread*random.NormFloat64()-simpleSpread*simpleSpread/2)
		v.addEvent(c, schema.KindGoal, last.Add(time.Minute), v.variation.ID, value)
	}
	return v.events
}

func (v *simpleVisitor) addEvent(c *SimpleCampaign, kind schema.Kind, at time.Time, variation int64, value float64) {
	e := schema.Event{
		EventID:     schema.HashID(fmt.Sprintf("%s/%d", v.name, len(v.events))),
		Time:        at,
		WebsiteID:   c.WebsiteID,
		Subject:     schema.SubjectCampaign,
		SubjectID:   c.CampaignID,
		VariationID: variation,
		VisitorID:   schema.HashID(v.name),
		Kind:        kind,
		Attributes:  v.Attributes,
	}
	if kind == schema.KindGoal {
		e.GoalID = c.GoalID
		cents := int64(math.Round(value * 100))
		e.Value = cents * schema.MoneyScale / 100
		e.Profit = e.Value / 4
	}
	v.events = append(v.events, e)
}

var (
	simpleDevices      = []weightedValue{{"mobile", 62}, {"desktop", 33}, {"tablet", 5}}
	simpleBrowsers     = []weightedValue{{"chrome", 64}, {"safari", 22}, {"firefox", 7}, {"edge", 6}, {"other", 1}}
	simpleSystems      = []weightedValue{{"android", 40}, {"ios", 25}, {"windows", 25}, {"macos", 8}, {"linux", 2}}
	simpleCountries    = []weightedValue{{"US", 40}, {"GB", 14}, {"DE", 12}, {"FR", 10}, {"NL", 6}, {"ES", 6}, {"IT", 5}, {"CA", 4}, {"JP", 2}, {"", 1}}
	simpleChannels     = []weightedValue{{"organic", 35}, {"paid", 25}, {"direct", 20}, {"email", 12}, {"social", 8}}
	simpleVisitorTypes = []weightedValue{{"new", 68}, {"returning", 32}}
)
