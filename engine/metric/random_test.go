package metric

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lifthouse/schema/schematest/check"
)

// drawField draws a field of events.
func drawField(t *rapid.T) Field {
	all := append(NumberFields(), textFields...)
	for _, p := range shop.Properties {
		if p.Text {
			all = append(all, Field{OfProperty, p.Name, false})
		}
		if p.Number {
			all = append(all, Field{OfProperty, p.Name, true})
		}
	}
	return rapid.SampledFrom(all).Draw(t, "field")
}

func drawVisitorField(t *rapid.T) Field {
	return Field{OfAttribute, rapid.SampledFrom(shop.listAttributes()).Draw(t, "attribute"), false}
}

// drawComparison draws a comparison in canonical form.
func drawComparison(t *rapid.T, field func(*rapid.T) Field) *Condition {
	c := &Condition{Field: field(t)}
	texts := rapid.SampledFrom([]string{"", "A", "b's", "ß\"*", "1", "*x*", "a\nb"})
	if c.Field.Number {
		all := []Operator{Equal, Unequal, Less, LessEqual, Greater, GreaterEqual, In}
		c.Operator = rapid.SampledFrom(all).Draw(t, "operator")
		c.Numbers = rapid.SliceOfN(rapid.Int64Range(-30000, 30000), 1, 3).Draw(t, "numbers")
		if c.Operator != In {
			c.Numbers = c.Numbers[:1]
		}
	} else {
		c.Operator = rapid.SampledFrom([]Operator{Equal, Unequal, In, Like}).Draw(t, "operator")
		c.Texts = rapid.SliceOfN(texts, 1, 3).Draw(t, "texts")
		if c.Operator != In {
			c.Texts = c.Texts[:1]
		}
	}
	c.simplifyValues()
	return c
}

// drawCondition draws a condition in canonical form.
func drawCondition(t *rapid.T, depth int, field func(*rapid.T) Field) *Condition {
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if depth == 0 || kind > 2 {
		return drawComparison(t, field)
	}
	if kind == 2 {
		return negateCondition(drawCondition(t, depth-1, field))
	}
	var parts []*Condition
	for range rapid.IntRange(2, 3).Draw(t, "parts") {
		parts = append(parts, drawCondition(t, depth-1, field))
	}
	return combineParts([]Operator{And, Or}[kind], parts)
}

func drawEvents(t *rapid.T, goals []Goal) (e Events) {
	e.Goals = goals
	if rapid.Bool().Draw(t, "where") {
		e.Where = drawCondition(t, 2, drawField)
	}
	return e
}

func drawQuantity(t *rapid.T) (q Quantity) {
	q.Call = rapid.SampledFrom(Calls).Draw(t, "call")
	goals := rapid.Permutation(shop.Goals).Draw(t, "goals")
	ranges := []Range{{}, {}, {0, time.Hour}, {0, 72 * time.Hour}, {time.Hour, 49 * time.Hour}}
	q.Within = rapid.SampledFrom(ranges).Draw(t, "within")
	if q.Call == Funnel {
		q.Within.From = 0
		for _, g := range goals[:rapid.IntRange(2, 4).Draw(t, "steps")] {
			q.Steps = append(q.Steps, drawEvents(t, []Goal{g}))
		}
		return q
	}
	goals = goals[:rapid.IntRange(0, 2).Draw(t, "goals of the step")]
	slices.SortFunc(goals, func(a, b Goal) int { return strings.Compare(a.String(), b.String()) })
	if len(goals) == 0 {
		goals = nil
	}
	q.Steps = []Events{drawEvents(t, goals)}
	switch q.Call {
	case Converted:
		q.AtLeast = rapid.IntRange(1, 3).Draw(t, "at least")
	case Sum, Max, Distinct:
		wantsNumber := q.Call != Distinct
		q.Field = rapid.Custom(drawField).Filter(func(f Field) bool { return f.Number == wantsNumber }).Draw(t, "of")
	default: // nothing else
	}
	return q
}

func drawMetric(t *rapid.T) *Metric {
	m := &Metric{Numerator: drawQuantity(t)}
	if rapid.IntRange(0, 2).Draw(t, "ratio") == 0 {
		q := drawQuantity(t)
		m.Denominator = &q
	}
	return m
}

