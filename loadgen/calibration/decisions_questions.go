package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"

	"lifthouse/engine/metric"
	"lifthouse/stats"
)

// Questions are read on each of these days.
const (
	daysOfQuestions  = 28
	firstDayOfAnswer = 7  // until then, nothing holds
	leastConverted   = 25 // of the pair, for rates
	leastWithValue   = 100
	mostQuestions    = 50
)

// questionAttributes are the attributes of visitors, with the numbers of their values. The share of value i is in
// proportion to 1/(i+1).
var questionAttributes = [...]struct {
	name   string
	values int
}{
	{"device", 3},
	{"country", 12},
	{"channel", 5},
	{"browser", 4},
	{"os", 4},
	{"visitorType", 2},
	{"city", 50},
	{"utmCampaign", 20},
}

// questionMetrics are the primary metric, a secondary one, and a mean.
var questionMetrics = [...]string{"converted(purchase)", "converted(add_to_cart)", "sum(purchase.value)"}

var questionNames = &metric.Names{Goals: []metric.Goal{{ID: 1, Key: "purchase"}, {ID: 2, Key: "add_to_cart"}}}

// zipfShares returns the cumulative shares of n values in proportion to 1/(i+1).
func zipfShares(n int) []float64 {
	shares := make([]float64, n)
	total := 0.
	for i := range shares {
		total += 1 / float64(i+1)
		shares[i] = total
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}

var questionShares = func() (shares [len(questionAttributes)][]float64) {
	for i, attribute := range questionAttributes {
		shares[i] = zipfShares(attribute.values)
	}
	return shares
}()

// segmentLift is a lift of the purchases of visitors with a value of an attribute.
type segmentLift struct {
	attribute int
	value     uint8
	lift      float64
}

// questioned is a campaign with attributes.
type questioned struct {
	visitors int
	share    float64 // of the treatment
	spread   float64 // standard deviation of the logarithm of an order
	lifts    []segmentLift
	declared bool // the questions about the lifts were declared with three others
	collects bool // the analyst also filters by all values that look good
}

func (c *questioned) String() string {
	return fmt.Sprintf("%d visitors in %d days, %g/%g, orders with a spread of %g", c.visitors, daysOfQuestions,
		math.Round(100*(1-c.share)), math.Round(100*c.share), c.spread)
}

// questionVisitor is a visitor of such a campaign.
type questionVisitor struct {
	values [len(questionAttributes)]uint8
	arm    uint8
	day    uint8
	buys   bool
	adds   bool // to the cart
	value  float64
}

// drawVisitors returns the visitors in the order of their first views.
func (c *questioned) drawVisitors(random *rand.Rand) []questionVisitor {
	visitors := make([]questionVisitor, c.visitors)
	for i := range visitors {
		v := &visitors[i]
		v.day = uint8(i * daysOfQuestions / c.visitors) //nolint:gosec // at most 27
		for a := range v.values {
			v.values[a] = uint8(sort.SearchFloat64s(questionShares[a], random.Float64())) //nolint:gosec // at most 49
		}
		rate := .05
		if random.Float64() < c.share {
			v.arm = 1
			for _, l := range c.lifts {
				if v.values[l.attribute] == l.value {
					rate *= 1 + l.lift
				}
			}
		}
		v.buys = random.Float64() < rate
		v.adds = random.Float64() < .1 || v.buys
		if v.buys {
			v.value = math.Exp(3 + c.spread*random.NormFloat64())
		}
	}
	return visitors
}

// answer is what a question about visitors shows on each day.
type answer struct {
	metric   int
	lists    [len(questionAttributes)]uint64 // a bit for each value of a list; 0: all visitors
	weight   float64
	sums     [daysOfQuestions][2]totalsOfMetric
	z        [daysOfQuestions]float64
	evidence [daysOfQuestions]float64 // 1 if there are too few data
}

// totalsOfMetric are the visitors, those with a value, and the sums of the values and of their squares.
type totalsOfMetric struct{ visitors, nonzero, sum, squares float64 }

func (a *answer) isAbout(v *questionVisitor) bool {
	for i, list := range a.lists {
		if list != 0 && list>>v.values[i]&1 == 0 {
			return false
		}
	}
	return true
}

func (a *answer) addVisitor(v *questionVisitor) {
	x := v.value
	if a.metric < 2 {
		x = 0
		if reached := []bool{v.buys, v.adds}[a.metric]; reached {
			x = 1
		}
	}
	t := &a.sums[v.day][v.arm]
	t.visitors++
	if x != 0 {
		t.nonzero++
		t.sum += x
		t.squares += x * x
	}
}

// judgeDays computes the fixed test and the evidence at the end of each day.
func (a *answer) judgeDays(share float64) {
	var t [2]totalsOfMetric
	for d := range a.sums {
		var samples [2]stats.Sample
		for arm := range t {
			s := &a.sums[d][arm]
			t[arm].visitors += s.visitors
			t[arm].nonzero += s.nonzero
			t[arm].sum += s.sum
			t[arm].squares += s.squares
			samples[arm] = t[arm].sampleOf(a.metric)
		}
		a.evidence[d] = 1
		effect := stats.NewPooledEffect([]stats.Stratum{{Control: samples[0], Treatment: samples[1]}})
		if effect.Reason != "" {
			continue
		}
		a.z[d] = effect.Value / effect.StandardError
		isEarly := d+1 < firstDayOfAnswer
		control, isRate := samples[0].(stats.Rate)
		switch {
		case isEarly:
		case isRate && t[0].nonzero+t[1].nonzero >= leastConverted:
			treatment, _ := samples[1].(stats.Rate)
			a.evidence[d] = stats.RateEvidence([]stats.EvidencePeriod{{Control: control, Treatment: treatment, TreatmentShare: share}})
		case !isRate && min(t[0].nonzero, t[1].nonzero) >= leastWithValue:
			a.evidence[d] = stats.MeanEvidence(effect)
		}
	}
}

func (t *totalsOfMetric) sampleOf(of int) stats.Sample {
	if of < 2 {
		return stats.Rate{Visitors: int64(t.visitors), Converted: int64(t.nonzero)}
	}
	mean := t.sum / max(t.visitors, 1)
	variance := (t.squares - t.visitors*mean*mean) / max(t.visitors-1, 1)
	return stats.Mean{Visitors: int64(t.visitors), Mean: mean, Variance: variance, Nonzero: int64(t.nonzero)}
}

// questionOf returns the question that is answered.
func (a *answer) questionOf() *metric.Question {
	m, err := metric.Parse(questionMetrics[a.metric], questionNames)
	if err != nil {
		panic(err) // the texts are constants
	}
	q := &metric.Question{Metric: m}
	for i, list := range a.lists {
		if list == 0 {
			continue
		}
		var values []string
		for v := range questionAttributes[i].values {
			if list>>v&1 == 1 {
				values = append(values, strconv.Itoa(v))
			}
		}
		q.Visitors = metric.JoinConditions(q.Visitors, metric.CompareText(attributeField(i), metric.In, values...))
	}
	return q
}

// declare returns the question as it is declared.
func (a *answer) declare() metric.Ask {
	q := a.questionOf()
	return metric.Ask{Metric: q.Metric, Visitors: q.Visitors}
}

func attributeField(i int) metric.Field {
	return metric.Field{Source: metric.OfAttribute, Name: questionAttributes[i].name}
}

// analyst asks a campaign questions, always on from what looks most extreme.
type analyst struct {
	*questioned
	random   *rand.Rand
	visitors []questionVisitor
	ranks    *metric.Ranks
	answers  []*answer
	known    map[string]bool
	followed map[*answer]bool
	asked    int
}

func (c *questioned) newAnalyst(random *rand.Rand) *analyst {
	a := &analyst{
		questioned: c, random: random, visitors: c.drawVisitors(random),
		known: map[string]bool{}, followed: map[*answer]bool{},
	}
	a.ranks = rankVisitors(a.visitors)
	if c.declared {
		for i := range c.lifts {
			a.ranks.Declared = append(a.ranks.Declared, c.answerAbout(i).declare())
		}
		for value := range uint(5 - len(c.lifts)) { // other questions, to five
			other := &answer{}
			other.lists[2] = 1 << value
			a.ranks.Declared = append(a.ranks.Declared, other.declare())
		}
	}
	return a
}

// rankVisitors returns the ranks by first appearance.
func rankVisitors(visitors []questionVisitor) *metric.Ranks {
	r := &metric.Ranks{Metrics: questionMetrics[:], Values: map[metric.Field]map[string]int{}}
	for i, attribute := range questionAttributes {
		ranks := map[string]int{}
		var seen uint64
		for k := 0; k < len(visitors) && len(ranks) < attribute.values; k++ {
			if value := visitors[k].values[i]; seen>>value&1 == 0 {
				seen |= 1 << value
				ranks[strconv.Itoa(int(value))] = len(ranks) + 1
			}
		}
		r.Values[attributeField(i)] = ranks
	}
	return r
}

// answerAbout returns the question about a lift.
func (c *questioned) answerAbout(lift int) *answer {
	a := &answer{}
	a.lists[c.lifts[lift].attribute] = 1 << c.lifts[lift].value
	return a
}

// addAnswer adds a question, if it was not asked before, and reports whether it was not.
func (a *analyst) addAnswer(one *answer) bool {
	key := fmt.Sprint(one.metric, one.lists)
	if a.known[key] {
		return false
	}
	a.known[key] = true
	one.weight = a.ranks.WeighQuestion(one.questionOf())
	a.answers = append(a.answers, one)
	return true
}

// ask asks a question, unless it was asked before.
func (a *analyst) ask(one *answer) {
	if !a.addAnswer(one) {
		return
	}
	for i := range a.visitors {
		if v := &a.visitors[i]; one.isAbout(v) {
			one.addVisitor(v)
		}
	}
	one.judgeDays(a.share)
}

// askBreakdown asks about each value of an attribute that the visitors of an answer may have.
func (a *analyst) askBreakdown(of *answer, attribute int) {
	var rows [64]*answer // by value; nil: it was asked before
	for value := range questionAttributes[attribute].values {
		row := &answer{metric: of.metric, lists: of.lists}
		row.lists[attribute] = 1 << value
		if a.addAnswer(row) {
			rows[value] = row
		}
	}
	for i := range a.visitors {
		v := &a.visitors[i]
		if row := rows[v.values[attribute]]; row != nil && of.isAbout(v) {
			row.addVisitor(v)
		}
	}
	for _, row := range rows {
		if row != nil {
			row.judgeDays(a.share)
		}
	}
}

// askNext asks a question on a day: first the breakdowns, then on from the most extreme answer.
func (a *analyst) askNext(day int) {
	order := [...]int{0, 5, 2, 4, 1, 3, 7, 6}
	defer func() { a.asked++ }()
	if a.asked < len(order) {
		a.askBreakdown(&answer{}, order[a.asked])
		return
	}
	if a.collects && a.asked%2 == 0 {
		a.collectValues(day)
		return
	}
	most := a.mostExtreme(day)
	if most == nil {
		return
	}
	a.followed[most] = true
	attribute := a.random.IntN(len(questionAttributes))
	switch {
	case a.random.IntN(3) == 0: // the same visitors by another metric
		other := &answer{metric: (most.metric + 1 + a.random.IntN(2)) % len(questionMetrics), lists: most.lists}
		a.ask(other)
	case most.lists[attribute] == 0:
		a.askBreakdown(most, attribute)
	default:
		a.askBreakdown(&answer{metric: 1 + a.random.IntN(2)}, attribute)
	}
}

// mostExtreme returns the most extreme answer that was not followed.
func (a *analyst) mostExtreme(day int) (most *answer) {
	for _, one := range a.answers {
		isMore := most == nil || math.Abs(one.z[day]) > math.Abs(most.z[day])
		if one.z[day] != 0 && !a.followed[one] && isMore {
			most = one
		}
	}
	return most
}

// collectValues filters by all values of an attribute that look good.
func (a *analyst) collectValues(day int) {
	attribute := []int{6, 7, 1}[a.random.IntN(3)]
	all := &answer{metric: a.random.IntN(len(questionMetrics))}
	for _, one := range a.answers {
		only := one.lists
		only[attribute] = 0
		isRow := one.metric == 0 && one.lists[attribute] != 0 && only == [len(questionAttributes)]uint64{}
		if isRow && one.looksGood(day) {
			all.lists[attribute] |= one.lists[attribute]
		}
	}
	if all.lists[attribute] != 0 {
		a.ask(all)
	}
}

// looksGood reports whether the treatment is ahead, also with few data.
func (a *answer) looksGood(day int) bool {
	var t [2]totalsOfMetric
	for d := range day + 1 {
		for arm := range t {
			t[arm].visitors += a.sums[d][arm].visitors
			t[arm].sum += a.sums[d][arm].sum
		}
	}
	return t[1].sum*t[0].visitors > t[0].sum*t[1].visitors
}

// holdsOn reports whether an answer holds on a day, by its price or by a fixed test at 5 %.
func (a *answer) holdsOn(day int, byPrice bool) bool {
	if byPrice {
		return a.evidence[day] >= metric.NeededEvidence(a.weight, 1)
	}
	const critical = 1.96
	return math.Abs(a.z[day]) >= critical
}

// everHolds reports whether any answer to the analyst ever holds.
func (a *analyst) everHolds(byPrice bool) bool {
	for day := range daysOfQuestions {
		for a.asked < mostQuestions*(day+1)/daysOfQuestions {
			a.askNext(day)
		}
		for _, one := range a.answers {
			if one.holdsOn(day, byPrice) {
				return true
			}
		}
	}
	return false
}

// everythingHolds reports whether any question of up to two attributes ever holds.
func (a *analyst) everythingHolds() bool {
	for of := range questionMetrics {
		for i, attribute := range questionAttributes {
			a.askBreakdown(&answer{metric: of}, i)
			for value := range attribute.values {
				first := &answer{metric: of}
				first.lists[i] = 1 << value
				for j := i + 1; j < len(questionAttributes); j++ {
					a.askBreakdown(first, j)
				}
			}
		}
	}
	a.asked = mostQuestions
	return a.everHolds(true)
}

// everFinds reports whether the question about a lift ever holds.
func (a *analyst) everFinds(lift int) bool {
	about := a.answerAbout(lift)
	a.ask(about)
	for day := range daysOfQuestions {
		if about.holdsOn(day, true) {
			return true
		}
	}
	return false
}

// Errors of questions that depend on earlier answers.
const (
	anyHolds    = "any answer holds by its price"
	anyFixed    = "any answer has p < .05"
	holdsInTime = "the answer holds by day 28"
)

// newErrorScenario counts campaigns without an effect in which any answer is significant.
func (c questioned) newErrorScenario(measure string, least, most float64) scenario {
	detail := "an analyst follows the most extreme answers"
	if c.collects {
		detail += " and filters by all values that look good"
	}
	return scenario{
		part: partQuestions, name: c.String() + ", no effect: " + detail, methodology: "frequentist", measure: measure,
		least: least, most: most, factor: .1,
		occurs: func(random *rand.Rand) bool { return c.newAnalyst(random).everHolds(measure == anyHolds) },
	}
}

// newEverythingScenario counts campaigns without an effect in which any answer to any question of up to two attributes
// holds.
func (c questioned) newEverythingScenario() scenario {
	return scenario{
		part: partQuestions, name: c.String() + ", no effect: every question of up to two attributes", methodology: "frequentist",
		measure: anyHolds, least: 0, most: metric.ErrorRate, factor: .025, // each has 10,000 answers
		occurs: func(random *rand.Rand) bool { return c.newAnalyst(random).everythingHolds() },
	}
}

// newPowerScenario counts campaigns in which the answer about a lift holds.
func (c questioned) newPowerScenario(lift int, least float64) scenario {
	of := c.lifts[lift]
	name := fmt.Sprintf("%s, %+g %% with value %d of %s", c.String(), math.Round(100*of.lift), of.value+1, questionAttributes[of.attribute].name)
	if c.declared {
		name += ", declared as one of five questions"
	}
	return scenario{
		part: partQuestions, name: name, methodology: "frequentist", measure: holdsInTime,
		least: least, most: 1, factor: .1,
		occurs: func(random *rand.Rand) bool { return c.newAnalyst(random).everFinds(lift) },
	}
}

// questionScenarios are of questions without looks.
func questionScenarios() []scenario {
	even := questioned{visitors: 60_000, share: .5, spread: 1.2}
	uneven := questioned{visitors: 60_000, share: .1, spread: 2}
	var all []scenario
	for _, c := range []questioned{even, uneven} {
		for _, collects := range []bool{false, true} {
			c.collects = collects
			all = append(all, c.newErrorScenario(anyHolds, 0, metric.ErrorRate))
		}
		all = append(all, c.newEverythingScenario())
	}
	all = append(all, even.newErrorScenario(anyFixed, .9, 1))
	const device, country, city = 0, 1, 6
	for _, of := range []struct {
		visitors int
		lift     segmentLift
		declared bool
		least    float64
	}{
		{60_000, segmentLift{device, 0, .15}, false, .1},
		{60_000, segmentLift{device, 0, .15}, true, .19},
		{200_000, segmentLift{device, 0, .15}, false, .8},
		{60_000, segmentLift{country, 2, .4}, false, .03},
		{60_000, segmentLift{country, 2, .4}, true, .2},
		{60_000, segmentLift{city, 2, .8}, true, .8},
	} {
		c := even
		c.visitors = of.visitors
		c.lifts = []segmentLift{of.lift}
		c.declared = of.declared
		all = append(all, c.newPowerScenario(0, of.least))
	}
	return all
}
