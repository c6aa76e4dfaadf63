package schema_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestDetailsHaveOneForm checks that what is encoded is decoded again, and that nothing is an empty text.
func TestDetailsHaveOneForm(t *testing.T) {
	for _, want := range []struct {
		details schema.Details
		text    string
	}{
		{schema.Details{}, ""},
		{schema.Details{Currency: "JPY"}, `{"currency":"JPY"}`},
		{
			schema.Details{
				Attributes: schema.Labels{"plan": "pro", "loggedIn": "true"},
				Items: []schema.Item{
					{Product: "SKU-7", Category: "Shoes & <Boots>", Quantity: 20_000, Revenue: 749_000, Profit: -5},
					{Product: "SKU-1"},
				},
				Numbers:    map[string]int64{"weight": 12_500},
				Properties: schema.Labels{"payment": "paypal"},
			},
			`{"attributes":{"loggedIn":"true","plan":"pro"},"items":[{"category":"Shoes & <Boots>","product":"SKU-7",` +
				`"profit":-5,"quantity":20000,"revenue":749000},{"product":"SKU-1"}],"numbers":{"weight":12500},` +
				`"properties":{"payment":"paypal"}}`,
		},
	} {
		check.Equal(t, want.details.EncodeDetails(), want.text, "encoded")
		decoded := must.Get(schema.DecodeDetails(want.text))(t)
		check.That(t, reflect.DeepEqual(decoded, want.details), "%q is decoded as %v", want.text, decoded)
	}
	_, err := schema.DecodeDetails("JPY")
	check.That(t, err != nil, "a text that is no JSON is decoded")
}

// TestDetailsAreEncodedAsJSON compares the canonical form with that of encoding/json, for texts of any characters.
func TestDetailsAreEncodedAsJSON(t *testing.T) {
	for _, text := range []string{"", "plain", `"\`, "a\tb\n\x01\x7f", "ü\u2028\u2029😀", "<&>", "\xff"} {
		d := schema.Details{
			Attributes: schema.Labels{"b": text, "a": "1"}, Currency: text, Properties: schema.Labels{"p": text},
			Items: []schema.Item{
				{Brand: text, Category: text, Name: text, Product: text, Variant: text, Profit: -1, Quantity: 2, Revenue: 3}, {},
			},
			Numbers: map[string]int64{"z": -5, "n": 0},
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		must.OK(t, encoder.Encode(d))
		check.Equal(t, d.EncodeDetails()+"\n", want.String(), "encoded with %q", text)
	}
}

// TestJoinedLabels checks that equal labels are one text, whatever their order.
func TestJoinedLabels(t *testing.T) {
	d := schema.Details{
		Attributes: schema.Labels{"plan": "pro", "loggedIn": "true"},
		Numbers:    map[string]int64{"weight": 12_500},
		Properties: schema.Labels{"payment": "paypal", "weights": "a=b"},
	}
	check.Equal(t, d.JoinAttributes(), "loggedIn=true\x00plan=pro\x00", "attributes")
	check.Equal(t, d.JoinProperties(), "payment=paypal\x00weight#12500\x00weights=a=b\x00", "properties")
	none := schema.Details{}
	check.Equal(t, none.JoinAttributes()+none.JoinProperties(), "", "without labels")
}