// TestTextsParseToTheirTree draws trees in canonical form, writes and reads them.
func TestTextsParseToTheirTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMetric(t)
		text := m.String()
		if len([]rune(text)) > MaxCharacters {
			t.Skip("too long")
		}
		again, err := Parse(text, shop)
		if check.OK(t, err, "%s", text) {
			check.That(t, reflect.DeepEqual(m, again), "%s\n%#v\n%#v", text, m, again)
		}
		c := drawCondition(t, 3, drawVisitorField)
		visitors, err := ParseVisitors(c.String(), shop)
		if check.OK(t, err, "%s", c) {
			check.That(t, reflect.DeepEqual(c, visitors), "%s\n%#v\n%#v", c, c, visitors)
		}
	})
}

// TestCanonicalFormHasTheSameMeaning compares negations, lists and parentheses as written with what the parser makes of
// them, on random events.
func TestCanonicalFormHasTheSameMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t, 2, drawField)
		event := drawEvent(t)
		lines := append([]Line{{}}, event.Lines...)
		for i := range lines {
			is := c.holdsIn(&event, &lines[i])
			check.Equal(t, negateCondition(c).holdsIn(&event, &lines[i]), !is, "not (%s)", c)
			other := drawCondition(t, 1, drawField)
			also := other.holdsIn(&event, &lines[i])
			both := combineParts(And, []*Condition{c, other})
			check.Equal(t, both.holdsIn(&event, &lines[i]), is && also, "%s and %s", c, other)
			either := combineParts(Or, []*Condition{other, c})
			check.Equal(t, either.holdsIn(&event, &lines[i]), is || also, "%s or %s", c, other)
		}
	})
}

