package metric

import (
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
)

func parsed(t *testing.T, text string) *Metric {
	t.Helper()
	m, err := Parse(text, shop)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func TestTypes(t *testing.T) {
	for text, want := range map[string]string{
		"converted(purchase)":                              "rate share score",
		"funnel(add_to_cart, purchase)":                    "rate share score",
		"count(purchase)":                                  "number number welch",
		"distinct(purchase.items.product)":                 "number number welch",
		"sum(purchase.value)":                              "money money welch",
		"max(purchase.items.profit)":                       "money money welch",
		"sum(purchase.items.quantity)":                     "number number welch",
		"sum(purchase.weight)":                             "number number welch",
		"sum(purchase.value) / count(purchase)":            "ratio money delta",
		"sum(purchase.value) / converted(purchase)":        "ratio money delta",
		"sum(purchase.profit) / sum(purchase.value)":       "ratio share delta",
		"sum(purchase.items.quantity) / count(purchase)":   "ratio number delta",
		"count(purchase) / sum(purchase.value)":            "ratio number delta",
		"count(purchase) / count(add_to_cart)":             "ratio number delta",
		"converted(purchase) / converted(add_to_cart)":     "ratio share delta",
		"funnel(add_to_cart, purchase) / converted(@view)": "ratio share delta",
	} {
		m := parsed(t, text)
		check.Equal(t, fmt.Sprint(m.Kind(), " ", m.Unit(), " ", m.Test()), want, "%s", text)
	}
}

func TestNestedRatios(t *testing.T) {
	for text, want := range map[string]bool{
		"funnel(add_to_cart, purchase) / converted(add_to_cart)":                                            true,
		"funnel(add_to_cart, purchase) / converted(purchase)":                                               true,
		"funnel(add_to_cart, purchase) within 1h / converted(add_to_cart|begin_checkout)":                   true,
		"funnel(add_to_cart, purchase) / converted(any)":                                                    true,
		"funnel(add_to_cart, begin_checkout, purchase) within 1h / funnel(add_to_cart, purchase)":           true,
		"funnel(add_to_cart, begin_checkout, purchase) within 1h / funnel(add_to_cart, purchase) within 2h": true,
		"converted(purchase where value > 3 and payment = 'x') / converted(purchase where value > 3)":       true,
		"converted(purchase where payment = 'x') / converted(purchase)":                                     true,
		"converted(purchase at least 2) / converted(purchase)":                                              true,
		"converted(purchase) within 7d / converted(purchase) within 14d":                                    true,
		"converted(purchase) within 7d / converted(purchase)":                                               true,

		"funnel(add_to_cart, purchase) within 2h / funnel(add_to_cart, purchase) within 1h":          false,
		"funnel(add_to_cart, purchase) / funnel(add_to_cart, purchase) within 1h":                    false,
		"funnel(add_to_cart, purchase) / funnel(purchase, add_to_cart)":                              false,
		"funnel(add_to_cart, purchase) / converted(add_to_cart at least 2)":                          false,
		"funnel(add_to_cart, purchase) / converted(add_to_cart) within 7d":                           false,
		"funnel(add_to_cart, purchase) / converted(begin_checkout)":                                  false,
		"funnel(add_to_cart, purchase) / count(add_to_cart)":                                         false,
		"funnel(add_to_cart, purchase) / converted(add_to_cart where value > 1)":                     false,
		"converted(purchase) / funnel(add_to_cart, purchase)":                                        false,
		"converted(any) / converted(purchase)":                                                       false,
		"converted(@view) / converted(any)":                                                          false,
		"converted(purchase) / converted(purchase where value > 3)":                                  false,
		"converted(purchase where value > 3 or payment = 'x') / converted(purchase where value > 3)": false,
		"converted(purchase) / converted(purchase) within 7d":                                        false,
		"converted(purchase) / converted(purchase at least 2)":                                       false,
	} {
		check.Equal(t, parsed(t, text).IsNested(), want, "%s", text)
	}
}

func TestAdditiveOverASplit(t *testing.T) {
	category := Field{OfLine, "items.category", false}
	payment := Field{OfProperty, "payment", false}
	for text, want := range map[string][2]bool{
		"sum(purchase.items.revenue)":           {true, true},
		"sum(purchase.value)":                   {false, true},
		"count(purchase)":                       {false, true},
		"converted(purchase)":                   {false, false},
		"max(purchase.items.revenue)":           {false, false},
		"distinct(purchase.payment)":            {false, false},
		"sum(purchase.value) / count(purchase)": {false, false},
	} {
		m := parsed(t, text)
		check.Equal(t, [2]bool{m.IsAdditiveOver(category), m.IsAdditiveOver(payment)}, want, "%s", text)
	}
}

func TestWhatAMetricReads(t *testing.T) {
	m := parsed(t, "sum(purchase.items.revenue where size > 3 and size = 'x' and value > 1) / count(add_to_cart|purchase)")
	goals, all := m.ReadGoals()
	check.Equal(t, fmt.Sprint(goals), "[add_to_cart purchase]")
	check.Equal(t, all, false)
	var fields []string
	for _, f := range m.Numerator.ReadFields() {
		fields = append(fields, fmt.Sprint(f.Name, f.Number))
	}
	check.Equal(t, strings.Join(fields, " "), "items.revenuetrue sizefalse sizetrue valuetrue")
	_, all = parsed(t, "count(any) / count(purchase)").ReadGoals()
	check.Equal(t, all, true)
	for text, want := range map[string]bool{
		"count(any)": true, "converted(@conversion)": true, "sum(purchase.extraValue) within 7d": true,
		"converted(purchase at least 2)": false, "sum(purchase.items.revenue)": false, "max(purchase.value)": false,
		"count(purchase|add_to_cart)": false, "count(purchase where value > 1)": false,
	} {
		m := parsed(t, text)
		check.Equal(t, m.Numerator.IsPlain(), want, "%s", text)
	}
	call, only := parsed(t, "count(any) / distinct(any.payment)").OnlyDescribes()
	check.Equal(t, call, Distinct)
	check.Equal(t, only, true)
	_, only = parsed(t, "count(any) / sum(any.value)").OnlyDescribes()
	check.Equal(t, only, false)
}

func TestAliases(t *testing.T) {
	purchase := &Goal{ID: 3, Key: "purchase"}
	for name, want := range map[string][2]string{
		"goalConversionRate":   {"converted(purchase)", "converted(any)"},
		"conversionRate":       {"converted(@conversion)", "converted(@conversion)"},
		"completionRate":       {"converted(@completion)", "converted(@completion)"},
		"goalsPerVisitor":      {"count(purchase)", "count(any)"},
		"valuePerVisitor":      {"sum(purchase.value)", "sum(any.value)"},
		"profitPerVisitor":     {"sum(purchase.profit)", "sum(any.profit)"},
		"extraValuePerVisitor": {"sum(purchase.extraValue)", "sum(any.extraValue)"},
		"averageValue":         {"sum(purchase.value) / count(purchase)", "sum(any.value) / count(any)"},
	} {
		for i, goal := range []*Goal{purchase, nil} {
			m, known := NewAlias(name, goal)
			check.That(t, known, "%s is unknown", name)
			check.Equal(t, m.String(), want[i], "%s", name)
			alias, of := parsed(t, m.String()).FindAlias()
			if alias == nil {
				t.Errorf("%s has no alias", m)
				continue
			}
			check.Equal(t, alias.Name, name)
			isOfGoal := goal != nil && !strings.Contains(m.String(), "@")
			check.Equal(t, of != nil && *of == *purchase, isOfGoal, "%s: goal", name)
		}
	}
	check.Equal(t, len(Aliases), 8)
	_, known := NewAlias("value", nil)
	check.Equal(t, known, false)
	for _, text := range []string{
		"count(purchase) within 7d", "count(purchase|add_to_cart)", "sum(purchase.value) / count(add_to_cart)",
		"converted(@view)", "count(purchase where value > 1)",
	} {
		alias, _ := parsed(t, text).FindAlias()
		check.That(t, alias == nil, "%s has an alias", text)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][2]string{
		"sum(purchase.items.revenue where items.category = 'Shoes')": {
			"Shoes revenue per visitor",
			"Total revenue of the lines of purchase events where category is Shoes, per visitor.",
		},
		"converted(purchase)":    {"Purchase conversion rate", "Visitors with purchase events, per visitor."},
		"converted(any)":         {"Goal conversion rate", "Visitors with goal events, per visitor."},
		"converted(@conversion)": {"Conversion rate", "Visitors with conversions, per visitor."},
		"converted(purchase where value > 30 at least 2) within 7d": {
			"Share with at least 2 purchase where value is above 30 within 7 days",
			"Visitors with at least 2 purchase events where value is above 30 within 7 days, per visitor.",
		},
		"count(add_to_cart|purchase) within 1d..49h": {
			"add_to_cart or purchase count per visitor from 1 day to 49 hours",
			"Number of add_to_cart or purchase events from 1 day to 49 hours, per visitor.",
		},
		"count(#17)": {"Goal 17 count per visitor", "Number of goal 17 events, per visitor."},
		"sum(purchase.value where payment = 'paypal')": {
			"Paypal purchase value per visitor",
			"Total value of purchase events where payment is paypal, per visitor.",
		},
		"sum(purchase.value where payment = '' and coupon not in ('', 'A', 'B'))": {
			"Purchase value per visitor where coupon is not empty, A or B and payment is empty",
			"Total value of purchase events where coupon is not empty, A or B and payment is empty, per visitor.",
		},
		"sum(purchase.value) / count(purchase)": {
			"Average purchase value", "Total value of purchase events, divided by number of purchase events.",
		},
		"sum(any.value) / count(any)": {"Average value", "Total value of goal events, divided by number of goal events."},
		"sum(purchase.value) / converted(purchase)": {
			"Purchase value per visitor with purchase",
			"Total value of purchase events, divided by visitors with purchase events.",
		},
		"count(purchase) / count(add_to_cart)": {
			"Purchase count per add_to_cart", "Number of purchase events, divided by number of add_to_cart events.",
		},
		"max(purchase.items.revenue)": {
			"Largest revenue per visitor", "Largest revenue of the lines of purchase events, per visitor.",
		},
		"distinct(purchase.items.category where items.brand in ('A', 'B'))": {
			"Distinct categories per visitor where brand is A or B",
			"Number of different values of category of the lines of purchase events where brand is A or B, per visitor.",
		},
		"distinct(purchase.payment)": {
			"Distinct purchase payment values per visitor",
			"Number of different values of payment of purchase events, per visitor.",
		},
		"funnel(add_to_cart, purchase where value > 3) within 1d": {
			"Funnel add_to_cart → purchase where value is above 3 within 1 day",
			"Visitors with add_to_cart events, then purchase events where value is above 3, all within 1 day, per visitor.",
		},
		"funnel(add_to_cart, purchase) / converted(add_to_cart)": {
			"Funnel add_to_cart → purchase of visitors with add_to_cart",
			"Visitors with add_to_cart events, then purchase events, divided by visitors with add_to_cart events.",
		},
	} {
		check.Equal(t, parsed(t, text).ShortName(), want[0], "%s", text)
		check.Equal(t, parsed(t, text).FullText(), want[1], "%s", text)
	}
}

func TestWordsOfVisitors(t *testing.T) {
	for text, want := range map[string]string{
		"device = 'mobile' and country in ('DE', 'AT')":                        "country is AT or DE and device is mobile",
		"not (os = 'iOS' or plan = 'pro') and utmSource not like 'news*'":      "not (OS is iOS or plan is pro) and UTM source does not match news*",
		"visitorType != 'new' and (plan = '' or firstVisitPage like '*/sale')": "(first page matches */sale or plan is empty) and visitor type is not new",
	} {
		c, err := ParseVisitors(text, shop)
		check.OK(t, err)
		check.Equal(t, c.InWords(), want, "%s", text)
	}
}

func TestValuesOfAttributesAreThoseStored(t *testing.T) {
	names := *shop
	names.CheckValue = func(attribute, value string) (string, string) {
		if attribute == "country" && len(value) != 2 {
			return "", "must be a code of two letters"
		}
		return strings.ToUpper(value), ""
	}
	c, err := ParseVisitors("country in ('de', 'DE') or plan like 'a*'", &names)
	check.OK(t, err)
	check.Equal(t, c.String(), "country = 'DE' or plan like 'A*'")
	_, err = ParseVisitors("country = 'deu'", &names)
	check.Equal(t, err.Error(), "at character 11: country must be a code of two letters")
}

func TestPropertiesThatWereNeverSent(t *testing.T) {
	names := *shop
	names.AcceptsUnknownProperties = true
	m, err := Parse("sum(purchase.gift where wrap = 'x' and price > 3)", &names)
	check.OK(t, err)
	check.Equal(t, m.String(), "sum(purchase.gift where price > 3 and wrap = 'x')")
	_, err = Parse("sum(purchase.device)", &names)
	check.That(t, err != nil, "an attribute is a property")
}

func TestComplete(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "0: call converted, call count, call sum, call max, call distinct, call funnel",
		"co":                               "0: call converted, call count",
		"count":                            "0: call count, operator count(",
		"count(p":                          "6: goal purchase",
		"count(@c":                         "7: action click, action completion, action conversion, action contact",
		"count('it":                        "6: goal 'it''s done'",
		"sum(purchase":                     "4: goal purchase, operator purchase|, field purchase.value, field purchase.profit, field purchase.extraValue, field purchase.items.quantity, field purchase.items.revenue, field purchase.items.profit, property purchase.weight, property purchase.size",
		"sum(purchase.w":                   "13: property weight",
		"distinct(any.items.ca":            "19: field category",
		"count(purchase w":                 "15: keyword where",
		"count(purchase where pa":          "21: property payment",
		"count(purchase where value >= 3 ": "32: keyword and, keyword or, operator )",
		"count(purchase where payment ":    "29: keyword not, operator =, operator !=, operator <, operator <=, operator >, operator >=, keyword in, keyword like",
		"count(purchase where payment n":   "29: keyword not",
		"count(purchase where items.category = 'Sh": "38: values of items.category with Sh",
		"count(unknown where ":                      "20: field value, field profit, field extraValue, field items.quantity, field items.revenue, field items.profit, field items.product, field items.variant, field items.category, field items.brand, property payment, property coupon, property weight, property size, keyword not, operator (",
		"count(any) within ":                        "18: time 1d, time 7d, time 14d, time 30d",
		"count(any) ":                               "11: keyword within, operator /",
		"count(any) x ":                             "13: ",
		"count(any) + ":                             "13: ",
		"funnel(add_to_cart, begin_checkout where value > 1": "49: ",
	} {
		check.Equal(t, completionText(completeMetric(text, len(text))), want, "%q", text)
	}
	for text, want := range map[string]string{
		"p":                 "0: attribute plan",
		"device = 'mobile'": "17: keyword and, keyword or",
		"plan = '":          "7: values of plan with ",
	} {
		check.Equal(t, completionText(completeVisitors(text, len(text))), want, "%q", text)
	}
	check.Equal(t, completionText(completeMetric("count(pur) within 7d", 9)), "6: goal purchase", "inside")
}

// completeMetric returns what may follow after a number of characters of a metric.
func completeMetric(text string, at int) Completion {
	return completeAt(text, at, shop, func(p *parser) { p.parseMetric() })
}

// completeVisitors returns what may follow after a number of characters of a condition on visitors.
func completeVisitors(text string, at int) Completion {
	return completeAt(text, at, shop, func(p *parser) { p.parseVisitors() })
}

func completionText(c Completion) string {
	texts := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		texts[i] = candidate.Kind + " " + candidate.Text
	}
	if c.Field != nil {
		texts = append(texts, "values of "+c.Field.Name+" with "+c.Prefix)
	}
	return fmt.Sprint(c.From, ": ", strings.Join(texts, ", "))
}
