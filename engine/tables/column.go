package tables

import (
	"reflect"
	"strings"
	"time"
)

// Contract is the version of the tables: the grain, the names, the types and the meaning of all columns. Within a
// contract, columns are only appended.
const Contract = 1

// Type is the type of a column.
type Type string

// The types.
const (
	Int64     Type = "int64"
	Double    Type = "double"
	String    Type = "string"
	Bool      Type = "bool"
	Timestamp Type = "timestamp" // milliseconds, UTC
	Date      Type = "date"
)

// Day is a day, in days since 1970.
type Day int32

// dayOf returns the day of a time in UTC.
func dayOf(t time.Time) Day {
	const seconds = int64(24 * time.Hour / time.Second)
	return Day(t.Unix() / seconds) //nolint:gosec // the years of events are bounded
}

// parseDay returns a day of the catalogue, such as 2026-03-02; nil: it is none.
func parseDay(text string) *Day {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return nil
	}
	return new(dayOf(at))
}

// String returns the day, such as 2026-03-02.
func (d Day) String() string { return time.Unix(int64(d)*86_400, 0).UTC().Format(time.DateOnly) }

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	Unit string `json:"unit,omitempty"`
	// what null means; empty: the column has no nulls
	Null    string `json:"null,omitempty"`
	Meaning string `json:"meaning"`
}

// field is a column and the field of a row that has it.
type field struct {
	Column
	index []int
}

// fieldsOf returns the columns of a type of rows: the tags of its fields are their only definition. The tag parquet has
// the name, unit the unit, null what null means, and means the meaning.
func fieldsOf(row reflect.Type) (fields []field) {
	for _, f := range reflect.VisibleFields(row) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		fields = append(fields, field{
			Column{name, typeOf(f.Type), f.Tag.Get("unit"), f.Tag.Get("null"), f.Tag.Get("means")}, f.Index,
		})
	}
	return fields
}

// typeOf returns the type of the column of a field.
func typeOf(t reflect.Type) Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return Timestamp
	case t == reflect.TypeFor[Day]():
		return Date
	case t.Kind() == reflect.Int64:
		return Int64
	case t.Kind() == reflect.Float64:
		return Double
	case t.Kind() == reflect.Bool:
		return Bool
	}
	return String
}
