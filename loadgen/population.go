// Package loadgen makes visitors whose behaviour is known, so that what a
// report says of them can be judged.
package loadgen

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"lifthouse/schema"
)

// Population is the visitors of one campaign. The same population gives the
// same events, in the same order.
type Population struct {
	WebsiteID  int64
	CampaignID int64
	GoalID     int64
	Visitors   int
	Start      time.Time
	Days       int
	Variations []Variation
	Crossovers float64 // share of visitors who see another variation too
	Seed       uint64
}

// Variation is how the visitors of one variation behave.
type Variation struct {
	ID             int64
	Share          int     // relative weight
	ConversionRate float64 // share of the visitors who buy
	MeanValue      float64 // of an order, in the sender's unit
}

// Events gives every event of the population, visitor by visitor: one view at
// least, further views, and the orders of those who buy, each after the first
// view.
func (p *Population) Events() iter.Seq[schema.Event] {
	return func(yield func(schema.Event) bool) {
		random := rand.New(rand.NewPCG(p.Seed, 0))
		for n := range p.Visitors {
			v := p.visitor(random, n)
			for _, event := range v.events(p, random) {
				if !yield(event) {
					return
				}
			}
		}
	}
}

type visitor struct {
	name      string
	variation *Variation
	first     time.Time
	schema.Attributes
	made []schema.Event
}

func (p *Population) visitor(random *rand.Rand, n int) *visitor {
	return &visitor{
		name:      fmt.Sprintf("%d-%d-%d", p.CampaignID, p.Seed, n),
		variation: p.drawVariation(random),
		first:     p.Start.Add(p.moment(random)),
		Attributes: schema.Attributes{
			Device:      pick(random, devices),
			Browser:     pick(random, browsers),
			OS:          pick(random, systems),
			Country:     pick(random, countries),
			Channel:     pick(random, channels),
			VisitorType: pick(random, visitorTypes),
		},
	}
}

func (p *Population) drawVariation(random *rand.Rand) *Variation {
	total := 0
	for _, v := range p.Variations {
		total += v.Share
	}
	at := random.IntN(total)
	for i := range p.Variations {
		if at -= p.Variations[i].Share; at < 0 {
			return &p.Variations[i]
		}
	}
	panic("unreachable: the shares add up to the total")
}

// moment is a time since the start: any day, more often in the afternoon.
func (p *Population) moment(random *rand.Rand) time.Duration {
	day := time.Duration(random.IntN(p.Days)) * 24 * time.Hour
	hour := 15 + 5*random.NormFloat64()
	hour = math.Mod(hour+24, 24)
	return day + time.Duration(hour*float64(time.Hour)).Truncate(time.Millisecond)
}

// moreViews is the mean number of views after the first.
const moreViews = 2.5

// orderSpread is the sigma of the log-normal order values: about 1, as in
// shops.
const orderSpread = 0.9

// events makes the visitor's events and returns them.
func (v *visitor) events(p *Population, random *rand.Rand) []schema.Event {
	v.add(p, schema.KindView, v.first, v.variation.ID, 0)
	last := v.first
	for range int(random.ExpFloat64() * moreViews) {
		last = last.Add(time.Duration(random.ExpFloat64() * float64(20*time.Minute)).Truncate(time.Millisecond))
		v.add(p, schema.KindView, last, v.variation.ID, 0)
	}
	if random.Float64() < p.Crossovers {
		other := p.Variations[random.IntN(len(p.Variations))].ID
		v.add(p, schema.KindView, last.Add(time.Minute), other, 0)
	}
	if random.Float64() < v.variation.ConversionRate {
		value := v.variation.MeanValue * math.Exp(orderSpread*random.NormFloat64()-orderSpread*orderSpread/2)
		v.add(p, schema.KindGoal, last.Add(time.Minute), v.variation.ID, value)
	}
	return v.made
}

func (v *visitor) add(p *Population, kind schema.Kind, at time.Time, variation int64, value float64) {
	e := schema.Event{
		EventID:     schema.Hash(fmt.Sprintf("%s/%d", v.name, len(v.made))),
		Time:        at,
		WebsiteID:   p.WebsiteID,
		Subject:     schema.SubjectCampaign,
		SubjectID:   p.CampaignID,
		VariationID: variation,
		VisitorID:   schema.Hash(v.name),
		Kind:        kind,
		Attributes:  v.Attributes,
	}
	if kind == schema.KindGoal {
		e.GoalID = p.GoalID
		cents := int64(math.Round(value * 100))
		e.Value = cents * schema.MoneyScale / 100
		e.Profit = e.Value / 4
	}
	v.made = append(v.made, e)
}

// weighted is a value and how often it is drawn, relative to the others.
type weighted struct {
	value  string
	weight int
}

var (
	devices      = []weighted{{"mobile", 62}, {"desktop", 33}, {"tablet", 5}}
	browsers     = []weighted{{"chrome", 64}, {"safari", 22}, {"firefox", 7}, {"edge", 6}, {"other", 1}}
	systems      = []weighted{{"android", 40}, {"ios", 25}, {"windows", 25}, {"macos", 8}, {"linux", 2}}
	countries    = []weighted{{"US", 40}, {"GB", 14}, {"DE", 12}, {"FR", 10}, {"NL", 6}, {"ES", 6}, {"IT", 5}, {"CA", 4}, {"JP", 2}, {"", 1}}
	channels     = []weighted{{"organic", 35}, {"paid", 25}, {"direct", 20}, {"email", 12}, {"social", 8}}
	visitorTypes = []weighted{{"new", 68}, {"returning", 32}}
)

func pick(random *rand.Rand, from []weighted) string {
	total := 0
	for _, w := range from {
		total += w.weight
	}
	at := random.IntN(total)
	for _, w := range from {
		if at -= w.weight; at < 0 {
			return w.value
		}
	}
	panic("unreachable: the weights add up to the total")
}
