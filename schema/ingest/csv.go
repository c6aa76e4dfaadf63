package ingest

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"lifthouse/schema/faults"
)

type csvLines struct {
	records *csv.Reader
	bounded *boundedReader
	mapper  *mapper
	places  []place // columns of the file for the mapper's columns
	header  int     // number of columns
	decoded bool    // the file has another encoding than UTF-8
	pad     bool    // rows may lack cells at their end
	record  int64
	ended   int // the line on which the last record ended
}

func newCSVLines(r *bufio.Reader, m *Mapping, compiled *mapper) (*csvLines, error) {
	if m == nil {
		m = &Mapping{}
	}
	plain := r
	r, err := decodeText(plain, m.Encoding)
	if err != nil {
		return nil, err
	}
	separator, _ := utf8.DecodeRuneInString(m.Separator)
	if m.Separator == "" {
		if separator, err = separatorOf(r); err != nil {
			return nil, err
		}
	}
	bounded := &boundedReader{r: r, left: maxLine}
	records := csv.NewReader(bounded)
	records.ReuseRecord, records.Comma, records.FieldsPerRecord = true, separator, -1
	header, err := records.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: must have a header with the names of the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	if compiled == nil {
		if compiled, err = headerMapper(header); err != nil {
			return nil, err
		}
	}
	l := &csvLines{records: records, bounded: bounded, mapper: compiled, header: len(header), decoded: r != plain, pad: m.ShortRows, ended: 1}
	if l.places, err = columnPlaces(compiled, header); err != nil {
		return nil, errors.Join(err, encodingFault("header", strings.Join(header, string(separator)), r != plain))
	}
	return l, nil
}

// missingColumns implements lines. It returns nil, because missing columns are
// detected when the header is read.
func (l *csvLines) missingColumns() error { return nil }

// headerMapper returns a mapper for columns with Lifthouse's field names.
func headerMapper(header []string) (*mapper, error) {
	m := &Mapping{Fields: map[string]Source{}, Events: []EventMapping{{}}}
	for _, column := range header {
		if _, known := fieldByName(column); !known {
			return nil, fmt.Errorf("column %q is not a field of an event: %s; for other names use a mapping file", column, faults.OneOf(fieldNames[:]...))
		}
		m.Fields[column] = Source{Column: column}
	}
	return newMapper(m, nil)
}

func (l *csvLines) readPart() (parse, error) {
	rows := newRows(l.mapper, l.places)
	rows.text, rows.converted = true, l.decoded
	for begun := l.records.InputOffset(); rows.rowCount() < partRows && l.records.InputOffset()-begun < partSize; {
		if err := l.readRecord(rows); err != nil {
			return rows.parseRows, err
		}
	}
	return rows.parseRows, nil
}

// readRecord reads one record. It returns io.EOF after the last record.
func (l *csvLines) readRecord(rows *rows) error {
	l.bounded.left = maxLine
	record, err := l.records.Read()
	if errors.Is(err, io.EOF) {
		return err
	}
	l.record++
	if err == nil {
		l.ended, _ = l.records.FieldPos(len(record) - 1)
		l.ended += strings.Count(record[len(record)-1], "\n")
		record, err = l.fitRecord(record)
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		l.ended = max(bad.Line, bad.StartLine+strings.Count(strings.Join(record, ""), "\n"))
		err := badRecord(bad, l.ended)
		var single lineError
		if errors.As(err, &single) {
			rows.addRow(int64(bad.StartLine), l.record)
			rows.setFault(single)
			return nil
		}
		return err
	}
	if errors.Is(err, errLongRecord) {
		return fmt.Errorf("line %d: %w: check for an unclosed quote", l.ended+1, err)
	}
	if err != nil {
		return err
	}
	line, _ := l.records.FieldPos(0)
	cells := rows.addRow(int64(line), l.record)
	for i, place := range l.places {
		cells[i] = record[place.column]
	}
	return nil
}

// fitRecord returns a record with as many cells as the header. It returns an error if extra
// cells have values, or if cells are missing and the mapping does not allow short rows.
func (l *csvLines) fitRecord(record []string) ([]string, error) {
	n := len(record)
	if n == l.header || n > l.header && strings.Join(record[l.header:], "") == "" {
		return record, nil
	}
	reason := fmt.Errorf("%w: %d, the header has %d", csv.ErrFieldCount, n, l.header)
	if n < l.header && l.pad {
		return append(record, make([]string, l.header-n)...), nil
	}
	if n < l.header {
		reason = fmt.Errorf("%w: if empty cells at the end are left out, set shortRows: true in the mapping", reason)
	}
	line, _ := l.records.FieldPos(0)
	return record, &csv.ParseError{StartLine: line, Line: line, Column: 1, Err: reason}
}

// maxSpan is the maximum number of lines that an invalid record may span and still
// be rejected alone. A longer record means an unclosed quote, which ends the import.
const maxSpan = 100

func badRecord(bad *csv.ParseError, ended int) error {
	switch {
	case ended-bad.StartLine > maxSpan:
		return fmt.Errorf("line %d: a quote extends the record to line %d, check for an unclosed quote: %w", bad.StartLine, ended, bad.Err)
	case ended > bad.StartLine:
		return lineError{fmt.Errorf("a quote extends the record to line %d: %w", ended, bad.Err)}
	}
	return lineError{bad.Err}
}

var errLongRecord = fmt.Errorf("the record is longer than %d bytes", maxLine)

// boundedReader returns an error if a record is too long, because the CSV reader
// holds a record in memory.
type boundedReader struct {
	r    io.Reader
	left int // bytes that remain for the current record
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRecord
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}
