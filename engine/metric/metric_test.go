package metric

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
)

// shop has the names of a website.
var shop = &Names{
	Goals: []Goal{
		{ID: 3, Key: "purchase"},
		{ID: 2, Key: "add_to_cart"},
		{ID: 4, Key: "begin_checkout"},
		{ID: 5, Key: "any"},
		{ID: 6, Key: "it's done"},
		{ID: 7, Key: "angefragt:größe-L"},
		{ID: 17},
	},
	Properties: []Property{
		{Name: "payment", Text: true},
		{Name: "coupon", Text: true},
		{Name: "weight", Number: true},
		{Name: "size", Text: true, Number: true},
	},
	Attributes: []string{"plan", "loggedIn"},
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		// Calls.
		"converted(purchase)":                            "",
		"converted( purchase at least 1 )":               "converted(purchase)",
		"converted(purchase where value > 3 at least 2)": "",
		"count(any)":                                    "",
		"count(@view)":                                  "",
		"converted(@submit|@click)":                     "converted(@click|@submit)",
		"sum(purchase.value)":                           "",
		"max(purchase.items.revenue)":                   "",
		"sum(purchase.weight)":                          "",
		"distinct(purchase.items.product)":              "",
		"distinct(any.payment)":                         "",
		"funnel(add_to_cart, begin_checkout, purchase)": "",
		"sum(purchase.value)/count(purchase)":           "sum(purchase.value) / count(purchase)",
		// Goals.
		"count('purchase')":                    "count(purchase)",
		`count("it's done")`:                   "count('it''s done')",
		"count('any')":                         "",
		"count(#3)":                            "count(purchase)",
		"count(#17)":                           "",
		"count(angefragt:größe-L)":             "",
		"count(purchase|add_to_cart|purchase)": "count(add_to_cart|purchase)",
		// Times.
		"count(purchase) within 168h":                               "count(purchase) within 7d",
		"count(purchase) within 36h":                                "",
		"count(purchase) within 7d..14d":                            "",
		"count(purchase) within 0h..14d":                            "count(purchase) within 14d",
		"funnel(add_to_cart, purchase) within 1h":                   "",
		"sum(purchase.value) within 1d / count(purchase) within 2d": "",
	} {
		m, err := Parse(text, shop)
		checkCanonical(t, text, want, m, err)
	}
}

// TestDeclaredMetricsAreNamedByTheirKeys reads keys in the place of metrics, and completes them.
func TestDeclaredMetricsAreNamedByTheirKeys(t *testing.T) {
	shoes, err := Parse("sum(purchase.items.revenue where items.category = 'Shoes')", shop)
	check.OK(t, err)
	names := *shop
	names.Metrics = []NamedMetric{{"shoes", shoes}}
	m, err := Parse("shoes", &names)
	check.OK(t, err)
	check.Equal(t, m.String(), shoes.String(), "the metric of a key")
	ask, err := ParseAsk("shoes for device = 'mobile' by country", &names)
	check.OK(t, err)
	check.Equal(t, ask.String(), shoes.String()+" for device = 'mobile' by country", "a question")
	_, err = Parse("shoes / count(purchase)", &names)
	check.Contains(t, fmt.Sprint(err), `at character 7: found "/"`, "the error")
	_, err = Parse("shoos", &names)
	check.Contains(t, fmt.Sprint(err), "a metric of the website, such as shoes", "the error")
	found := CompleteAsk("sh", 2, &names)
	check.Equal(t, fmt.Sprint(found.Candidates), "[{shoes metric}]", "completion")
	for key, want := range map[string]string{
		"shoes": "", "schuhe:größe": "", "no name": "must have only", "17": "must have only", "": "must have only",
		"count": "is a word", "averageValue": "is the name",
	} {
		check.That(t, strings.HasPrefix(KeyFault(key), want) && (want != "" || KeyFault(key) == ""),
			"%q: %s", key, KeyFault(key))
	}
}

// TestTextsWithGoalIDsStayTheSame renames the goals of a metric.
func TestTextsWithGoalIDsStayTheSame(t *testing.T) {
	renamed := *shop
	renamed.Goals = []Goal{{ID: 3, Key: "a"}, {ID: 2, Key: "z"}}
	one, err := Parse("count(add_to_cart|purchase) / sum(purchase.value)", shop)
	check.OK(t, err)
	other, err := Parse("count(a|z) / sum(a.value)", &renamed)
	check.OK(t, err)
	const want = "count(#2|#3) within 7d / sum(#3.value) within 14d"
	rangeOf := func(q *Quantity) Range {
		return Range{To: map[int64]time.Duration{3: 14 * 24 * time.Hour}[q.SingleGoal()]}
	}
	text := other.WithRanges(rangeOf).WithGoalIDs().String()
	check.Equal(t, one.WithRanges(rangeOf).WithGoalIDs().String(), text, "other keys")
	check.Equal(t, text, strings.Replace(want, " within 7d", "", 1), "the text")
	removed, err := Parse(text, &Names{AcceptsUnknownGoals: true})
	check.OK(t, err)
	check.Equal(t, removed.String(), text, "of goals that were removed")
}

