package ingest

import (
	"fmt"
	"unicode/utf8"
)

// rows are lines with their cells, in the order of the mapper's columns.
type rows struct {
	mapper *mapper
	places []place
	lines  []row
	cells  []string
	// text: the cells must be valid. converted: from another encoding than UTF-8.
	text, converted bool
}

// row is a line, or the record that begins on it.
type row struct {
	number int64 // line number
	record int64 // record number
	fault  error // the reason if the cells could not be read
}

func newRows(m *mapper, at []place) *rows {
	return &rows{mapper: m, places: at, lines: make([]row, 0, partRows), cells: make([]string, 0, partRows*len(m.columns))}
}

func (r *rows) rowCount() int { return len(r.lines) }

// addRow appends a row and returns its cells, which the caller fills.
func (r *rows) addRow(number, record int64) []string {
	r.lines = append(r.lines, row{number: number, record: record})
	from := len(r.cells)
	r.cells = r.cells[:from+len(r.mapper.columns)]
	return r.cells[from:]
}

// setFault sets the error of the last row.
func (r *rows) setFault(fault error) { r.lines[len(r.lines)-1].fault = fault }

func (r *rows) parseRows(take func(line origin, events []fields, err error)) {
	columns := len(r.mapper.columns)
	var reader jsonReader
	for i, line := range r.lines {
		if line.fault != nil {
			take(origin{number: line.number}, nil, line.fault)
			continue
		}
		cells := r.cells[i*columns : (i+1)*columns]
		if err := r.extractNested(&reader, cells); err != nil {
			take(origin{number: line.number, columns: r.mapper.columns, cells: cells}, nil, err)
			continue
		}
		events, err := r.mapper.lineEvents(line.record, cells)
		if invalid := r.textFault(cells); invalid != nil {
			err = invalid
		}
		take(origin{number: line.number, columns: r.mapper.columns, cells: cells}, events, err)
	}
}

// textFault returns an error if a cell is not valid text.
func (r *rows) textFault(cells []string) error {
	if !r.text {
		return nil
	}
	for i, cell := range cells {
		if isASCII(cell) {
			continue
		}
		if err := encodingFault(r.mapper.columns[i], cell, r.converted); err != nil {
			return err
		}
	}
	return nil
}

// isASCII reports whether a text is ASCII. It is inlined: most cells are short.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// extractNested replaces cells that contain a JSON object by the requested value
// in the object.
func (r *rows) extractNested(reader *jsonReader, cells []string) (err error) {
	for i, place := range r.places {
		if place.inner == "" {
			continue
		}
		if cells[i], err = reader.cellValue(cells[i], place.inner); err != nil {
			return fmt.Errorf("%s: %w", r.mapper.columns[i], err)
		}
	}
	return nil
}
