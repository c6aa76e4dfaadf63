package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"golang.org/x/text/currency"
)

// Details are what an event says besides its amounts and the attributes of the visit. The table has them as one text,
// because most events have none.
type Details struct {
	Currency string `json:"currency,omitempty"` // of all amounts, a code of ISO 4217; empty: that of the website
}

// EncodeDetails returns the canonical form: JSON with the names in order, without what is not set. It is empty if
// nothing is.
func (d *Details) EncodeDetails() string {
	if *d == (Details{}) {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // the fields are in the order of their names
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		panic(err) // all fields can be encoded
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// DecodeDetails returns the details of a canonical form.
func DecodeDetails(text string) (d Details, err error) {
	if text == "" {
		return d, nil
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("details of an event: %w", err)
	}
	return d, nil
}

// IsCurrency reports whether a text is a code of ISO 4217, in capitals.
func IsCurrency(code string) bool {
	unit, err := currency.ParseISO(code)
	return err == nil && unit.String() == code
}
