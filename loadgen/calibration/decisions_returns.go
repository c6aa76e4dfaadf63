package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/stats"
)

// returns say which share of the orders of a variation is cancelled, and after how many days.
type returns struct {
	share      float64
	days       int
	isSpread   bool // the days are the mean of an exponential distribution; else all are the same
	isDetected bool // the program's check is used; else looks are recorded without it
}

func (r *returns) String() string {
	if r.isSpread {
		return fmt.Sprintf("%g %% after %d days on average", 100*r.share, r.days)
	}
	return fmt.Sprintf("%g %% after %d days", 100*r.share, r.days)
}

// age returns the number of days after which an order is cancelled.
func (r *returns) age(random *rand.Rand) int {
	if r.isSpread {
		return int(float64(r.days) * random.ExpFloat64())
	}
	return r.days
}

// orderLife are orders of a day and a variation that are cancelled on the same day, or never.
type orderLife struct {
	day, arm  int
	cancelled int // day; never: math.MaxInt
	orders    int64
}

// withReturns returns the campaign with orders that are cancelled.
func (c *campaign) withReturns(control, treatment returns) *campaign {
	return c.changedCopy(func(changed *campaign) { changed.returns = []returns{control, treatment} })
}

// returnsDays returns the number of days for which the looks wait after an alarm.
func (c *campaign) returnsDays() int {
	if len(c.returns) == 0 {
		return 0
	}
	return int(looks.LeastSettle / day)
}

// returnedOrders adds visitors, some of whose orders are cancelled later.
func returnedOrders(l *life, on int) {
	for arm, n := range l.arrivingVisitors(on) {
		all := l.drawTotals(l.random, n, l.liftOf(arm))
		of := &l.returns[arm]
		l.addTotals(goalID, arm, on, on, all, false)
		gone := map[int]int64{} // by day
		left := all.converted
		for range drawBinomial(l.random, all.converted, of.share) {
			gone[on+of.age(l.random)]++
			left--
		}
		for day := on; len(gone) > 0; day++ { // in order, so that equal seeds give equal campaigns
			if n := gone[day]; n > 0 {
				l.addTotals(goalID, arm, on, day, totals{converted: -n}, false)
				l.orders = append(l.orders, orderLife{on, arm, day, n})
				delete(gone, day)
			}
		}
		l.orders = append(l.orders, orderLife{on, arm, math.MaxInt, left})
	}
}

// recordUntilSettled adds the visitors of the looks day by day, and records the looks that are mature, until the orders
// of the last one have settled.
func (l *life) recordUntilSettled(of nature) {
	for l.days <= daysOfWeek*l.weeks {
		l.addDays(of, l.days)
		l.recordLooks(startOfDay(l.days))
	}
	for d := l.days + 1; d <= l.days+1+l.settleDays+l.returnsDays(); d++ {
		l.recordLooks(startOfDay(d))
	}
}

// recordReturns records returns that differ as the server does before it records a look. Of the website, no other
// orders are known.
func (l *life) recordReturns(now time.Time) {
	if len(l.returns) == 0 || !l.returns[0].isDetected {
		return
	}
	declared := l.plan.DeclaredPlan()
	s := l.newSchedule(now)
	for _, due := range s.DueReturns(declared, l.recorded) {
		lifetimes := l.lifetimes(dayOf(due.From), dayOf(due.Look.End), dayOf(now))
		found := looks.CompareReturns(due.Look, due.Plan, [][]stats.Lifetime{lifetimes})
		if found == nil {
			continue
		}
		found.SettleAfter(0)
		r := looks.NewReturnsRecord(declared, due.Plan, s, due.Look, found)
		r.RecordedAt = now
		l.recorded = append(l.recorded, r)
	}
}

