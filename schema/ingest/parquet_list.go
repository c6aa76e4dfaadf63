package ingest

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// parquetList reads the value of the entry with a key in a list of objects with key and
// value, such as event_params of GA4.
type parquetList struct {
	name   string // the wanted key
	key    int    // column of the keys
	values []parquetColumn
}

type parquetColumn struct {
	column int
	text   func(parquet.Value) (string, error)
}

// listOf returns the list that a name such as event_params.plan selects, or nil. The leaves
// of a list are named event_params.key, or event_params.list.element.key.
func listOf(name string, leaves []*parquet.Column) *parquetList {
	for _, key := range leaves {
		path := key.Path()
		if path[len(path)-1] != "key" || key.MaxRepetitionLevel() != 1 {
			continue
		}
		entries := path[:len(path)-1]
		list := entries
		if n := len(entries); n > 2 && (entries[n-1] == "element" || entries[n-1] == "item" || entries[n-1] == "array") {
			list = entries[:n-2]
		}
		wanted, within := strings.CutPrefix(name, strings.Join(list, ".")+".")
		if !within {
			continue
		}
		found := &parquetList{name: wanted, key: key.Index()}
		for _, value := range leaves {
			inner, of := strings.CutPrefix(strings.Join(value.Path(), "."), strings.Join(entries, ".")+".value")
			if of && value.MaxRepetitionLevel() == 1 && (inner == "" || slices.Contains(typedValues, strings.TrimPrefix(inner, "."))) {
				found.values = append(found.values, parquetColumn{value.Index(), textOf(value.Type())})
			}
		}
		if len(found.values) > 0 {
			return found
		}
	}
	return nil
}

// entryValue returns the value of the first entry with the key in a row. It returns an empty
// string if there is none.
func (l *parquetList) entryValue(row parquet.Row) (string, error) {
	at := slices.IndexFunc(columnOf(row, l.key), func(v parquet.Value) bool { return !v.IsNull() && string(v.ByteArray()) == l.name })
	if at < 0 {
		return "", nil
	}
	for _, column := range l.values {
		if values := columnOf(row, column.column); at < len(values) && !values[at].IsNull() {
			return column.text(values[at])
		}
	}
	return "", nil
}

// columnOf returns the values of a column in a row, which has the values of a column one
// after the other.
func columnOf(row parquet.Row, column int) []parquet.Value {
	from := slices.IndexFunc(row, func(v parquet.Value) bool { return v.Column() == column })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(row) && row[to].Column() == column {
		to++
	}
	return row[from:to]
}