// Conditions are sets, without parentheses that change nothing.
func TestParseConditions(t *testing.T) {
	for text, want := range map[string]string{
		"value>=30.50": "value >= 30.5",
		"value > -0.0001 and value<=1000000000000": "value <= 1000000000000 and value > -0.0001",
		"value = -0":                "value = 0",
		"value > 1 and value > 1.0": "value > 1",
		"(payment = 'b' and (coupon = 'a' and weight > 1))": "coupon = 'a' and payment = 'b' and weight > 1",
		"payment = 'b' and (coupon = 'a' or weight > 1)":    "(coupon = 'a' or weight > 1) and payment = 'b'",
		"payment = 'b' or coupon = 'a' and weight > 1":      "coupon = 'a' and weight > 1 or payment = 'b'",
		"not (payment = 'b' or not not coupon = 'a')":       "not (coupon = 'a' or payment = 'b')",
		"payment in ('b', 'a', 'b')":                        "payment in ('a', 'b')",
		"payment in ('a')":                                  "payment = 'a'",
		"payment not in ('a')":                              "payment != 'a'",
		"not payment = 'a'":                                 "payment != 'a'",
		"not weight = 1":                                    "",
		"weight in (2, 10, 1)":                              "weight in (1, 2, 10)",
		"not payment in ('a', 'b')":                         "payment not in ('a', 'b')",
		"not payment not like 'a*'":                         "payment like 'a*'",
		"payment like 'a'":                                  "payment = 'a'",
		"payment not like '*a'":                             "",
		"size > 5 and size = '5'":                           "size = '5' and size > 5",
		"coupon = '' and items.brand != 'O''Neill\n'":       "",
	} {
		m, err := Parse("count(purchase where "+text+")", shop)
		if check.OK(t, err, "%s", text) {
			checkCanonical(t, text, want, m.Numerator.Steps[0].Where, nil)
		}
	}
}

func TestParseVisitors(t *testing.T) {
	for text, want := range map[string]string{
		"device = 'mobile'":                                         "",
		"plan='pro' and not country in ('DE', 'AT')":                "country not in ('AT', 'DE') and plan = 'pro'",
		"utmSource like 'news*' or (device = '' and os != 'iOS')":   "device = '' and os != 'iOS' or utmSource like 'news*'",
		"(loggedIn = 'true' or plan = 'x') and visitorType = 'new'": "(loggedIn = 'true' or plan = 'x') and visitorType = 'new'",
	} {
		c, err := ParseVisitors(text, shop)
		checkCanonical(t, text, want, c, err)
	}
}

// checkCanonical checks the canonical form of a text; empty: the text itself.
func checkCanonical(t *testing.T, text, want string, got fmt.Stringer, err error) {
	t.Helper()
	if check.OK(t, err, "%s", text) {
		check.Equal(t, got.String(), cmp.Or(want, text), "%s", text)
	}
}