func drawEvent(t *rapid.T) Event {
	amounts := rapid.SampledFrom([]int64{-20000, 0, 5000, 10000, 30000})
	texts := rapid.SampledFrom([]string{"", "A", "b's", "1", "axb"})
	e := Event{
		Goal: rapid.SampledFrom([]int64{2, 3, 4, 17}).Draw(t, "goal"),
		Age:  rapid.Int64Range(0, 5).Draw(t, "age") * time.Hour.Milliseconds(),

		Value: amounts.Draw(t, "value"), Profit: amounts.Draw(t, "profit"), ExtraValue: amounts.Draw(t, "extra value"),
		Texts: map[string]string{}, Numbers: map[string]int64{},
	}
	if rapid.IntRange(0, 9).Draw(t, "action") == 0 {
		e.Goal = 0
		e.Action = "view"
	}
	for _, name := range []string{"payment", "coupon", "size"} {
		if rapid.Bool().Draw(t, name) {
			e.Texts[name] = texts.Draw(t, name)
		}
	}
	for _, name := range []string{"weight", "size"} {
		if rapid.Bool().Draw(t, name) {
			e.Numbers[name] = amounts.Draw(t, name)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "lines") {
		e.Lines = append(e.Lines, Line{
			Product: texts.Draw(t, "product"), Variant: texts.Draw(t, "variant"), Category: texts.Draw(t, "category"),
			Brand: texts.Draw(t, "brand"), Quantity: amounts.Draw(t, "quantity"), Revenue: amounts.Draw(t, "revenue"),
			Profit: amounts.Draw(t, "line profit"),
		})
	}
	return e
}

// TestMeaning compares quantities of random visitors with loops that are written by hand.
func TestMeaning(t *testing.T) {
	const hour = int64(3_600_000)
	sum := func(read func(e Event) int64) func([]Event) int64 {
		return func(events []Event) (total int64) {
			for _, e := range events {
				total += read(e)
			}
			return total
		}
	}
	count := func(is func(e Event) bool) func([]Event) int64 {
		return sum(func(e Event) int64 {
			if is(e) {
				return 1
			}
			return 0
		})
	}
	hasLine := func(e Event, is func(l Line) bool) bool { return slices.ContainsFunc(e.Lines, is) }
	for text, naive := range map[string]func([]Event) int64{
		"count(any)":   count(func(e Event) bool { return e.Action == "" }),
		"count(@view)": count(func(e Event) bool { return e.Action == "view" }),
		"count(purchase|#17) within 1h..3h": count(func(e Event) bool {
			return (e.Goal == 3 || e.Goal == 17) && e.Age >= hour && e.Age < 3*hour
		}),
		"count(purchase where not value > 0.5)":   count(func(e Event) bool { return e.Goal == 3 && e.Value <= 5000 }),
		"count(any where payment = '')":           count(func(e Event) bool { return e.Goal != 0 && e.Texts["payment"] == "" }),
		"count(any where payment not like 'a*b')": count(func(e Event) bool { return e.Goal != 0 && e.Texts["payment"] != "axb" }),
		"count(any where weight < 1)": count(func(e Event) bool {
			n, is := e.Numbers["weight"]
			return e.Goal != 0 && is && n < 10000
		}),
		"count(any where not weight < 1)": count(func(e Event) bool {
			n, is := e.Numbers["weight"]
			return e.Goal != 0 && (!is || n >= 10000)
		}),
		"count(any where weight != 1)": count(func(e Event) bool {
			n, is := e.Numbers["weight"]
			return e.Goal != 0 && is && n != 10000
		}),
		"count(any where size = 1 or size = 'A')": count(func(e Event) bool {
			n, is := e.Numbers["size"]
			return e.Goal != 0 && (is && n == 10000 || e.Texts["size"] == "A")
		}),
		"count(any where items.category = 'A' and items.quantity > 0.5)": count(func(e Event) bool {
			return e.Goal != 0 && hasLine(e, func(l Line) bool { return l.Category == "A" && l.Quantity > 5000 })
		}),
		"count(any where not items.category = 'A')": count(func(e Event) bool {
			return e.Goal != 0 && hasLine(e, func(l Line) bool { return l.Category != "A" })
		}),
		"sum(purchase.value)": sum(func(e Event) int64 {
			if e.Goal == 3 {
				return e.Value
			}
			return 0
		}),
		"sum(any.weight)": sum(func(e Event) int64 {
			if e.Goal != 0 {
				return e.Numbers["weight"]
			}
			return 0
		}),
		"sum(purchase.value where items.brand = 'A')": sum(func(e Event) int64 {
			if e.Goal == 3 && hasLine(e, func(l Line) bool { return l.Brand == "A" }) {
				return e.Value
			}
			return 0
		}),
		"sum(purchase.items.revenue where items.brand = 'A' and value > 0 or coupon = 'A')": sum(func(e Event) (n int64) {
			for _, l := range e.Lines {
				if e.Goal == 3 && (l.Brand == "A" && e.Value > 0 || e.Texts["coupon"] == "A") {
					n += l.Revenue
				}
			}
			return n
		}),
		"max(any.items.profit where items.product != '')": func(events []Event) (n int64) {
			found := false
			for _, e := range events {
				for _, l := range e.Lines {
					if e.Goal != 0 && l.Product != "" && (!found || l.Profit > n) {
						found = true
						n = l.Profit
					}
				}
			}
			return n
		},
		"max(any.weight)": func(events []Event) (n int64) {
			found := false
			for _, e := range events {
				if w, is := e.Numbers["weight"]; is && e.Goal != 0 && (!found || w > n) {
					found = true
					n = w
				}
			}
			return n
		},
		"distinct(any.items.variant)": func(events []Event) int64 {
			found := map[string]bool{}
			for _, e := range events {
				for _, l := range e.Lines {
					found[l.Variant] = found[l.Variant] || e.Goal != 0
				}
			}
			delete(found, "")
			return count(func(Event) bool { return true })(make([]Event, trueValues(found)))
		},
		"distinct(purchase.payment)": func(events []Event) int64 {
			found := map[string]bool{}
			for _, e := range events {
				found[e.Texts["payment"]] = found[e.Texts["payment"]] || e.Goal == 3
			}
			delete(found, "")
			return int64(trueValues(found))
		},
		"converted(purchase at least 2)": func(events []Event) int64 {
			return oneIf(count(func(e Event) bool { return e.Goal == 3 })(events) >= 2)
		},
		"funnel(add_to_cart, begin_checkout where value > 0, purchase) within 2h": func(events []Event) (n int64) {
			for _, a := range events {
				for _, b := range events {
					for _, c := range events {
						areSteps := a.Goal == 2 && b.Goal == 4 && b.Value > 0 && c.Goal == 3
						if areSteps && a.Age < b.Age && b.Age < c.Age && c.Age <= a.Age+2*hour {
							n = 1
						}
					}
				}
			}
			return n
		},
		"funnel(add_to_cart, purchase)": func(events []Event) (n int64) {
			for _, a := range events {
				for _, b := range events {
					if a.Goal == 2 && b.Goal == 3 && a.Age < b.Age {
						n = 1
					}
				}
			}
			return n
		},
	} {
		m, err := Parse(text, shop)
		if !check.OK(t, err, "%s", text) {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			var events []Event
			for range rapid.IntRange(0, 8).Draw(t, "events") {
				events = append(events, drawEvent(t))
			}
			check.Equal(t, m.Numerator.Of(events), naive(events), "%s of %+v", text, events)
		})
	}
}

