package story

import (
	"lifthouse/engine/metric"
	"lifthouse/schema"
)

// CountedEvents returns the events of a chapter that count, as a metric reads them; none: the visitor does not count.
func (c *Chapter) CountedEvents() (events []metric.Event) {
	if !c.Counts || c.First == nil {
		return nil
	}
	for _, l := range c.Lines {
		if !l.Counts {
			continue
		}
		e := metric.Event{Age: l.folded.At - c.First.folded.At}
		if l.Kind == schema.KindGoal {
			l.addGoal(&e)
		} else {
			e.Action = metric.Action(l.Kind)
		}
		events = append(events, e)
	}
	return events
}

// addGoal adds what a goal says, with its amounts in the currency of the website.
func (l *Line) addGoal(e *metric.Event) {
	worth := l.folded.Worth()
	e.Goal = l.GoalID
	e.Texts = l.Properties
	e.Numbers = l.Numbers
	e.Value = worth.Amounts[0]
	e.Profit = worth.Amounts[1]
	e.ExtraValue = worth.Amounts[2]
	for _, item := range worth.Items {
		e.Lines = append(e.Lines, metric.Line{
			Product: item.Product, Variant: item.Variant, Category: item.Category, Brand: item.Brand,
			Quantity: item.Quantity, Revenue: item.Revenue, Profit: item.Profit,
		})
	}
}
