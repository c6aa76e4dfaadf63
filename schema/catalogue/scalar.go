package catalogue

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"lifthouse/schema"
)

// Date is a time in a catalogue file: RFC 3339, or a day, which means its start
// in UTC.
type Date struct{ time.Time }

const dateFormat = "must be RFC 3339 such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01"

func parseDate(text string) (Date, error) {
	for _, parse := range []func(string) (time.Time, error){schema.ParseTime, func(text string) (time.Time, error) { return time.Parse(time.DateOnly, text) }} {
		if t, err := parse(text); err == nil {
			return Date{t.UTC()}, nil
		}
	}
	return Date{}, fmt.Errorf("%q: %s", text, dateFormat)
}

// UnmarshalYAML parses a date.
func (d *Date) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	var err error
	*d, err = parseDate(text)
	return err
}

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	number      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// Tags that YAML gives to scalars.
const (
	nullTag = "!!null"
	boolTag = "!!bool"
)

// stringTags are the tags of texts, with and without quotes. A date without quotes is a text, too.
var stringTags = []string{"!!str", "!!timestamp"}

// typeError returns what is allowed if the node is not a literal of the type, and an
// empty string otherwise.
func typeError(want reflect.Type, node *yaml.Node) string {
	text, quoted := node.Value, slices.Contains(stringTags, node.Tag)
	switch want.Kind() {
	case reflect.String:
		if !quoted {
			return "must be a string: add quotes"
		}
	case reflect.Bool:
		if node.Tag != boolTag {
			return "must be true or false"
		}
	case reflect.Struct:
		if want == reflect.TypeFor[schema.Cap]() {
			if _, err := schema.ParseCap(text); err != nil {
				return err.Error()
			}
			return ""
		}
		if _, err := parseDate(text); !quoted || err != nil {
			return dateFormat
		}
	case reflect.Float64:
		if quoted || !number.MatchString(text) {
			return "must be a number in decimal digits, without quotes or leading zeros"
		}
	default:
		if quoted || !wholeNumber.MatchString(text) {
			return "must be an integer in decimal digits, without quotes or leading zeros"
		}
	}
	return ""
}
