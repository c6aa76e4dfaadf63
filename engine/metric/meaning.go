package metric

import (
	"cmp"
	"slices"
	"strings"
)

// Event is an event of a visitor that counts.
type Event struct {
	Goal   int64  // 0: an action
	Action Action // of an action
	Age    int64  // milliseconds since the visitor's first view

	Value, Profit, ExtraValue int64 // in 1/Scale

	Texts   map[string]string // properties
	Numbers map[string]int64  // properties, in 1/Scale
	Lines   []Line
}

// Line is a line of an order. Its numbers are in 1/Scale.
type Line struct {
	Product, Variant, Category, Brand string

	Quantity, Revenue, Profit int64
}

// Of returns the quantity of a visitor with these events, in units of 1/q.Scale(). It defines what statements return.
// Limits of a visitor's total, caps, are applied to the result.
func (q *Quantity) Of(events []Event) int64 {
	if q.Call == Funnel {
		return oneIf(q.completesFunnel(events))
	}
	var matching []Event
	for i := range events {
		if q.Within.hasAge(events[i].Age) && q.Steps[0].matchesEvent(&events[i]) {
			matching = append(matching, events[i])
		}
	}
	switch q.Call {
	case Converted:
		return oneIf(len(matching) >= q.AtLeast)
	case Count:
		return int64(len(matching))
	case Distinct:
		return q.countDistinct(matching)
	default:
		return q.reduceNumbers(q.readNumbers(matching))
	}
}

// reduceNumbers returns the largest number or the total; 0 without a number.
func (q *Quantity) reduceNumbers(numbers []int64) (total int64) {
	if q.Call == Max && len(numbers) > 0 {
		return slices.Max(numbers)
	}
	for _, n := range numbers {
		total += n
	}
	return total
}

// hasAge reports whether events of an age count.
func (r Range) hasAge(milliseconds int64) bool {
	return milliseconds >= r.From.Milliseconds() && (!r.IsSet() || milliseconds < r.To.Milliseconds())
}

// matchesEvent reports whether an event is one of those that are selected. A condition of lines selects an event if one
// line satisfies all of it.
func (e *Events) matchesEvent(event *Event) bool {
	if !e.hasGoal(event) {
		return false
	}
	if e.Where == nil || !e.Where.ReadsLines() {
		return e.Where.holdsIn(event, nil)
	}
	return slices.ContainsFunc(event.Lines, func(line Line) bool { return e.Where.holdsIn(event, &line) })
}

func (e *Events) hasGoal(event *Event) bool {
	if len(e.Goals) == 0 {
		return event.Action == ""
	}
	return slices.ContainsFunc(e.Goals, func(g Goal) bool { return g.ID == event.Goal && g.Action == event.Action })
}

// readNumbers returns the numbers of a field of events, or of their lines that satisfy the condition. Missing ones are
// left out.
func (q *Quantity) readNumbers(events []Event) (numbers []int64) {
	q.eachValue(events, func(event *Event, line *Line) {
		if n, is := q.Field.readNumber(event, line); is {
			numbers = append(numbers, n)
		}
	})
	return numbers
}

// countDistinct returns the number of different texts of a field, without the empty one.
func (q *Quantity) countDistinct(events []Event) int64 {
	found := map[string]bool{}
	q.eachValue(events, func(event *Event, line *Line) {
		if text := q.Field.readText(event, line); text != "" {
			found[text] = true
		}
	})
	return int64(len(found))
}

// eachValue calls a function with each event, or with each line that satisfies the condition.
func (q *Quantity) eachValue(events []Event, use func(*Event, *Line)) {
	for i := range events {
		if q.Field.Source != OfLine {
			use(&events[i], nil)
			continue
		}
		for l := range events[i].Lines {
			if q.Steps[0].Where.holdsIn(&events[i], &events[i].Lines[l]) {
				use(&events[i], &events[i].Lines[l])
			}
		}
	}
}

