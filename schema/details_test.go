package schema_test

import (
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
	} {
		check.Equal(t, want.details.EncodeDetails(), want.text, "encoded")
		check.Equal(t, must.Get(schema.DecodeDetails(want.text))(t), want.details, "decoded from %q", want.text)
	}
	_, err := schema.DecodeDetails("JPY")
	check.That(t, err != nil, "a text that is no JSON is decoded")
}
