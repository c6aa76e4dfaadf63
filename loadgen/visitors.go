package loadgen

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"lifthouse/schema"
)

// Event is an event as its sender knows it. The ids are hashes of texts that
// say whose they are: Visitor, and Visitor with the event's number.
type Event struct {
	schema.Event
	Visitor string
	number  int
}

// appendID appends the text whose hash is the event's id.
func (e *Event) appendID(to []byte) []byte {
	to = append(append(to, e.Visitor...), '/')
	return strconv.AppendInt(to, int64(e.number), 10)
}

// group is the visitors of one campaign, or of one experiment of a widget.
type group struct {
	scenario  *Scenario
	website   *Website
	key       string // names it among all
	visitors  int
	subject   schema.Subject
	id        int64
	within    int64 // experiment of a widget
	primary   int64 // goal
	arms      table[arm]
	effects   []Effect
	outcomes  []outcome
	seed      uint64
	firstTime time.Time
}

type arm struct {
	id    int64
	name  string
	share float64 // of all visitors of the group
}

// outcome is something that a visitor may do besides viewing.
type outcome struct {
	kind schema.Kind
	rate float64
	*Goal
}

// groups are those of a valid scenario, in the order of its file.
func (s *Scenario) groups() []*group {
	var all []*group
	add := func(site *Website, of schema.Subject, id, within, primary int64, split *Split, actions []action) {
		g := &group{
			scenario: s, website: site, visitors: split.Visitors, subject: of, id: id, within: within, primary: primary,
			arms: split.arms(), effects: split.Effects, firstTime: s.Start.UTC(),
			key: string(of[0]) + strconv.FormatInt(id, 10) + "." + strconv.FormatInt(within, 10),
		}
		g.seed = mix(s.Seed ^ schema.Hash(g.key))
		for i := range site.Goals {
			g.outcomes = append(g.outcomes, outcome{schema.KindGoal, site.Goals[i].Rate, &site.Goals[i]})
		}
		for _, action := range actions {
			g.outcomes = append(g.outcomes, outcome{action.kind, action.rate, nil})
		}
		all = append(all, g)
	}
	for w := range s.Websites {
		site := &s.Websites[w]
		for i := range site.Campaigns {
			c := &site.Campaigns[i]
			add(site, schema.SubjectCampaign, c.ID, 0, c.PrimaryGoalID, &c.Split, nil)
		}
		for i := range site.Widgets {
			widget := &site.Widgets[i]
			for j := range widget.Experiments {
				e := &widget.Experiments[j]
				add(site, schema.SubjectWidget, widget.ID, e.ID, widget.PrimaryGoalID, &e.Split, e.Actions.list())
			}
		}
	}
	return all
}

// arms are control and the variations, each with its share of the visitors.
func (s *Split) arms() table[arm] {
	weights := 0
	for _, v := range s.Variations {
		weights += v.Share
	}
	rest := float64(100-s.ControlShare) / 100
	all := []arm{{0, "Control", float64(s.ControlShare) / 100}}
	for _, v := range s.Variations {
		all = append(all, arm{v.ID, v.Name, rest * float64(v.Share) / float64(max(weights, 1))})
	}
	return newTable(all, func(a arm) float64 { return a.share })
}

// chance is how likely a visitor of the variation with the attributes is to do
// it: its rate times all effects that hold, at most 1.
func (g *group) chance(o *outcome, variation int64, a *schema.Attributes) float64 {
	rate := o.rate
	for i := range g.effects {
		if e := &g.effects[i]; e.Rate != 0 && e.holds(o, variation, a) {
			rate *= e.Rate
		}
	}
	return min(rate, 1)
}

// meanValue is the mean value of one such event.
func (g *group) meanValue(o *outcome, variation int64, a *schema.Attributes) float64 {
	if o.Goal == nil {
		return 0
	}
	value := o.Value
	for i := range g.effects {
		if e := &g.effects[i]; e.Value != 0 && e.holds(o, variation, a) {
			value *= e.Value
		}
	}
	return value
}

func (e *Effect) holds(o *outcome, variation int64, a *schema.Attributes) bool {
	if e.Variation != nil && *e.Variation != variation {
		return false
	}
	switch {
	case e.Event != "":
		if o.kind != schema.Kind(e.Event) {
			return false
		}
	case o.Goal == nil || (e.Goal != 0 && e.Goal != o.ID):
		return false
	}
	return matches(e.When, a)
}

// mix spreads a number over 64 bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// maker makes visitors one by one. Each draws from a generator of its own, so
// that a visitor is the same whoever makes it, and when.
type maker struct {
	*group
	source *rand.PCG
	*rand.Rand
	chunk *Chunk

	visitor string
	hash    uint64
	arm     *arm
	made    int
	own     schema.Attributes // of the first visit
	visit   schema.Attributes // of this one
}

func newMaker(g *group, chunk *Chunk) *maker {
	source := rand.NewPCG(0, 0)
	return &maker{group: g, source: source, Rand: rand.New(source), chunk: chunk}
}

// make adds the n-th visitor's events to the chunk.
func (m *maker) make(n int) {
	m.source.Seed(m.seed, mix(m.seed+uint64(n)))
	m.visitor = m.key + "-" + strconv.FormatUint(m.scenario.Seed, 10) + "-" + strconv.Itoa(n)
	m.hash, m.made = schema.Hash(m.visitor), 0
	m.arm = m.arms.draw(m.Rand)
	m.own = drawAttributes(m.Rand)
	m.visit = m.own
	if m.scenario.standard {
		m.liveStandard()
		return
	}
	m.live()
}

