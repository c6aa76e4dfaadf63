package calculator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/schema/faults"
)

// givenFields holds the fields of a JSON object.
type givenFields struct {
	reader *inputReader
	path   string
	values map[string]json.RawMessage
}

// parseObject parses the fields of an object. It returns false if the text is not an
// object.
func (r *inputReader) parseObject(path string, text json.RawMessage, names []string) (givenFields, bool) {
	f := givenFields{r, path, map[string]json.RawMessage{}}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		r.addFault(cmp.Or(path, wholeLine), string(text), `must be an object: {"`+names[0]+`": …}`)
		return f, false
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err == nil && isName {
			err = decoder.Decode(&value)
		}
		if err != nil {
			r.addFault(cmp.Or(path, wholeLine), "", "must be one JSON object: "+err.Error())
			return f, false
		}
		_, repeated := f.values[name]
		switch {
		case repeated:
			r.addFault(f.fieldPath(name), string(value), "must be given once")
		case slices.Contains(names, name):
			f.values[name] = value
		default:
			r.addFault(f.fieldPath(name), string(value), "unknown field; "+faults.SuggestName(faults.Clip(name, maxShown), names))
		}
	}
	return f, true
}

func (f givenFields) fieldPath(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// fieldValue returns the value of a field. The text is nil if the field is absent.
func (f givenFields) fieldValue(name string) givenValue { return f.valueOr(name, "") }

// valueOr returns the value of a field, or a default if the field is absent.
func (f givenFields) valueOr(name, otherwise string) givenValue {
	v := givenValue{reader: f.reader, path: f.fieldPath(name), text: f.values[name]}
	if v.text == nil || string(v.text) == "null" {
		v.text = nil
		if otherwise != "" {
			v.text = json.RawMessage(otherwise)
		}
	}
	return v
}

// refuseField adds an error if a field that is only valid for the given metric is present.
func (f givenFields) refuseField(name string, metric Metric) {
	if v := f.fieldValue(name); v.text != nil {
		f.reader.addFault(v.path, v.plainText(), fmt.Sprintf("is only valid for the metric %q", metric))
	}
}

// givenValue is the JSON text of a field; nil if the field is absent.
type givenValue struct {
	reader *inputReader
	path   string
	text   json.RawMessage
	unit   string // in error messages
}

// perCent adds the unit to error messages: 20, not 0.2.
func (v givenValue) perCent() givenValue {
	v.unit = " per cent"
	return v
}

func (v givenValue) mustBe(what string) {
	what = "must be " + what + v.unit
	if v.text == nil {
		what = "is missing: " + what
	}
	v.reader.addFault(v.path, v.plainText(), what)
}

// wantNumber adds an error about a number, with a hint if the value has quotes.
func (v givenValue) wantNumber(what string) {
	if bytes.HasPrefix(v.text, []byte(`"`)) {
		v.unit += ", without quotes"
	}
	v.mustBe(what)
}

// plainText returns the value as given; strings without their quotes.
func (v givenValue) plainText() string {
	var text string
	if json.Unmarshal(v.text, &text) == nil {
		return text
	}
	return string(v.text)
}

// parseList returns the elements of a list with a number of elements within bounds.
func (v givenValue) parseList(least, most int, want string) (elements []json.RawMessage) {
	switch {
	case v.text == nil || json.Unmarshal(v.text, &elements) != nil:
		v.mustBe(want)
	case len(elements) < least || len(elements) > most:
		v.mustBe(fmt.Sprintf("%s, have %d", want, len(elements)))
	}
	return elements
}

func (v givenValue) oneOf(allowed ...string) string {
	var text string
	if v.text == nil || json.Unmarshal(v.text, &text) != nil || !slices.Contains(allowed, text) {
		v.mustBe("one of " + strings.Join(allowed, ", "))
		return ""
	}
	return text
}

func (v givenValue) parseBoolean() bool {
	text := string(v.text)
	if text != "true" && text != "false" {
		v.mustBe("true or false")
	}
	return text == "true"
}

func (v givenValue) integerOf(allowed ...int64) int64 {
	n, ok := wholeNumber(v.text)
	if !ok || !slices.Contains(allowed, n) {
		texts := make([]string, len(allowed))
		for i, n := range allowed {
			texts[i] = strconv.FormatInt(n, 10)
		}
		v.wantNumber("one of " + strings.Join(texts, ", "))
	}
	return n
}

// parseInteger parses an integer within bounds. It returns false if the value is
// invalid or absent.
func (v givenValue) parseInteger(least, most int64) (int64, bool) {
	n, ok := wholeNumber(v.text)
	if !ok || n < least || n > most {
		v.wantNumber(fmt.Sprintf("an integer from %d to %d", least, most))
		return 0, false
	}
	return n, true
}

// parseNumber parses a number within bounds. It returns 0 if the value is invalid or
// absent.
func (v givenValue) parseNumber(least, most float64) float64 {
	x, err := strconv.ParseFloat(string(v.text), 64)
	if err == nil && least <= x && x <= most {
		return x
	}
	what := "a number"
	if least != -math.MaxFloat64 {
		what += fmt.Sprintf(" from %v", least)
	}
	if most != math.MaxFloat64 {
		what += fmt.Sprintf(" to %v", most)
	}
	v.wantNumber(what)
	return 0
}

// wholeNumber parses a JSON number whose value is an integer: 5, 5.0 and 5e0
// are equal.
func wholeNumber(text json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(string(text), 64)
	const reference = 1 << 53
	return int64(x), err == nil && x == math.Trunc(x) && math.Abs(x) <= reference
}
