package ingest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// mapper is a compiled Mapping, with the look-up files in memory.
type mapper struct {
	columns []string // names of the columns, in the order of a line's cells
	needed  []string // columns that at least one line must have
	events  []mappedEvent
}

type mappedEvent struct {
	when   []mappedCondition
	fields []mappedField
}

type mappedCondition struct {
	Condition
	cell  int
	comma bool // a number has a decimal comma
}

type mappedField struct {
	field  field
	source Source
	cell   int
	zone   *time.Location
	comma  bool // a number has a decimal comma
	lookup map[string]string
}

// newMapper compiles a mapping. It reads the look-up files with open.
func newMapper(m *Mapping, open func(file string) (io.ReadCloser, error)) (*mapper, error) {
	compiled := &mapper{}
	lookups := map[Lookup]map[string]string{}
	for _, event := range m.Events {
		sources := maps.Clone(m.Fields)
		if sources == nil {
			sources = map[string]Source{}
		}
		maps.Copy(sources, event.Fields)
		var e mappedEvent
		for _, c := range event.When {
			e.when = append(e.when, mappedCondition{c, compiled.columnIndex(c.Column), m.Decimal == decimalComma})
			compiled.needed = append(compiled.needed, c.Column)
		}
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			f, err := compiled.compileField(name, sources[name], m.Encoding, lookups, open)
			if err != nil {
				return nil, err
			}
			f.comma = m.Decimal == decimalComma && f.field.isAmount()
			e.fields = append(e.fields, f)
		}
		compiled.events = append(compiled.events, e)
	}
	return compiled, nil
}

func (m *mapper) columnIndex(name string) int {
	if at := slices.Index(m.columns, name); at >= 0 {
		return at
	}
	m.columns = append(m.columns, name)
	return len(m.columns) - 1
}

func (m *mapper) compileField(name string, s Source, encoding string, lookups map[Lookup]map[string]string, open func(string) (io.ReadCloser, error)) (mappedField, error) {
	f := mappedField{source: s}
	f.field, _ = fieldByName(name)
	if s.Column != "" {
		f.cell = m.columnIndex(s.Column)
		if s.Default == nil {
			m.needed = append(m.needed, s.Column)
		}
	}
	var err error
	if f.zone, err = time.LoadLocation(s.Zone); err != nil {
		return f, err
	}
	if s.Lookup != nil {
		if _, read := lookups[*s.Lookup]; !read {
			if lookups[*s.Lookup], err = readLookup(*s.Lookup, encoding, open); err != nil {
				return f, fmt.Errorf("lookup %s: %w", s.Lookup.File, err)
			}
		}
		f.lookup = lookups[*s.Lookup]
	}
	return f, nil
}

func readLookup(l Lookup, encoding string, open func(string) (io.ReadCloser, error)) (map[string]string, error) {
	file, err := open(l.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	plain, err := decompressReader(file)
	if err != nil {
		return nil, err
	}
	if plain, err = decodeText(plain, encoding); err != nil {
		return nil, err
	}
	records := csv.NewReader(plain)
	records.ReuseRecord = true
	if records.Comma, err = separatorOf(plain); err != nil {
		return nil, err
	}
	header, err := records.Read()
	if err != nil {
		return nil, err
	}
	key, value := slices.Index(header, l.Key), slices.Index(header, l.Column)
	if key < 0 || value < 0 {
		return nil, fmt.Errorf("the file must have the columns %q and %q, has %q", l.Key, l.Column, header)
	}
	found := map[string]string{}
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found[record[key]] = record[value]
	}
}

// lineEvents returns the fields of each event of a line.
func (m *mapper) lineEvents(record int64, cells []string) ([]fields, error) {
	var events []fields
	for i := range m.events {
		e := &m.events[i]
		holds, err := e.holdsFor(cells)
		if err != nil {
			return nil, err
		}
		if !holds {
			continue
		}
		var f fields
		for j := range e.fields {
			value, err := e.fields[j].cellValue(record, cells)
			if err != nil {
				return nil, err
			}
			f.values[e.fields[j].field] = value
		}
		events = append(events, f)
	}
	return events, nil
}

func (e *mappedEvent) holdsFor(cells []string) (bool, error) {
	for i := range e.when {
		if holds, err := e.when[i].holdsFor(cells[e.when[i].cell]); !holds {
			return false, err
		}
	}
	return true, nil
}

func (f *mappedField) cellValue(record int64, cells []string) (string, error) {
	s := &f.source
	switch {
	case s.RowNumber:
		return strconv.FormatInt(record, 10), nil
	case s.Column == "":
		return string(s.Value), nil
	}
	value := cells[f.cell]
	if value == "" && s.Default != nil && s.Map == nil && s.Lookup == nil {
		value = string(*s.Default)
	}
	var err error
	if f.lookup != nil {
		found, known := f.lookup[value]
		if value, err = f.replaceValue(value, text(found), known, s.Lookup.File); err != nil {
			return "", err
		}
	}
	if s.Map != nil {
		found, known := s.Map[text(value)]
		if value, err = f.replaceValue(value, found, known, "the map"); err != nil {
			return "", err
		}
	}
	if s.Format != "" && value != "" {
		at, err := toUnixMilliseconds(value, s.Format, f.zone)
		if err != nil {
			return "", fmt.Errorf("time: column %s: %q: %w", s.Column, clipText(value), err)
		}
		return strconv.FormatInt(at, 10), nil
	}
	if f.comma {
		if value, err = withDecimalPoint(value); err != nil {
			return "", fmt.Errorf("%s: %w", fieldNames[f.field], err)
		}
	}
	return value, nil
}

// replaceValue returns the replacement by if the value is known, and the default of
// the field otherwise. It returns an error if the field has no default.
func (f *mappedField) replaceValue(value string, by text, known bool, in string) (string, error) {
	if known {
		return string(by), nil
	}
	if f.source.Default != nil {
		return string(*f.source.Default), nil
	}
	return "", fmt.Errorf("%s: column %s: %q is not in %s: add the value, or set a default", fieldNames[f.field], f.source.Column, clipText(value), in)
}