// lifetimes returns how long the orders of some days stayed as they were, as known at the start of a day, by age.
func (l *life) lifetimes(from, to, today int) (all []stats.Lifetime) {
	counts := make([]map[stats.Lifetime]int64, today) // by age in days
	for _, o := range l.orders {
		if o.day < from || o.day >= to {
			continue
		}
		of := stats.Lifetime{Treated: o.arm == 1, Age: float64(today - 1 - o.day), Amount: 1}
		if o.cancelled < today {
			of.Age = float64(o.cancelled - o.day)
			of.Removed = 1
		}
		if counts[int(of.Age)] == nil {
			counts[int(of.Age)] = map[stats.Lifetime]int64{}
		}
		counts[int(of.Age)][of] += o.orders
	}
	for _, of := range counts {
		for lifetime, n := range of {
			for range n {
				all = append(all, lifetime)
			}
		}
	}
	return all
}

// hasReturns reports whether the looks of the campaign were found to need settled orders.
func (l *life) hasReturns() bool {
	for _, r := range l.recorded {
		if r.Kind == looks.OfReturns {
			return true
		}
	}
	return false
}

// returnsScenarios are of orders that are cancelled at the same final rate at other times, without a difference, and at
// half the rate.
func returnsScenarios() []scenario {
	var all []scenario
	add := func(c *campaign, detail, measure string, least, most float64, occurs func(*life) bool) {
		detail = fmt.Sprintf("%s; %s%s", &c.returns[0], &c.returns[1], detail)
		of := c.newScenario(partReturns, detail, measure, least, most, func(l *life) bool {
			l.recordUntilSettled(returnedOrders)
			return occurs(l)
		})
		of.factor = 0.5 // the sums of many looks are drawn order by order
		all = append(all, of)
	}
	with := func(visitors int64, control, treatment returns) *campaign {
		c := usual.withShares(50, 50).withDailyVisitors(visitors).withReturns(control, treatment)
		c.weeks = weeksToPlan
		return c
	}
	for _, of := range []struct {
		visitors  int64
		share     float64
		days      [2]int
		unchecked float64 // least rate without the check
	}{
		{3000, 0.3, [2]int{7, 14}, 0.8},
		{600, 0.3, [2]int{7, 14}, 0.2},
		{3000, 0.1, [2]int{3, 8}, 0.08},
		{600, 0.1, [2]int{3, 8}, 0.04},
	} {
		control, treatment := returns{share: of.share, days: of.days[0]}, returns{share: of.share, days: of.days[1]}
		add(with(of.visitors, control, treatment), ", without the check", winnerOrLoser, of.unchecked, 1, hasOutcome)
		control.isDetected = true
		add(with(of.visitors, control, treatment), "", winnerOrLoser, 0, decisionAlpha, hasOutcome)
		if of.visitors == 600 {
			add(with(of.visitors, control, treatment).withFewerLooks(), "", winnerOrLoser, 0, decisionAlpha, hasOutcome)
		}
	}
	settled := with(3000, returns{share: 0.3, days: 7}, returns{share: 0.3, days: 14})
	settled.settleDays = 14
	add(settled, ", settle 14d, without the check", winnerOrLoser, 0, decisionAlpha, hasOutcome)

	// Without a difference, there are as many alarms as the check may have, and the same decisions.
	for _, visitors := range []int64{600, 3000} {
		same := returns{share: 0.3, days: 10, isSpread: true, isDetected: true}
		c := with(visitors, same, same)
		if visitors == 600 {
			c = c.withFewerLooks()
		}
		add(c, "", "alarm", 0, 0.002, (*life).hasReturns)
		add(c, "", winnerOrLoser, 0, decisionAlpha, hasOutcome)
	}
	for _, isDetected := range []bool{false, true} {
		same := returns{share: 0.3, days: 10, isSpread: true, isDetected: isDetected}
		name := ", without the check"
		if isDetected {
			name = ""
		}
		better := with(1300, same, same).changedCopy(func(changed *campaign) { changed.lifts = []float64{0, changed.mde} })
		add(better, ", 10 % more orders"+name, "winner", 0.4, 1, hasWinner)
	}

	// A treatment whose orders come back half as often is found, later.
	half := with(3000, returns{share: 0.3, days: 7, isDetected: true}, returns{share: 0.15, days: 7})
	add(half, "", "winner", 0.9, 1, hasWinner)
	add(half, "", "alarm", 0.9, 1, (*life).hasReturns)
	return all
}

func hasWinner(l *life) bool {
	found := l.inTheEnd().Outcome
	return found != nil && found.Winner
}