func TestFaultsNameTheCharacterAndWhatMayFollow(t *testing.T) {
	const field = "expected a field, such as value, items.category, or the name of a property, found "
	for text, want := range map[string]string{
		"":                             "at character 1: expected converted, count, sum, max, distinct or funnel, found the end",
		"count(purchase where":         "at character 21: " + field + "the end",
		"count(purchase where)":        "at character 21: " + field + `")"`,
		"größe(purchase)":              `at character 1: expected converted, count, sum, max, distinct or funnel, found "größe"`,
		"count(größe) x":               `at character 7: unknown goal "größe": one of purchase, add_to_cart, begin_checkout, 'any', 'it''s done', angefragt:größe-L, #17; at character 14: expected within, "/" or the end, found "x"`,
		"count(purchse)":               `at character 7: unknown goal "purchse": purchase, or one of add_to_cart, begin_checkout, 'any', 'it''s done', angefragt:größe-L, #17`,
		"count(purchase":               `at character 15: expected "|", where or ")", found the end`,
		"count(5)":                     "at character 7: a goal is written by its key, or by its id as #5",
		"count(where)":                 `at character 7: expected any or a goal, an action such as @view, found "where"`,
		"count(#99)":                   `at character 7: unknown goal #99: one of purchase, add_to_cart, begin_checkout, 'any', 'it''s done', angefragt:größe-L, #17`,
		"count(#0)":                    `at character 8: expected the id of a goal, such as #17, found "0"`,
		"count(@look)":                 `at character 8: expected an action: view, click, submit, completion, conversion or contact, found "look"`,
		"sum(@view.value)":             "at character 5: an action can only be in converted and count, such as count(@view)",
		"count(@view|purchase)":        "at character 13: goals and actions cannot be combined by |",
		"count(@view where value > 1)": "at character 7: an action has no value, properties or lines: it takes no condition",
		"sum(purchase)":                "at character 13: sum needs a field after the goal, such as purchase.value",
		"distinct(purchase)":           "at character 18: distinct needs a field after the goal, such as purchase.items.product",
		"sum(purchase.payment)":        "at character 14: payment is a text: sum needs a number, such as value",
		"max(purchase.items.brand)":    "at character 14: items.brand is a text: max needs a number, such as value",
		"distinct(any.value)":          "at character 14: value is a number: distinct needs a text, such as items.product",
		"sum(purchase.items)":          `at character 19: expected ".", found ")"`,
		"sum(purchase.items.color)":    `at character 14: unknown field or property "items.color": one of value, profit, extraValue, items.quantity, items.revenue, items.profit, items.product, items.variant, items.category, items.brand and 4 more`,
		"count(purchase where items.category > 5)":                        "at character 37: items.category is a text: it can be compared with =, !=, in and like",
		"count(purchase where items.category = 5)":                        "at character 39: items.category is a text: write the value in quotes, such as '5'",
		"count(purchase where value = 'x')":                               "at character 30: value is a number: compare it with a number, such as 30",
		"count(purchase where value like 'x')":                            "at character 28: value is a number: it can be compared with =, !=, <, <=, >, >= and in",
		"count(purchase where size in (5, 'x'))":                          "at character 34: size is a number: compare it with a number, such as 30",
		"count(purchase where value = 0.12345)":                           "at character 30: a number has at most 4 decimals, such as 0.25",
		"count(purchase where value = 1000000000001)":                     "at character 30: a number is from -1000000000000 to 1000000000000",
		"count(purchase where payment = paypal)":                          `at character 32: expected a text in quotes, such as 'Shoes', found "paypal"`,
		"count(purchase where payment 'x')":                               `at character 30: expected not, "=", "!=", "<", "<=", ">", ">=", in or like, found 'x'`,
		"count(purchase where payment not = 'x')":                         `at character 34: expected in or like, found "="`,
		"count(purchase where payment = 'x)":                              "at character 32: the quoted text has no end: write ' after it",
		"count(purchase where payment = ‘x’)":                             "at character 32: '‘' is not a quote of the language: write '; at character 34: '’' is not a quote of the language: write '",
		"count(purchase where paymnt = 'x' and wait > 5 and value > 'x')": `at character 22: unknown field or property "paymnt": payment, or one of `,
		"sum(purchase.value) + 1":                                         "at character 21: '+' is not allowed: a metric is one quantity, or a ratio of two",
		"count(any) - count(any)":                                         `at character 12: found "-": a metric is one quantity, or a ratio of two`,
		"count(any) / count(any) / count(any)":                            `at character 25: found "/": a metric is one quantity, or a ratio of two`,
		"count(any) within":                                               "at character 18: expected a time from 1h to 400d, such as 7d, found the end",
		"count(any) within 401d":                                          `at character 19: expected a time from 1h to 400d, such as 7d, found "401d"`,
		"count(any) within 0d":                                            "at character 19: a time is from 1h to 400d, such as 7d",
		"count(any) within 7d..7d":                                        "at character 23: a range ends after its start, such as 7d..14d",
		"funnel(add_to_cart)":                                             `at character 19: expected "|", where or ",", found ")"`,
		"funnel(add_to_cart, purchase) within 1h..2h":                     `at character 40: expected "/" or the end, found ".."`,
		"funnel(purchase, add_to_cart, purchase)":                         "at character 31: steps 1 and 3 are both of purchase: write converted(purchase at least 2)",
		"funnel(any, purchase)":                                           "at character 13: steps 1 and 2 are both of purchase: write converted(purchase at least 2)",
		"converted(purchase at least 0)":                                  `at character 29: expected an integer from 1 to 1000, found "0"`,
		"count(any) \x00":                                                 `at character 12: '\x00' is not allowed here`,
		"count('\xff')":                                                   "at character 8: the text is not UTF-8",
	} {
		_, err := Parse(text, shop)
		found, is := errors.AsType[Faults](err)
		if !is {
			t.Errorf("%s: no faults", text)
			continue
		}
		check.That(t, strings.HasPrefix(found.Error(), want), "%s:\ngot  %s\nwant %s", text, found.Error(), want)
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	_, err := Parse("sum(purchse.paymet where paymnt = 'x' and items.brand > 5) / count(@view where value = 'x')", shop)
	found, _ := errors.AsType[Faults](err)
	var characters []int
	for _, fault := range found {
		characters = append(characters, fault.Character)
	}
	check.That(t, slices.Equal(characters, []int{5, 13, 26, 55, 68, 88}), "%v", found)
}
