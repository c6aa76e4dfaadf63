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

// addGoal adds what a goal says. Amounts in another currency than the website's are in no sum.
func (l *Line) addGoal(e *metric.Event) {
	isKnown := l.folded.Event.Foreign == ""
	e.Goal = l.GoalID
	e.Texts = l.Properties
	e.Numbers = l.Numbers
	if isKnown {
		e.Value = l.Value
		e.Profit = l.Profit
		e.ExtraValue = l.ExtraValue
	}
	for _, item := range l.Items {
		line := metric.Line{
			Product: item.Product, Variant: item.Variant, Category: item.Category, Brand: item.Brand,
			Quantity: item.Quantity,
		}
		if isKnown {
			line.Revenue = item.Revenue
			line.Profit = item.Profit
		}
		e.Lines = append(e.Lines, line)
	}
}
