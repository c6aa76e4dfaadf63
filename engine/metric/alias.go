package metric

// Alias is a name of a metric of a goal, or of all goals.
type Alias struct {
	Name  string
	Words string // as people read it, for all goals
	build func([]Goal) Metric
}

// Aliases are the metrics with a name, in the order in which lists show them.
var Aliases = []Alias{
	{"goalConversionRate", "Goal conversion rate", func(g []Goal) Metric { return plainOf(Converted, "", g) }},
	{"conversionRate", "Conversion rate", func([]Goal) Metric { return rateOf("conversion") }},
	{"completionRate", "Completion rate", func([]Goal) Metric { return rateOf("completion") }},
	{"goalsPerVisitor", "Goals per visitor", func(g []Goal) Metric { return plainOf(Count, "", g) }},
	{"valuePerVisitor", "Value per visitor", func(g []Goal) Metric { return plainOf(Sum, "value", g) }},
	{"profitPerVisitor", "Profit per visitor", func(g []Goal) Metric { return plainOf(Sum, "profit", g) }},
	{"extraValuePerVisitor", "Extra value per visitor", func(g []Goal) Metric { return plainOf(Sum, "extraValue", g) }},
	{"averageValue", "Average value", func(g []Goal) Metric {
		m := plainOf(Sum, "value", g)
		goals := plainOf(Count, "", g)
		m.Denominator = &goals.Numerator
		return m
	}},
}

func rateOf(action Action) Metric { return plainOf(Converted, "", []Goal{{Action: action}}) }

func plainOf(call Call, amount string, goals []Goal) Metric {
	q := Quantity{Call: call, Steps: []Events{{Goals: goals}}}
	if call == Converted {
		q.AtLeast = 1
	}
	if amount != "" {
		q.Field = Field{OfEvent, amount, true}
	}
	return Metric{Numerator: q}
}

// NewAlias returns the metric with a name, of a goal; nil: of all goals.
func NewAlias(name string, goal *Goal) (m *Metric, known bool) {
	var goals []Goal
	if goal != nil {
		goals = []Goal{*goal}
	}
	for _, alias := range Aliases {
		if alias.Name == name {
			built := alias.build(goals)
			return &built, true
		}
	}
	return nil, false
}

// IsAlias reports whether a metric has this name.
func IsAlias(name string) bool {
	_, known := NewAlias(name, nil)
	return known
}

// FindAlias returns the alias of a metric, and its goal; nil: all goals, or an action. alias is nil if a metric has no
// name of its own, as one with a range of ages.
func (m *Metric) FindAlias() (alias *Alias, goal *Goal) {
	goals := m.Numerator.Steps[0].Goals
	if len(goals) > 1 {
		return nil, nil
	}
	if m.Numerator.Steps[0].areActions() {
		goals = nil
	}
	if len(goals) == 1 {
		goal = &goals[0]
	}
	text := m.String()
	for i := range Aliases {
		built := Aliases[i].build(goals)
		if built.String() == text {
			return &Aliases[i], goal
		}
	}
	return nil, nil
}
