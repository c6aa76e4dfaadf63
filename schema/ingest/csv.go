package ingest

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"lifthouse/schema"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// csvTable is a CSV file, of which the header was read.
type csvTable struct {
	*csv.Reader
	header  []string
	bounded *boundedReader
	decoded bool // the file has another encoding than UTF-8
}

// openTable reads the header.
func openTable(r *bufio.Reader, encoding string, separator rune) (*csvTable, error) {
	text, err := decodeText(r, encoding)
	if err != nil {
		return nil, err
	}
	t := &csvTable{bounded: &boundedReader{r: text}, decoded: text != r}
	t.Reader = csv.NewReader(t.bounded)
	t.Comma = separator
	t.FieldsPerRecord = -1
	t.header, err = t.readCells()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: must have a header with the names of the columns")
	}
	return t, schema.WrapError(err, "read header")
}

// readCells reads the next record.
func (t *csvTable) readCells() ([]string, error) {
	t.bounded.left = maxLine
	return t.Read()
}

type csvLines struct {
	*csvTable
	mapper *mapper
	places []place // columns of the file for the mapper's columns
	pad    bool    // rows may lack cells at their end
	record int64
	ended  int // the line on which the last record ended
}

func newCSVLines(r *bufio.Reader, m *Mapping, compiled *mapper) (*csvLines, error) {
	if m == nil {
		m = &Mapping{}
	}
	separator, _ := utf8.DecodeRuneInString(cmp.Or(m.Separator, ","))
	table, err := openTable(r, m.Encoding, separator)
	if err != nil {
		return nil, err
	}
	table.ReuseRecord = true
	l := &csvLines{csvTable: table, pad: m.ShortRows, ended: 1}
	l.mapper, l.places, err = placeColumns(compiled, l.header)
	if err != nil {
		return nil, errors.Join(err, encodingFault("header", strings.Join(l.header, string(l.Comma)), l.decoded))
	}
	return l, nil
}

func (l *csvLines) readPart() (parse, error) {
	rows := newRows(l.mapper, l.places)
	rows.text = true
	rows.converted = l.decoded
	for begun := l.InputOffset(); len(rows.lines) < partRows && l.InputOffset()-begun < partSize; {
		if err := l.readRecord(rows); err != nil {
			return rows.parseRows, err
		}
	}
	return rows.parseRows, nil
}

// readRecord reads one record. It returns io.EOF after the last record.
func (l *csvLines) readRecord(rows *rows) error {
	record, err := l.readCells()
	if errors.Is(err, io.EOF) {
		return err
	}
	l.record++
	var line int
	if err == nil {
		last := len(record) - 1
		line, _ = l.FieldPos(0)
		l.ended, _ = l.FieldPos(last)
		l.ended += strings.Count(record[last], "\n")
		record, err = l.fitHeader(record, line)
	}
	if bad, is := errors.AsType[*csv.ParseError](err); is {
		return l.rejectRecord(rows, record, bad)
	}
	if errors.Is(err, errLongRecord) {
		return fmt.Errorf("line %d: %w: check for an unclosed quote", l.ended+1, err)
	}
	if err != nil {
		return err
	}
	cells := rows.addRow(int64(line), l.record)
	for i, place := range l.places {
		if place.column >= 0 {
			cells[i] = record[place.column]
		}
	}
	return nil
}

// fitHeader returns a record with at least a cell for each column. It may have more cells than the header if they are
// empty, and fewer if the mapping allows it; otherwise the error is a *csv.ParseError.
func (l *csvLines) fitHeader(record []string, line int) ([]string, error) {
	n, columns := len(record), len(l.header)
	isShort := n < columns && !l.pad
	isLong := n > columns && strings.Join(record[columns:], "") != ""
	switch {
	case isShort, isLong:
		reason := fmt.Errorf("%w: %d, the header has %d", csv.ErrFieldCount, n, columns)
		if isShort {
			reason = fmt.Errorf("%w: if empty cells at the end are left out, set shortRows: true in the mapping",
				reason)
		}
		return record, &csv.ParseError{StartLine: line, Line: line, Column: 1, Err: reason}
	case n < columns:
		record = append(record, make([]string, columns-n)...)
	}
	return record, nil
}

