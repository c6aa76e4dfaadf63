package metric

import (
	"fmt"
	"strings"
	"time"
)

// fieldNames has the names of fields as people read them, where they differ from the field.
var fieldNames = map[string]string{
	"extraValue":     "extra value",
	"items.quantity": "quantity", "items.revenue": "revenue", "items.profit": "line profit",
	"items.product": "product", "items.variant": "variant", "items.category": "category", "items.brand": "brand",
	"os": "OS", "visitorType": "visitor type", "firstVisitPage": "first page", "utmSource": "UTM source",
	"utmMedium": "UTM medium", "utmCampaign": "UTM campaign", "utmContent": "UTM content", "utmTerm": "UTM term",
}

func (f Field) fieldWords() string {
	if words, is := fieldNames[f.Name]; is && f.Source != OfProperty {
		return words
	}
	return f.Name
}

// plurals has the fields of lines of which visitors have several.
var plurals = map[string]string{
	"items.product": "products", "items.variant": "variants", "items.category": "categories", "items.brand": "brands",
}

// ShortName returns a name of a metric in plain English, such as "Shoes revenue per visitor". It leaves out the goal of
// numbers of lines. See FullText.
func (m *Metric) ShortName() string {
	if alias, goal := m.FindAlias(); alias != nil && goal == nil {
		return alias.Words
	}
	of := &m.Numerator
	if m.Denominator == nil {
		return capitalize(of.quantityWords(" per visitor"))
	}
	by := m.Denominator
	if m.IsNested() {
		return capitalize(of.quantityWords("") + " of visitors with " + by.visitorWords())
	}
	if _, goal := m.FindAlias(); goal != nil {
		return "Average " + goal.goalName() + " value"
	}
	return capitalize(of.quantityWords("") + " per " + by.unitWords())
}

// words returns what a quantity is. A number of each visitor has a suffix.
func (q *Quantity) quantityWords(perVisitor string) string {
	first := &q.Steps[0]
	label, where := first.conditionWords()
	goals := label + first.goalWords()
	text := ""
	switch q.Call {
	case Converted:
		text = goals + " conversion rate"
		if q.AtLeast > 1 {
			text = fmt.Sprintf("share with at least %d %s", q.AtLeast, goals)
		}
	case Funnel:
		text = "funnel " + q.funnelWords()
		where = ""
	case Count:
		text = goals + " count" + perVisitor
	case Sum:
		text = q.numberWords(label) + perVisitor
	case Max:
		text = "largest " + q.numberWords(label) + perVisitor
	case Distinct:
		text = "distinct " + label + first.goalWords() + " " + q.Field.fieldWords() + " values" + perVisitor
		if several, is := plurals[q.Field.Name]; is {
			text = "distinct " + label + several + perVisitor
		}
	}
	return text + where + q.Within.rangeWords()
}

// numberWords returns what sum and max read.
func (q *Quantity) numberWords(label string) string {
	if q.Field.Source == OfLine {
		return label + q.Field.fieldWords()
	}
	return label + q.Steps[0].goalWords() + " " + q.Field.fieldWords()
}

// unitWords returns what a ratio divides by.
func (q *Quantity) unitWords() string {
	label, where := q.Steps[0].conditionWords()
	switch q.Call {
	case Count:
		return label + q.Steps[0].goalWords() + where + q.Within.rangeWords()
	case Converted, Funnel:
		return "visitor with " + q.visitorWords()
	default:
		return q.quantityWords("")
	}
}

// visitorWords returns what the visitors of a rate have.
func (q *Quantity) visitorWords() string {
	if q.Call == Funnel {
		return q.funnelWords() + q.Within.rangeWords()
	}
	label, where := q.Steps[0].conditionWords()
	text := label + q.Steps[0].goalWords() + where + q.Within.rangeWords()
	if q.AtLeast > 1 {
		return fmt.Sprintf("at least %d %s", q.AtLeast, text)
	}
	return text
}

func (q *Quantity) funnelWords() string {
	steps := make([]string, len(q.Steps))
	for i := range q.Steps {
		label, where := q.Steps[i].conditionWords()
		steps[i] = label + q.Steps[i].goalWords() + where
	}
	return strings.Join(steps, " → ")
}

// conditionWords returns a condition as a word before its events, if it is that a text is equal to a value, or else as
// a clause after them.
func (e *Events) conditionWords() (before, after string) {
	switch {
	case e.Where == nil:
		return "", ""
	case e.Where.Operator == Equal && !e.Where.Field.Number && e.Where.Texts[0] != "":
		return e.Where.Texts[0] + " ", ""
	default:
		return "", " where " + e.Where.InWords()
	}
}

