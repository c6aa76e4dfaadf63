package schema_test

import (
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
