package metric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String returns the canonical text.
func (m *Metric) String() string {
	if m.Denominator != nil {
		return m.Numerator.String() + " / " + m.Denominator.String()
	}
	return m.Numerator.String()
}

// String returns the canonical text.
func (q *Quantity) String() string {
	steps := make([]string, len(q.Steps))
	for i := range q.Steps {
		steps[i] = q.Steps[i].formatWith(q.Field)
	}
	text := strings.Join(steps, ", ")
	if q.AtLeast > 1 {
		text += " at least " + strconv.Itoa(q.AtLeast)
	}
	text = string(q.Call) + "(" + text + ")"
	if q.Within.IsSet() {
		text += " within " + q.Within.String()
	}
	return text
}

// formatWith returns the text of events and of the field that is read of them, if any.
func (e *Events) formatWith(field Field) string {
	text := e.formatGoals()
	if field.Name != "" {
		text += "." + field.Name
	}
	if e.Where != nil {
		text += " where " + e.Where.String()
	}
	return text
}

func (e *Events) formatGoals() string {
	if len(e.Goals) == 0 {
		return "any"
	}
	goals := make([]string, len(e.Goals))
	for i, g := range e.Goals {
		goals[i] = g.String()
	}
	return strings.Join(goals, "|")
}

// String returns the goal as it is written: a key, quoted if necessary, an id or an action.
func (g Goal) String() string {
	switch {
	case g.Action != "":
		return "@" + string(g.Action)
	case g.Key == "":
		return "#" + strconv.FormatInt(g.ID, 10)
	}
	isWord := strings.IndexFunc(g.Key, func(r rune) bool { return !isWordRune(r) }) < 0
	if isWord && !isInteger(g.Key) && !slices.Contains(keywords, g.Key) {
		return g.Key
	}
	return quoteText(g.Key)
}

// String returns the range as it is written: 7d, 36h or 7d..14d.
func (r Range) String() string {
	if r.From > 0 {
		return formatTime(r.From) + ".." + formatTime(r.To)
	}
	return formatTime(r.To)
}

func formatTime(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h"
}

// String returns the canonical text.
func (c *Condition) String() string { return c.formatWithin("") }

// formatWithin returns the text of a part of a condition with an operator.
func (c *Condition) formatWithin(outer Operator) string {
	switch c.Operator {
	case And, Or:
		parts := make([]string, len(c.Parts))
		for i, part := range c.Parts {
			parts[i] = part.formatWithin(c.Operator)
		}
		text := strings.Join(parts, " "+string(c.Operator)+" ")
		if outer == Not || outer == And && c.Operator == Or {
			return "(" + text + ")"
		}
		return text
	case Not:
		negated := c.Parts[0]
		if negated.Operator == In || negated.Operator == Like {
			return negated.Field.Name + " not " + negated.formatComparison()
		}
		return "not " + negated.formatWithin(Not)
	default:
		return c.Field.Name + " " + c.formatComparison()
	}
}

// formatComparison returns a comparison without its field.
func (c *Condition) formatComparison() string {
	values := c.formatValues()
	if c.Operator == In {
		return "in (" + strings.Join(values, ", ") + ")"
	}
	return string(c.Operator) + " " + values[0]
}

func (c *Condition) formatValues() (values []string) {
	for _, n := range c.Numbers {
		values = append(values, FormatNumber(n))
	}
	for _, text := range c.Texts {
		values = append(values, quoteText(text))
	}
	return values
}

// FormatNumber returns a number in 1/Scale as it is written, with at most four decimals.
func FormatNumber(n int64) string {
	sign := ""
	magnitude := uint64(n) //nolint:gosec // the complement of a negative number is taken below
	if n < 0 {
		sign = "-"
		magnitude = -magnitude
	}
	text := fmt.Sprintf("%s%d.%04d", sign, magnitude/Scale, magnitude%Scale)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// quoteText returns a text in quotes.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
