package schema

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Identity is the text that identifies a fact whose hash is stored: what it is of, the version of its fields, and then
// each field with its name, in order. Names and values are quoted, so two facts with different fields have different
// texts. A stored hash means the same forever: if the meaning of a field changes, or a field is added, the version
// must be increased, and what was stored with the former one is about another fact.
type Identity struct{ text []byte }

// NewIdentity returns an identity without fields.
func NewIdentity(of string, version int) *Identity {
	i := &Identity{}
	i.AddInteger(of, int64(version))
	return i
}

// Add adds a field.
func (i *Identity) Add(name, value string) {
	i.text = append(i.text, name...)
	i.text = append(i.text, '=')
	i.text = strconv.AppendQuote(i.text, value)
	i.text = append(i.text, '\n')
}

// AddInteger adds a whole number.
func (i *Identity) AddInteger(name string, value int64) { i.Add(name, strconv.FormatInt(value, 10)) }

// AddNumber adds a number, written with the fewest digits that are read as the same number.
func (i *Identity) AddNumber(name string, value float64) {
	i.Add(name, strconv.FormatFloat(value, 'g', -1, 64))
}

// AddDuration adds a duration as a whole number of seconds. A part of a second is dropped.
func (i *Identity) AddDuration(name string, value time.Duration) {
	i.AddInteger(name, int64(value/time.Second))
}

// AddSubject adds the ids of a subject.
func (i *Identity) AddSubject(s Subject) {
	i.AddInteger("website", s.WebsiteID)
	i.Add("subject", string(s.Kind))
	i.AddInteger("id", s.ID)
	i.AddInteger("experiment", s.ExperimentID)
}

// String returns the text.
func (i *Identity) String() string { return string(i.text) }

// Hash returns the xxHash64 of the text.
func (i *Identity) Hash() uint64 { return xxhash.Sum64(i.text) }

// Hex returns 128 bits of the text as 32 hexadecimal digits: the xxHash64 of the text, and that of the text after
// "lifthouse ".
func (i *Identity) Hex() string {
	second := xxhash.New()
	_, _ = second.WriteString("lifthouse ") // never fails
	_, _ = second.Write(i.text)
	digest := binary.LittleEndian.AppendUint64(nil, i.Hash())
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(digest, second.Sum64()))
}