// rejectRecord adds a row with the fault of a record. It returns an error if a quote extends the record over so many
// lines that it must be an unclosed one.
func (l *csvLines) rejectRecord(rows *rows, record []string, bad *csv.ParseError) error {
	l.ended = max(bad.Line, bad.StartLine+strings.Count(strings.Join(record, ""), "\n"))
	fault := bad.Err
	switch spanned := l.ended - bad.StartLine; {
	case spanned > maxSpan:
		return fmt.Errorf("line %d: a quote extends the record to line %d, check for an unclosed quote: %w",
			bad.StartLine, l.ended, bad.Err)
	case spanned > 0:
		fault = fmt.Errorf("a quote extends the record to line %d: %w", l.ended, bad.Err)
	}
	rows.addRow(int64(bad.StartLine), l.record)
	rows.setFault(fault)
	return nil
}

// maxSpan is the maximum number of lines that an invalid record may span and still be rejected alone. A longer record
// means an unclosed quote, which ends the import.
const maxSpan = 100

var errLongRecord = fmt.Errorf("the record is longer than %d bytes", maxLine)

// boundedReader returns an error if a record is too long, because the CSV reader holds a record in memory.
type boundedReader struct {
	r    io.Reader
	left int // bytes that remain for the current record
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRecord
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

// decodeText converts a text to UTF-8. A text that begins with the byte order mark of UTF-16 is UTF-16, whatever the
// given encoding.
func decodeText(r *bufio.Reader, name string) (*bufio.Reader, error) {
	start, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	encoding := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	if mark := string(start); mark != "\xff\xfe" && mark != "\xfe\xff" {
		if name == "" {
			return r, nil
		}
		encoding, err = htmlindex.Get(name)
		if err != nil {
			return nil, err
		}
		if canonical, _ := htmlindex.Name(encoding); canonical == "utf-8" {
			return r, nil // do not replace invalid bytes
		}
	}
	return bufio.NewReaderSize(transform.NewReader(r, encoding.NewDecoder()), maxLine), nil
}

// withDecimalPoint returns a number that has a decimal comma with a decimal point.
func withDecimalPoint(value string) (string, error) {
	if strings.ContainsAny(value, ".' \u00a0\u202f") {
		return "", fmt.Errorf("%q: must have no thousands separators and, because the mapping has decimal: \",\", no "+
			"decimal point", clipText(value))
	}
	return strings.Replace(value, ",", ".", 1), nil
}

var (
	commaNumber   = regexp.MustCompile(`^-?[0-9]*,[0-9]+$`)
	groupedNumber = regexp.MustCompile(`^-?[1-9][0-9]{0,2}([.,'’ \x{a0}\x{202f}][0-9]{3})+([.,][0-9]+)?$`)
)

// numberHint returns a hint to append to the error about a value that is not a number.
func numberHint(value string) string {
	comma, grouped := commaNumber.MatchString(value), groupedNumber.MatchString(value)
	switch {
	case comma && grouped:
		return `; if the comma is the decimal separator, set decimal: "," in the mapping; if it separates thousands, export the numbers without it`
	case comma:
		return `; for decimal commas, set decimal: "," in the mapping`
	case grouped:
		return "; export the numbers without thousands separators"
	}
	return ""
}

// encodingFault returns an error if a cell is not text in the encoding of the file. converted is true if the file had
// another encoding than UTF-8.
func encodingFault(column, cell string, converted bool) error {
	switch {
	case !utf8.ValidString(cell):
		return fmt.Errorf("%s: %q: must be UTF-8: if the file has another encoding, name it in the mapping, for "+
			"example encoding: windows-1252", column, clipText(strings.ToValidUTF8(cell, "�")))
	case converted && strings.ContainsRune(cell, utf8.RuneError):
		return fmt.Errorf("%s: %q: has characters that could not be decoded: check encoding in the mapping", column,
			clipText(cell))
	}
	return nil
}