func trueValues(found map[string]bool) (n int) {
	for _, is := range found {
		if is {
			n++
		}
	}
	return n
}

// A later start of a funnel must not hide an earlier one whose step came in time.
func TestFunnelWithEventsAtTheSameTime(t *testing.T) {
	m, err := Parse("funnel(add_to_cart, begin_checkout, purchase)", shop)
	check.OK(t, err)
	events := []Event{{Goal: 2, Age: 1}, {Goal: 4, Age: 2}, {Goal: 4, Age: 3}, {Goal: 3, Age: 3}}
	check.Equal(t, m.Numerator.Of(events), 1, "a second begin_checkout at the time of the purchase")
	events = []Event{{Goal: 2, Age: 1}, {Goal: 4, Age: 3}, {Goal: 3, Age: 3}}
	check.Equal(t, m.Numerator.Of(events), 0, "the only begin_checkout at the time of the purchase")
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"a*", "abc", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*b*c*", "abxc", true},
		{"*b*b*", "ab", false},
		{"**", "", true},
		{"a**b", "ab", true},
		{"A*", "abc", false},
		{"*aab", "aaab", true},
	} {
		check.Equal(t, matchesPattern(test.text, test.pattern), test.want, "%q like %q", test.text, test.pattern)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"sum(purchase.items.revenue where items.category = 'Shoes' and payment in ('card', 'paypal')) / count(#17) within 7d",
		"funnel(add_to_cart, purchase where not (value > -3.5 or size like \"y*\")) within 1h", "max(any.value) within 1h..3d",
		"count('any'|'it''s done'", "converted(@view at least 2)", "device not in ('a', '') or not (plan like '*') and os != 'ß'",
		"count(any) for device = 'x' or city like 'U*' by os, plan", "sum(any.value) split items.category",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := Parse(text, shop); err == nil {
			again, err := Parse(m.String(), shop)
			check.OK(t, err, "%q: %q", text, m)
			check.That(t, reflect.DeepEqual(m, again), "%q: %q: another tree", text, m)
			m.ShortName()
			m.FullText()
		}
		if c, err := ParseVisitors(text, shop); err == nil {
			again, err := ParseVisitors(c.String(), shop)
			check.OK(t, err, "%q: %q", text, c)
			check.That(t, reflect.DeepEqual(c, again), "%q: %q: another tree", text, c)
		}
		if ask, err := ParseAsk(text, shop); err == nil {
			again, err := ParseAsk(ask.String(), shop)
			check.OK(t, err, "%q: %q", text, ask)
			check.That(t, reflect.DeepEqual(ask, again), "%q: %q: another tree", text, ask)
		}
		for at := range min(len(text), 50) {
			CompleteAsk(text, at, shop)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const text = "sum(purchase.items.revenue where items.category = 'Shoes' and payment in ('card', 'paypal')) / " +
		"count(purchase) within 7d"
	for b.Loop() {
		if _, err := Parse(text, shop); err != nil {
			b.Fatal(err)
		}
	}
}
