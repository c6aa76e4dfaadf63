package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/currency"
)

// Details are what an event says besides its amounts and the 15 attributes of the visit. The table has them as one
// text, because most events have none. The fields are in the order of their names.
type Details struct {
	Attributes Labels           `json:"attributes,omitempty"` // the website's own ones, of the visitor
	Currency   string           `json:"currency,omitempty"`   // of all amounts, a code of ISO 4217; empty: that of the website
	Items      []Item           `json:"items,omitempty"`      // lines of the order that a goal is
	Numbers    map[string]int64 `json:"numbers,omitempty"`    // properties of a goal that are numbers, in 1/MoneyScale
	Properties Labels           `json:"properties,omitempty"` // properties of a goal that are texts
}

// Labels are texts by their names.
type Labels map[string]string

// Item is a line of an order. The numbers are in 1/MoneyScale, so that sums are exact.
type Item struct {
	Brand    string `json:"brand,omitempty"`
	Category string `json:"category,omitempty"`
	Name     string `json:"name,omitempty"`
	Product  string `json:"product"`
	Profit   int64  `json:"profit,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
	Revenue  int64  `json:"revenue,omitempty"`
	Variant  string `json:"variant,omitempty"`
}

// OtherLabel replaces the values above a limit: those of an attribute, and products.
const OtherLabel = "(other)"

// IsEmpty reports whether the event says nothing of this.
func (d *Details) IsEmpty() bool {
	hasLabels := len(d.Attributes)+len(d.Numbers)+len(d.Properties) > 0
	return !hasLabels && d.Currency == "" && len(d.Items) == 0
}

// EncodeDetails returns the canonical form: JSON with the names in order, without what is not set. It is empty if
// nothing is.
func (d *Details) EncodeDetails() string {
	if d.IsEmpty() {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // it sorts the names of labels
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

// Joined labels are one text: each as name=value, and a number as name#units, in the order of the names, each followed
// by labelEnd. Names have neither = nor #, and values have no labelEnd.
const (
	textMark   = "="
	numberMark = "#"
	labelEnd   = "\x00"
)

// JoinAttributes returns the own attributes as one text, empty if there are none.
func (d *Details) JoinAttributes() string {
	var joined strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		joined.WriteString(name + textMark + d.Attributes[name] + labelEnd)
	}
	return joined.String()
}

// JoinProperties returns the properties as one text, empty if there are none.
func (d *Details) JoinProperties() string {
	if len(d.Properties)+len(d.Numbers) == 0 {
		return ""
	}
	var labels []string
	for name, value := range d.Properties {
		labels = append(labels, name+textMark+value+labelEnd)
	}
	for name, units := range d.Numbers {
		labels = append(labels, name+numberMark+strconv.FormatInt(units, 10)+labelEnd)
	}
	slices.Sort(labels)
	return strings.Join(labels, "")
}

// IsCurrency reports whether a text is a code of ISO 4217, in capitals.
func IsCurrency(code string) bool {
	unit, err := currency.ParseISO(code)
	return err == nil && unit.String() == code
}
