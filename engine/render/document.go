package render

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Document is the JSON of a body as its members, in order. Members can be replaced and added without encoding the
// others again.
type Document []Member

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// NewDocument returns the members of a body that encodes as a JSON object. It returns an error if JSON cannot express a
// value.
func NewDocument(body any) (Document, error) {
	text, err := JSON(body)
	if err != nil {
		return nil, err
	}
	return ReadDocument(text)
}

// ReadDocument returns the members of a JSON object, also those with equal names.
func ReadDocument(text []byte) (Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	start, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, errors.New("the document is not an object")
	}
	var members Document
	for decoder.More() {
		var m Member
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m.Name, _ = name.(string) // names of members are strings
		if err := decoder.Decode(&m.Value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// ReplaceMember replaces the value of a member if the document has it.
func (d Document) ReplaceMember(name string, value any) error {
	for i := range d {
		if d[i].Name != name {
			continue
		}
		encoded, err := EncodeValue(value)
		d[i].Value = encoded
		return err
	}
	return nil
}

// JSON returns the body, as the function JSON does.
func (d Document) JSON() []byte {
	var text bytes.Buffer
	text.Grow(d.Size())
	separator := byte('{')
	for i := range d {
		text.WriteByte(separator)
		text.WriteByte('"') // names are Go identifiers, which need no escapes
		text.WriteString(d[i].Name)
		text.WriteString(`":`)
		text.Write(d[i].Value)
		separator = ','
	}
	text.WriteString("}\n")
	return text.Bytes()
}

// Size returns the length of the body, in bytes.
func (d Document) Size() int {
	const punctuation = len(`,"":`)
	size := len("}\n")
	for i := range d {
		size += punctuation + len(d[i].Name) + len(d[i].Value)
	}
	return size
}
