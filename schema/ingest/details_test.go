package ingest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// detailed returns a goal with more fields, in JSON.
func detailed(more string) string {
	return `{"eventId":"o-17","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v1","event":"goal","goalId":"purchase",` +
		`"value":79.9,` + more + `}`
}

// validateText returns the canonical details of an event, or its fault.
func validateText(r *rules, text string) (string, error) {
	event, err := new(jsonReader).readEvent([]byte(text))
	if err != nil {
		return "", err
	}
	rows, err := r.validate(nil, &event, "")
	if err != nil {
		return "", err
	}
	return rows[0].EncodeDetails(), nil
}

// TestDetailsOfEvents checks how own attributes, properties and lines are read, and which faults are named.
func TestDetailsOfEvents(t *testing.T) {
	for _, test := range []struct{ name, sent, want string }{
		{
			"all three", `"attributes":{"plan":"pro","loggedIn":true},"properties":{"payment":"paypal","weight":1.25},` +
				`"items":[{"product":"SKU-7","variant":"L","category":"Shoes","name":"Runner","quantity":2,"price":39.95,` +
				`"discount":5,"cost":18}]`,
			`{"attributes":{"loggedIn":"true","plan":"pro"},"items":[{"category":"Shoes","name":"Runner","product":"SKU-7",` +
				`"profit":389000,"quantity":20000,"revenue":749000,"variant":"L"}],"numbers":{"weight":12500},` +
				`"properties":{"payment":"paypal"}}`,
		},
		{"empty ones", `"attributes":{},"properties":null,"items":[]`, ``},
		{"an empty text and null", `"properties":{"coupon":"","gift":null}`, ``},
		{
			"a line with amounts of its own", `"items":[{"product":"a","quantity":3,"revenue":10,"price":99,"profit":-2.5}]`,
			`{"items":[{"product":"a","profit":-25000,"quantity":30000,"revenue":100000}]}`,
		},
		{
			"an amount that is rounded once", `"items":[{"product":"a","quantity":3,"price":0.00005}]`,
			`{"items":[{"product":"a","quantity":30000,"revenue":2}]}`,
		},
		{
			"a name that begins with a digit", `"properties":{"7weird name":"x"}`,
			`properties: "7weird name": a name has letters, digits and _, and begins with a letter`,
		},
		{"a reserved name", `"attributes":{"device":"phone"}`, `attributes: "device": the name is reserved: choose another one`},
		{"a word of the language", `"properties":{"where":"x"}`, `properties: "where": the name is reserved: choose another one`},
		{"a number as an attribute", `"attributes":{"age":42}`, `attributes.age: "42": must be a text or a boolean`},
		{
			"a long attribute", `"attributes":{"plan":"` + strings.Repeat("x", 65) + `"}`,
			`attributes.plan: "` + strings.Repeat("x", 64) + `…": must have at most 64 bytes, has 65`,
		},
		{
			"a large number", `"properties":{"n":1e10}`,
			`properties.n: "1e10": must be a number with an absolute value of at most 1000000000`,
		},
		{"a name twice", `"properties":{"a":"1","a":"2"}`, `properties.a: is given twice`},
		{"a list as a property", `"properties":{"a":[1]}`, `properties: a: must be a string, a number or a boolean`},
		{
			"no list of lines", `"items":{"product":"a"}`,
			`items: must be a list of objects, such as [{"product": "SKU-7", "quantity": 2, "price": 39.95}]`,
		},
		{
			"an unknown field of a line", `"items":[{"product":"a","sku":"b"}]`,
			`items: [0]: unknown field "sku"; must be one of product, variant, category, brand, name, quantity, price, discount, cost, revenue, profit`,
		},
		{
			"faults of two lines", `"items":[{"quantity":1},{"product":"a","price":"x"}]`,
			`items[0].product: missing: must be the id of the product; items[1].price: "x": must be a decimal number such as ` +
				`12.5, with an absolute value of at most 1000000000`,
		},
		{
			"an amount that is too large", `"items":[{"product":"a","quantity":1000,"price":1000000000}]`,
			`items[0].revenue: must have an absolute value of at most 1000000000`,
		},
	} {
		got, err := validateText(&rules{}, detailed(test.sent))
		if err != nil {
			got = err.Error()
		}
		check.Equal(t, got, test.want, test.name)
	}
}

