package ingest

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fastjson"
)

// The formats of a file.
const (
	formatCSV    = "csv"
	formatNDJSON = "ndjson"
)

// maxLine bounds a line of NDJSON; a longer one is not an event.
const maxLine = 1 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	byteOrder = []byte{0xef, 0xbb, 0xbf}
)

// decompress reads gzip and zstd, known by their first bytes, and drops a
// byte order mark.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<20)
	start, err := buffered.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, gzipMagic):
		inner, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		buffered = bufio.NewReaderSize(inner, 1<<20)
	case bytes.HasPrefix(start, zstdMagic):
		inner, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		buffered = bufio.NewReaderSize(inner.IOReadCloser(), 1<<20)
	}
	if start, _ := buffered.Peek(len(byteOrder)); bytes.Equal(start, byteOrder) {
		_, _ = buffered.Discard(len(byteOrder))
	}
	return buffered, nil
}

// lineError is a line that cannot be read, after which the next one can.
type lineError struct{ error }

// lines gives the events of one file, line by line. A lineError concerns that
// line alone; another error but io.EOF ends the file.
type lines interface {
	next() (number int64, events []fields, err error)
}

// openLines chooses the reader of a file.
func openLines(r io.Reader, format string, m *Mapping, compiled *mapper) (lines, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	if format == formatCSV {
		return newCSVLines(plain, m, compiled)
	}
	scanner := bufio.NewScanner(plain)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	return &jsonLines{scanner: scanner, mapper: compiled}, nil
}

type csvLines struct {
	records *csv.Reader
	mapper  *mapper
	at      []int // column of the file, for each column of the mapper
	cells   []string
	record  int64
}

func newCSVLines(r io.Reader, m *Mapping, compiled *mapper) (*csvLines, error) {
	records := csv.NewReader(r)
	records.ReuseRecord = true
	if m != nil && m.Separator != "" {
		records.Comma, _ = utf8.DecodeRuneInString(m.Separator)
	}
	header, err := records.Read()
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	if compiled == nil {
		if compiled, err = headerMapper(header); err != nil {
			return nil, err
		}
	}
	l := &csvLines{records: records, mapper: compiled, cells: make([]string, len(compiled.columns))}
	for _, column := range compiled.columns {
		at := slices.Index(header, column)
		if at < 0 {
			return nil, fmt.Errorf("there is no column %q; have %s", column, strings.Join(header, ", "))
		}
		l.at = append(l.at, at)
	}
	return l, nil
}

// headerMapper maps columns named as our fields to those fields.
func headerMapper(header []string) (*mapper, error) {
	m := &Mapping{Fields: map[string]Source{}, Events: []EventMapping{{}}}
	for _, column := range header {
		if _, known := fieldByName(column); !known {
			return nil, fmt.Errorf("column %q is no field of an event; have %s, or give a mapping file", column, strings.Join(fieldNames[:], ", "))
		}
		m.Fields[column] = Source{Column: column}
	}
	return newMapper(m, nil)
}

func (l *csvLines) next() (int64, []fields, error) {
	record, err := l.records.Read()
	if errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	l.record++
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return int64(bad.StartLine), nil, lineError{bad.Err}
	}
	if err != nil {
		return 0, nil, err
	}
	line, _ := l.records.FieldPos(0)
	for i, at := range l.at {
		l.cells[i] = strings.Clone(record[at])
	}
	events, err := l.mapper.lineEvents(l.record, l.cells)
	if err != nil {
		err = lineError{err}
	}
	return int64(line), events, err
}

type jsonLines struct {
	scanner *bufio.Scanner
	mapper  *mapper // nil: the lines are in our own fields
	parser  fastjson.Parser
	number  int64
	cells   []string
}

func (l *jsonLines) next() (int64, []fields, error) {
	for l.scanner.Scan() {
		l.number++
		text := bytes.TrimSpace(l.scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		events, err := l.events(text)
		if err != nil {
			err = lineError{err}
		}
		return l.number, events, err
	}
	if errors.Is(l.scanner.Err(), bufio.ErrTooLong) {
		return l.number + 1, nil, fmt.Errorf("line %d is longer than %d bytes: is this a file of one JSON event a line?", l.number+1, maxLine)
	}
	if err := l.scanner.Err(); err != nil {
		return 0, nil, err
	}
	return 0, nil, io.EOF
}

func (l *jsonLines) events(text []byte) ([]fields, error) {
	value, err := l.parser.ParseBytes(text)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	object, err := value.Object()
	if err != nil {
		return nil, errors.New("want a JSON object")
	}
	if l.mapper == nil {
		event, err := objectFields(object)
		return []fields{event}, err
	}
	l.cells = l.cells[:0]
	for _, column := range l.mapper.columns {
		cell, err := scalar(object.Get(column))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", column, err)
		}
		l.cells = append(l.cells, cell)
	}
	return l.mapper.lineEvents(l.number, l.cells)
}

// scalar returns the text of a JSON string, number or boolean; of null and of
// an absent value the empty text.
func scalar(v *fastjson.Value) (string, error) {
	if v == nil {
		return "", nil
	}
	switch v.Type() {
	case fastjson.TypeNull:
		return "", nil
	case fastjson.TypeString:
		text, err := v.StringBytes()
		return string(text), err
	case fastjson.TypeNumber, fastjson.TypeTrue, fastjson.TypeFalse:
		return v.String(), nil
	case fastjson.TypeObject, fastjson.TypeArray:
	}
	return "", errors.New("want a text or a number")
}

// objectFields reads an event in our own fields. An unknown field, one given
// twice and one of the wrong type are errors, all of them named.
func objectFields(object *fastjson.Object) (fields, error) {
	var f fields
	var faults []string
	seen := map[string]bool{}
	object.Visit(func(key []byte, v *fastjson.Value) {
		name := string(key)
		if seen[name] {
			faults = append(faults, name+": given twice")
		}
		seen[name] = true
		var err error
		if at, known := fieldByName(name); known {
			f.values[at], err = scalar(v)
		} else if name == exposuresName {
			f.exposures, err = exposures(v)
		} else {
			err = fmt.Errorf("unknown field; have %s, %s", strings.Join(fieldNames[:], ", "), exposuresName)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", name, err))
		}
	})
	if len(faults) > 0 {
		return f, errors.New(strings.Join(faults, "; "))
	}
	return f, nil
}

func exposures(v *fastjson.Value) ([]exposure, error) {
	items, err := v.Array()
	if err != nil || len(items) == 0 {
		return nil, errors.New("want a list of {campaignId, variationId} or {widgetId, experimentId, variationId}")
	}
	list := make([]exposure, len(items))
	for i, item := range items {
		object, err := item.Object()
		if err != nil {
			return nil, fmt.Errorf("[%d]: want an object", i)
		}
		object.Visit(func(key []byte, v *fastjson.Value) {
			if err != nil {
				return
			}
			var text string
			if text, err = scalar(v); err != nil {
				return
			}
			switch string(key) {
			case "campaignId":
				list[i].campaignID = text
			case "widgetId":
				list[i].widgetID = text
			case "experimentId":
				list[i].experimentID = text
			case "variationId":
				list[i].variationID = text
			default:
				err = fmt.Errorf("unknown field %q", key)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return list, nil
}