// hours are the weights of a day's hours in UTC: few come at night, most in
// the evening.
var hours = newTable(hourWeights(), func(h hour) float64 { return h.weight })

type hour struct {
	number int
	weight float64
}

func hourWeights() []hour {
	weights := [24]float64{2, 1.4, 1, 0.8, 0.8, 1.1, 2, 3.2, 4.2, 4.9, 5.3, 5.5, 5.6, 5.5, 5.4, 5.4, 5.5, 5.7, 6.1, 6.6, 6.8, 6.2, 4.8, 3.2}
	all := make([]hour, len(weights))
	for i, weight := range weights {
		all[i] = hour{i, weight}
	}
	return all
}

// moment is a time of a day, counted from the first one.
func (m *maker) moment(day int) time.Time {
	within := time.Duration((float64(hours.draw(m.Rand).number) + m.Float64()) * float64(time.Hour))
	return m.firstTime.AddDate(0, 0, day).Add(within.Truncate(time.Millisecond))
}

// soon is a time within minutes after another.
func (m *maker) soon(at time.Time) time.Time {
	return at.Add(time.Second + time.Duration(m.ExpFloat64()*float64(3*time.Minute)).Truncate(time.Millisecond))
}

// meanPause is how many days lie between two visits of a visitor, on average,
// after the first one.
const meanPause = 2.5

// live makes the visits of an ordinary visitor, and what is done in them: each
// outcome in one of the visits, after its views.
func (m *maker) live() {
	t := &m.scenario.Traffic
	visits := 1 + m.more(t.Returning)
	does := make([]int, len(m.outcomes)) // the visit in which; -1: does not
	for i := range m.outcomes {
		does[i] = -1
		if m.Float64() < m.chance(&m.outcomes[i], m.arm.id, &m.own) {
			does[i] = m.IntN(visits)
		}
	}
	crosses := m.crosses()
	day := m.IntN(m.scenario.Days)
	for visit := range visits {
		at := m.moment(day)
		if visit > 0 && m.Float64() < t.SourceChanges {
			drawSource(m.Rand, &m.visit)
		}
		m.view(at, m.arm.id)
		for range m.more(1 - 1/t.Views) {
			at = m.soon(at)
			m.view(at, m.arm.id)
		}
		if crosses && visit == visits-1 {
			at = m.soon(at)
			m.view(at, m.other())
		}
		for i := range m.outcomes {
			if does[i] == visit {
				at = m.soon(at)
				m.reach(&m.outcomes[i], at)
			}
		}
		day += 1 + int(m.ExpFloat64()*meanPause)
	}
}

// more draws how often something happens again that does each time with the
// chance: its mean is chance/(1-chance).
func (m *maker) more(chance float64) int {
	n := 0
	for m.Float64() < chance {
		n++
	}
	return n
}

// crosses draws whether a visitor sees another variation too.
func (m *maker) crosses() bool {
	return m.Float64() < m.scenario.Traffic.Crossovers && len(m.arms.rows) > 1
}

// other is a variation that is not the visitor's own.
func (m *maker) other() int64 {
	n := m.IntN(len(m.arms.rows) - 1)
	if m.arms.rows[n].id == m.arm.id {
		n = len(m.arms.rows) - 1
	}
	return m.arms.rows[n].id
}

// reach makes the event, and its repetitions.
func (m *maker) reach(o *outcome, at time.Time) {
	if o.Goal == nil {
		m.add(Event{Event: schema.Event{Kind: o.kind, Time: at, VariationID: m.arm.id}})
		return
	}
	mean := m.meanValue(o, m.arm.id, &m.own)
	for range 1 + m.more(o.Again) {
		m.add(Event{Event: m.goalEvent(o.Goal, mean, at)})
		at = m.soon(at)
	}
}

// goalEvent draws what a goal event brings: a log-normal value, and of it a
// profit and an extra value.
func (m *maker) goalEvent(g *Goal, mean float64, at time.Time) schema.Event {
	e := schema.Event{Kind: schema.KindGoal, GoalID: g.ID, Time: at, VariationID: m.arm.id}
	if mean > 0 {
		value := mean * math.Exp(g.Spread*m.NormFloat64()-g.Spread*g.Spread/2)
		e.Value = cents(value)
		e.Profit = cents(value * (g.Margin + g.Noise*m.NormFloat64()))
		e.ExtraValue = cents(value * g.Extra * m.ExpFloat64())
	}
	return e
}

// cents is an amount in the stored unit, of whole cents.
func cents(amount float64) int64 {
	amount = max(min(amount, schema.MaxMoney), -schema.MaxMoney)
	return int64(math.Round(amount*100)) * (schema.MoneyScale / 100)
}

func (m *maker) view(at time.Time, variation int64) {
	m.add(Event{Event: schema.Event{Kind: schema.KindView, Time: at, VariationID: variation}})
}

// add completes an event and decides how it arrives.
func (m *maker) add(e Event) {
	e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID = m.website.ID, m.subject, m.id, m.within
	e.Visitor, e.VisitorID, e.Attributes = m.visitor, m.hash, m.visit
	e.number = m.made
	m.made++
	var id [64]byte
	e.EventID = schema.Hash(string(e.appendID(id[:0])))
	t := &m.scenario.Traffic
	if m.Float64() < t.Late {
		m.chunk.Late = append(m.chunk.Late, e)
	} else {
		m.chunk.Prompt = append(m.chunk.Prompt, e)
	}
	if m.Float64() < t.Duplicates {
		m.chunk.Late = append(m.chunk.Late, e)
	}
}
