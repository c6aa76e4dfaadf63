package calibration

// The audiences of the table of decisions, with the minimum effects of their
// campaigns. The method with adds the shares of the traffic.
var (
	rare     = campaign{audience: audience{buyers: 0.01}, mde: 0.2}
	usual    = campaign{audience: audience{buyers: 0.05}, mde: 0.1}
	frequent = campaign{audience: audience{buyers: 0.2}, mde: 0.05}
	revenue  = campaign{audience: audience{buyers: 0.02, revenue: true}, mde: 0.5}
)

// with returns the campaign with the given shares of the traffic, control first.
func (c campaign) with(shares ...float64) *campaign {
	c.shares = shares
	return &c
}

// asBayesian returns the campaign with the Bayesian methodology and its default
// prior.
func (c campaign) asBayesian() *campaign {
	c.bayesian = true
	return &c
}

// plannedFromData returns the campaign without a declared planned sample.
func (c campaign) plannedFromData() *campaign {
	c.dataPlan = true
	return &c
}

// plannedAt returns the campaign with a declared planned sample.
func (c campaign) plannedAt(visitors int64) *campaign {
	c.planned = visitors
	return &c
}

// decisionScenarios returns all scenarios in the order of the table.
func decisionScenarios() []scenario {
	var all []scenario
	for _, c := range anyLookCampaigns() {
		all = append(all, c.anyLookError())
	}
	for _, c := range []*campaign{
		usual.with(50, 50),
		usual.with(75, 25),
		usual.with(25, 25, 25, 25),
		usual.with(50, 50).asBayesian(),
		rare.with(95, 5),
		revenue.with(50, 50),
	} {
		all = append(all, c.breakdownError())
	}
	all = append(all, usual.with(25, 25, 25, 25).breakdownError(1))
	all = append(all, powerScenarios()...)
	for _, shares := range [][]float64{{50, 50}, {70, 30}, {75, 25}, {90, 10}, {95, 5}, {25, 75}, {5, 95}} {
		all = append(all, revenue.with(shares...).unevenSplit(100_000))
	}
	for _, figure := range cappedFigures {
		all = append(all, revenue.with(95, 5).capped(100_000, figure))
	}
	all = append(all, revenue.with(50, 50).capped(100_000, cappedFigure{percentile: 99}))
	for _, c := range []campaign{rare, usual, frequent, revenue} {
		all = append(all, c.with(50, 50).asBayesian().statedChance())
	}
	return append(all, guardrailScenarios()...)
}

func anyLookCampaigns() []*campaign {
	const small = 100_000 // visitors: too few for the minimum effect, and hard for skewed means
	return []*campaign{
		rare.with(50, 50),
		usual.with(50, 50),
		frequent.with(50, 50),
		usual.with(75, 25),
		rare.with(95, 5),
		usual.with(95, 5),
		frequent.with(95, 5),
		usual.with(25, 25, 25, 25),
		usual.with(70, 10, 10, 10),

		rare.with(50, 50).plannedFromData(),
		usual.with(50, 50).plannedFromData(),
		frequent.with(50, 50).plannedFromData(),
		usual.with(95, 5).plannedFromData(),
		usual.with(25, 25, 25, 25).plannedFromData(),

		rare.with(50, 50).asBayesian(),
		usual.with(50, 50).asBayesian(),
		frequent.with(50, 50).asBayesian(),
		usual.with(95, 5).asBayesian(),
		usual.with(25, 25, 25, 25).asBayesian(),
		usual.with(50, 50).asBayesian().plannedFromData(),

		revenue.with(50, 50),
		revenue.with(75, 25),
		revenue.with(95, 5),
		revenue.with(25, 25, 25, 25),
		revenue.with(70, 10, 10, 10),
		revenue.with(50, 50).plannedAt(small),
		revenue.with(95, 5).plannedAt(small),
		revenue.with(50, 50).asBayesian(),
		revenue.with(95, 5).asBayesian(),
		revenue.with(25, 25, 25, 25).asBayesian(),
	}
}

func powerScenarios() []scenario {
	var all []scenario
	for _, c := range []*campaign{
		rare.with(50, 50),
		usual.with(50, 50),
		frequent.with(50, 50),
		usual.with(75, 25),
		usual.with(95, 5),
		usual.with(25, 25, 25, 25),
		rare.with(50, 50).plannedFromData(),
		usual.with(50, 50).plannedFromData(),
		frequent.with(50, 50).plannedFromData(),
		usual.with(50, 50).asBayesian(),
		frequent.with(50, 50).asBayesian(),
		revenue.with(50, 50),
	} {
		all = append(all, c.power())
	}
	for _, c := range []campaign{rare, usual, frequent} {
		all = append(all, c.with(50, 50).alwaysValidPower())
	}
	return all
}