// completesFunnel reports whether a visitor went through the steps of a funnel: from some event of the first step on,
// the next event of each step, later than the one before, and the last one in time.
func (q *Quantity) completesFunnel(events []Event) bool {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Age, b.Age) })
	for i := range events {
		if !q.Steps[0].matchesEvent(&events[i]) {
			continue
		}
		start := events[i].Age
		last := start
		step := 1
		for k := i + 1; k < len(events) && step < len(q.Steps); k++ {
			if events[k].Age > last && q.Steps[step].matchesEvent(&events[k]) {
				last = events[k].Age
				step++
			}
		}
		isInTime := !q.Within.IsSet() || last-start <= q.Within.To.Milliseconds()
		if step == len(q.Steps) && isInTime {
			return true
		}
	}
	return false
}

// holdsIn reports whether a condition is true of an event and one of its lines; no condition is. line is nil if the
// condition reads no lines.
func (c *Condition) holdsIn(event *Event, line *Line) bool {
	if c == nil {
		return true
	}
	return c.evaluateWith(func(comparison *Condition) bool {
		if comparison.Field.Number {
			n, is := comparison.Field.readNumber(event, line)
			return is && comparison.comparesNumber(n)
		}
		return comparison.comparesText(comparison.Field.readText(event, line))
	})
}

// HoldsFor reports whether a condition of visitors is true of the attributes of a first view. A missing one is empty.
func (c *Condition) HoldsFor(attributes map[string]string) bool {
	if c == nil {
		return true
	}
	return c.evaluateWith(func(comparison *Condition) bool {
		return comparison.comparesText(attributes[comparison.Field.Name])
	})
}

// evaluateWith returns the truth of a condition, given that of its comparisons.
func (c *Condition) evaluateWith(compare func(*Condition) bool) bool {
	isTrue := func(part *Condition) bool { return part.evaluateWith(compare) }
	isFalse := func(part *Condition) bool { return !isTrue(part) }
	switch c.Operator {
	case And:
		return !slices.ContainsFunc(c.Parts, isFalse)
	case Or:
		return slices.ContainsFunc(c.Parts, isTrue)
	case Not:
		return isFalse(c.Parts[0])
	default:
		return compare(c)
	}
}

func (c *Condition) comparesNumber(n int64) bool {
	first := c.Numbers[0]
	switch c.Operator {
	case Less:
		return n < first
	case LessEqual:
		return n <= first
	case Greater:
		return n > first
	case GreaterEqual:
		return n >= first
	case Unequal:
		return n != first
	default: // Equal, In
		return slices.Contains(c.Numbers, n)
	}
}

func (c *Condition) comparesText(text string) bool {
	switch c.Operator {
	case Unequal:
		return text != c.Texts[0]
	case Like:
		return matchesPattern(text, c.Texts[0])
	default: // Equal, In
		return slices.Contains(c.Texts, text)
	}
}

// matchesPattern reports whether a text matches a pattern, in which * is any text.
func matchesPattern(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return text == pattern
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}

// readNumber returns a number of an event or a line, and whether there is one.
func (f Field) readNumber(event *Event, line *Line) (n int64, is bool) {
	switch f.Name {
	case "value":
		return event.Value, true
	case "profit":
		return event.Profit, true
	case "extraValue":
		return event.ExtraValue, true
	case "items.quantity":
		return line.Quantity, true
	case "items.revenue":
		return line.Revenue, true
	case "items.profit":
		return line.Profit, true
	default:
		n, is = event.Numbers[f.Name]
		return n, is
	}
}

// readText returns a text of an event or a line; a missing one is empty.
func (f Field) readText(event *Event, line *Line) string {
	switch f.Name {
	case "items.product":
		return line.Product
	case "items.variant":
		return line.Variant
	case "items.category":
		return line.Category
	case "items.brand":
		return line.Brand
	default:
		return event.Texts[f.Name]
	}
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