// TestOnlyGoalsHaveLines checks that an event that is no goal may have own attributes, but neither properties nor lines.
func TestOnlyGoalsHaveLines(t *testing.T) {
	view := `{"eventId":"e","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":1,` +
		`"variationId":0,"attributes":{"plan":"pro"}`
	got, err := validateText(&rules{}, view+`}`)
	must.OK(t, err)
	check.Equal(t, got, `{"attributes":{"plan":"pro"}}`, "of a view")
	_, err = validateText(&rules{}, view+`,"properties":{"a":"b"},"items":[{"product":"p"}]}`)
	check.Equal(t, fmt.Sprint(err), "properties: only goals have properties; items: only goals have lines", "fault")
}

// TestLinesAboveTheMaximumAreOne checks that no amount of a long order is lost.
func TestLinesAboveTheMaximumAreOne(t *testing.T) {
	line := `{"product":"p","quantity":2,"price":1.5,"cost":1}`
	got, err := validateText(&rules{}, detailed(`"items":[`+strings.Repeat(line+",", 249)+line+`]`))
	must.OK(t, err)
	d := must.Get(schema.DecodeDetails(got))(t)
	must.Equal(t, len(d.Items), maxItems+1, "lines")
	other := schema.Item{Product: schema.OtherLabel, Quantity: 50 * 20_000, Revenue: 50 * 30_000, Profit: 50 * 10_000}
	check.Equal(t, d.Items[maxItems], other, "the lines above the maximum")
}

// TestLenientSendersLoseNoPurchase checks that what is invalid is dropped and counted, and the rest of the event stays.
func TestLenientSendersLoseNoPurchase(t *testing.T) {
	r := rules{isLenient: true}
	got, err := validateText(&r, detailed(`"attributes":{"device":"x","plan":"pro"},`+
		`"properties":{"1":"x","ok":"y","long":"`+strings.Repeat("x", 129)+`"},"items":[{"price":3},{"product":"p","price":"x"}]`))
	must.OK(t, err)
	check.Equal(t, got, `{"attributes":{"plan":"pro"},"items":[{"product":"(other)","quantity":10000,"revenue":30000},`+
		`{"product":"p","quantity":10000}],"properties":{"ok":"y"}}`, "what is left")
	want := map[string]int{"attribute": 1, "property": 2, "item": 2}
	check.That(t, maps.Equal(r.dropped, want), "dropped %v", r.dropped)

	long := strings.Repeat(`{"product":"`+strings.Repeat("x", 128)+`","name":"`+strings.Repeat("y", 128)+`","price":1},`, 150)
	_, err = validateText(&rules{}, detailed(`"items":[`+strings.TrimSuffix(long, ",")+`]`))
	check.Contains(t, fmt.Sprint(err), "must have at most 32768 bytes together, have ", "fault of a strict sender")
	got, err = validateText(&r, detailed(`"items":[`+strings.TrimSuffix(long, ",")+`]`))
	must.OK(t, err)
	check.Equal(t, got, `{"items":[{"product":"(other)","quantity":1500000,"revenue":1500000}]}`, "the sum of the lines")
	check.Equal(t, r.dropped["details"], 1, "dropped")
}