func (e *Events) goalWords() string {
	if len(e.Goals) == 0 {
		return "goal"
	}
	texts := make([]string, len(e.Goals))
	for i, g := range e.Goals {
		texts[i] = g.goalName()
	}
	return strings.Join(texts, " or ")
}

func (g Goal) goalName() string {
	switch {
	case g.Action != "":
		return string(g.Action)
	case g.Key == "":
		return fmt.Sprintf("goal %d", g.ID)
	default:
		return g.Key
	}
}

func (r Range) rangeWords() string {
	switch {
	case !r.IsSet():
		return ""
	case r.From > 0:
		return " from " + timeWords(r.From) + " to " + timeWords(r.To)
	default:
		return " within " + timeWords(r.To)
	}
}

func timeWords(d time.Duration) string {
	const day = 24 * time.Hour
	n := int(d / time.Hour)
	unit := "hour"
	if d%day == 0 {
		n = int(d / day)
		unit = "day"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprint(n, " ", unit)
}

// FullText returns a sentence that says all of a metric, for a tooltip or a footnote.
func (m *Metric) FullText() string {
	text := m.Numerator.describeQuantity()
	if m.Denominator == nil {
		return capitalize(text) + ", per visitor."
	}
	return capitalize(text) + ", divided by " + m.Denominator.describeQuantity() + "."
}

func (q *Quantity) describeQuantity() string {
	first := &q.Steps[0]
	events := first.describeEvents()
	field := q.Field.fieldWords()
	if q.Field.Source == OfLine {
		events = "the lines of " + events
	}
	text := map[Call]string{
		Converted: "visitors with " + events, Count: "number of " + events, Sum: "total " + field + " of " + events,
		Max: "largest " + field + " of " + events, Distinct: "number of different values of " + field + " of " + events,
	}[q.Call]
	if q.Call == Converted && q.AtLeast > 1 {
		text = fmt.Sprintf("visitors with at least %d %s", q.AtLeast, events)
	}
	if q.Call != Funnel {
		return text + q.Within.rangeWords()
	}
	steps := make([]string, len(q.Steps))
	for i := range q.Steps {
		steps[i] = q.Steps[i].describeEvents()
	}
	text = "visitors with " + strings.Join(steps, ", then ")
	if q.Within.IsSet() {
		text += ", all within " + timeWords(q.Within.To)
	}
	return text
}

func (e *Events) describeEvents() string {
	text := e.goalWords() + " events"
	if e.areActions() {
		text = e.goalWords() + "s"
	}
	if e.Where != nil {
		text += " where " + e.Where.InWords()
	}
	return text
}

// InWords returns a condition in plain English, such as "device is mobile and country is DE or AT".
func (c *Condition) InWords() string {
	switch c.Operator {
	case And, Or:
		parts := make([]string, len(c.Parts))
		for i, part := range c.Parts {
			parts[i] = part.InWords()
			if part.Operator == And || part.Operator == Or {
				parts[i] = "(" + parts[i] + ")"
			}
		}
		return strings.Join(parts, " "+string(c.Operator)+" ")
	case Not:
		part := c.Parts[0]
		if part.Operator == In || part.Operator == Like {
			return part.describeComparison(true)
		}
		return "not (" + part.InWords() + ")"
	default:
		return c.describeComparison(false)
	}
}

func (c *Condition) describeComparison(negated bool) string {
	values := c.valueWords()
	list := strings.Join(values, ", ")
	if last := len(values) - 1; last > 0 {
		list = strings.Join(values[:last], ", ") + " or " + values[last]
	}
	verb := map[Operator]string{
		Equal: "is", Unequal: "is not", In: "is", Like: "matches", Less: "is below", LessEqual: "is at most",
		Greater: "is above", GreaterEqual: "is at least",
	}[c.Operator]
	switch {
	case negated && c.Operator == Like:
		verb = "does not match"
	case negated:
		verb = "is not"
	}
	return c.Field.fieldWords() + " " + verb + " " + list
}

func (c *Condition) valueWords() (values []string) {
	for _, n := range c.Numbers {
		values = append(values, FormatNumber(n))
	}
	for _, text := range c.Texts {
		if text == "" {
			text = "empty"
		}
		values = append(values, text)
	}
	return values
}

// capitalize returns a text that begins with a capital, unless its first word has its own.
func capitalize(text string) string {
	word, _, _ := strings.Cut(text, " ")
	isOther := func(r rune) bool { return r < 'a' || r > 'z' }
	if word == "" || strings.ContainsFunc(word, isOther) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