// TestLineAmountsAreRoundedOnce compares amounts of random lines with exact arithmetic.
func TestLineAmountsAreRoundedOnce(t *testing.T) {
	for _, test := range []struct{ quantity, price, discount, cost string }{
		{"3", "0.33335", "0", ""},
		{"0.5", "0.0001", "0", "0.0003"},
		{"7", "18.990000000000002", "0.00005", "9.5"},
		{"-2", "0.00025", "0", "1"},
		{"1e2", "2.5e-1", "1", "0.1"},
	} {
		exact := func(text string) *big.Rat {
			x, _ := new(big.Rat).SetString("0" + text)
			if strings.HasPrefix(text, "-") {
				x, _ = new(big.Rat).SetString(text)
			}
			return x
		}
		revenue := exact(test.price)
		revenue.Mul(revenue, exact(test.quantity)).Sub(revenue, exact(test.discount))
		want := naiveUnits(revenue)
		item := must.Get(json.Marshal(map[string]string{
			"product": "p", "quantity": test.quantity, "price": test.price, "discount": test.discount,
			"cost": test.cost,
		}))(t)
		got, err := validateText(&rules{}, detailed(`"items":[`+string(item)+`]`))
		must.OK(t, err)
		d := must.Get(schema.DecodeDetails(got))(t)
		check.Equal(t, d.Items[0].Revenue, want, "revenue of %s", item)
		profit := int64(0)
		if test.cost != "" {
			profit = naiveUnits(revenue.Sub(revenue, new(big.Rat).Mul(exact(test.cost), exact(test.quantity))))
		}
		check.Equal(t, d.Items[0].Profit, profit, "profit of %s", item)
	}
}

// naiveUnits returns a number in 1/10000, rounded half away from zero by adding a half.
func naiveUnits(x *big.Rat) int64 {
	scaled := new(big.Rat).Mul(new(big.Rat).Abs(x), big.NewRat(10_000, 1))
	scaled.Add(scaled, big.NewRat(1, 2))
	units := new(big.Int).Quo(scaled.Num(), scaled.Denom()).Int64()
	return int64(x.Sign()) * units
}

// TestLabelsOfAWebsiteAreLimited checks that surplus names are refused or dropped, surplus values are (other), and that
// the limits hold after a restart.
func TestLabelsOfAWebsiteAreLimited(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	names := must.Get(openNames(t.Context(), conn, NameOptions{}))(t)
	strict := rules{names: names, source: "test"}
	attribute := func(name, value string) string {
		return detailed(fmt.Sprintf(`"attributes":{%q:%q}`, name, value))
	}
	for n := range maxAttributeNames {
		_, err := validateText(&strict, attribute(fmt.Sprint("a", n), "x"))
		must.OK(t, err, n)
	}
	for n := range maxPropertyNames {
		_, err := validateText(&strict, detailed(fmt.Sprintf(`"properties":{"p%d":%d}`, n, n)))
		must.OK(t, err, n)
	}
	for n := range maxAttributeValues - 1 {
		_, err := validateText(&strict, attribute("a0", fmt.Sprint("v", n)))
		must.OK(t, err, n)
	}
	must.OK(t, names.storeNames(t.Context()))
	for range 2 {
		_, err := validateText(&strict, detailed(`"attributes":{"b":"x"},"properties":{"q":1,"p1":"text"}`))
		check.Equal(t, fmt.Sprint(err), "attributes.b: the website has 10 names of attributes already\n"+
			"properties.q: the website has 50 names of properties already", "surplus names")
		got, err := validateText(&strict, attribute("a0", "new"))
		must.OK(t, err)
		check.Equal(t, got, `{"attributes":{"a0":"(other)"}}`, "a surplus value")
		lenient := rules{names: names, isLenient: true}
		got, err = validateText(&lenient, detailed(`"attributes":{"b":"x"},"properties":{"q":1,"p1":"text"}`))
		must.OK(t, err)
		check.Equal(t, got, `{"properties":{"p1":"text"}}`, "without the surplus names")
		check.That(t, maps.Equal(lenient.dropped, map[string]int{"attribute": 1, "property": 1}), "%v", lenient.dropped)
		names = must.Get(openNames(t.Context(), conn, NameOptions{}))(t)
		strict.names = names
	}
	of := names.labels[1]
	for n := range maxProducts {
		of.products[uint64(n)] = struct{}{}
	}
	got, err := validateText(&strict, detailed(`"items":[{"product":"new","price":2}]`))
	must.OK(t, err)
	check.Equal(t, got, `{"items":[{"product":"(other)","quantity":10000,"revenue":20000}]}`, "a surplus product")
}
