package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"lifthouse/schema/faults"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fastjson"
)

// The formats of a file.
const (
	formatCSV     = "csv"
	formatNDJSON  = "ndjson"
	formatParquet = "parquet"
)

const (
	maxLine      = 1 << 20   // bytes of a line of NDJSON, of a record of CSV and of an item of a request
	maxWindow    = 128 << 20 // bytes of the window of a zstd frame: the default maximum of the zstd command
	maxKeys      = 100       // keys of a file in an error message
	maxFaults    = 10        // invalid keys in the error of a line
	maxExposures = 100       // of an event
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	byteOrder = []byte{0xef, 0xbb, 0xbf}
)

// decompressFile detects gzip and zstd by their first bytes and decompresses them. It removes a byte order mark.
func decompressFile(r io.Reader) (*bufio.Reader, error) {
	return decompressReader(r, maxLine, maxWindow)
}

// decompressReader is like decompressFile, with a size of its buffers and a maximum window size of a zstd frame.
func decompressReader(r io.Reader, buffer int, window uint64) (*bufio.Reader, error) {
	buffered := bufio.NewReaderSize(r, buffer)
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
		buffered = bufio.NewReaderSize(inner, buffer)
	case bytes.HasPrefix(start, zstdMagic):
		inner, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window),
			zstd.WithDecoderMaxMemory(math.MaxInt64))
		if err != nil {
			return nil, err
		}
		buffered = bufio.NewReaderSize(inner.IOReadCloser(), buffer)
	}
	if start, _ := buffered.Peek(len(byteOrder)); bytes.Equal(start, byteOrder) {
		_, _ = buffered.Discard(len(byteOrder))
	}
	return buffered, nil
}

// parse parses some lines and calls take for each. The arguments of take are valid until the next call. parse must be
// called once. An error concerns only its line.
type parse func(take func(line origin, events []fields, err error))

// origin is a line, or the record that begins on the line.
type origin struct {
	number  int64
	text    []byte   // the text of a JSON line, valid until the next line is parsed
	columns []string // the mapped columns of a record
	cells   []string
}

// rejectText returns the beginning of the line, as it is stored if the line is rejected, without the values of the
// hidden columns.
func (o origin) rejectText(hidden map[string]bool) string {
	if o.cells == nil {
		return hideKeys(string(o.text[:min(len(o.text), maxRejectText)]), hidden)
	}
	var text strings.Builder
	for i, cell := range o.cells {
		if hidden[o.columns[i]] && cell != "" {
			cell = "…"
		}
		if text.Len() < maxRejectText {
			_, _ = fmt.Fprintf(&text, "%s=%s ", o.columns[i], cell)
		}
	}
	return rejectText(strings.TrimSpace(text.String()))
}

// lines reads a file part by part. Reading and parsing are separate, so parts can be parsed concurrently.
type lines interface {
	// readPart returns the next lines. With the last lines it also returns an error, which is io.EOF at the end of the
	// file.
	readPart() (parse, error)
}

// partSize is the approximate size of a part in bytes, and partRows is the maximum number of its rows. Parts are large
// enough for a low overhead, and small enough for low memory.
const (
	partSize = 1 << 20
	partRows = 4096
)

// openLines returns the reader of an NDJSON or CSV file.
func openLines(r io.Reader, format string, m *Mapping, compiled *mapper) (lines, error) {
	plain, err := decompressFile(r)
	if err != nil {
		return nil, err
	}
	if format == formatCSV {
		return newCSVLines(plain, m, compiled)
	}
	l := &jsonLines{text: plain, mapper: compiled, keys: map[string]bool{}}
	if compiled != nil && !compiled.anyColumns {
		l.present = make([]atomic.Bool, len(compiled.columns))
	}
	return l, nil
}

type jsonLines struct {
	text   *bufio.Reader
	mapper *mapper // nil: the lines have Lifthouse's field names
	number int64

	mu      sync.Mutex
	keys    map[string]bool // keys of the lines, at most maxKeys
	present []atomic.Bool   // whether any line had the mapper's column
}

// partBuffers are buffers for the text of parts.
var partBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, partSize+partSize/16)) }}

// readPart implements lines. A part ends after a line that is too long.
func (l *jsonLines) readPart() (parse, error) {
	first := l.number + 1
	text := partBuffers.Get().(*[]byte)
	parse := func(take func(origin, []fields, error)) {
		reader := jsonReaders.Get().(*jsonReader)
		number := first
		defer jsonReaders.Put(reader)
		for line := range bytes.Lines(*text) {
			line = bytes.TrimSpace(line)
			if len(line) > 0 {
				events, err := l.parseEvents(reader, number, line)
				take(origin{number: number, text: line}, events, err)
			}
			number++
		}
		*text = (*text)[:0]
		partBuffers.Put(text)
	}
	for len(*text) < partSize {
		line, err := l.readLine()
		*text = append(*text, line...)
		if err == nil {
			continue
		}
		if last := l.number; errors.Is(err, errLongLine) {
			return func(take func(origin, []fields, error)) {
				parse(take)
				take(origin{number: last}, nil, err)
			}, nil
		}
		return parse, err
	}
	return parse, nil
}

var errLongLine = fmt.Errorf("longer than %d bytes: the file must have one JSON event per line", maxLine)

// readLine reads the next line. If the line is too long, readLine skips it and returns errLongLine.
func (l *jsonLines) readLine() ([]byte, error) {
	line, err := l.text.ReadSlice('\n')
	if len(line) > 0 {
		l.number++
	}
	if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err // an incomplete line is not reported as a rejected line
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.text.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, errLongLine
}

func (l *jsonLines) parseEvents(reader *jsonReader, number int64, text []byte) ([]fields, error) {
	object, err := parseObject(&reader.parser, text)
	if err != nil {
		return nil, err
	}
	if l.mapper == nil {
		reader.single[0], err = reader.readFields(object)
		return reader.single[:], err
	}
	l.mu.Lock()
	object.Visit(func(key []byte, _ *fastjson.Value) {
		if !l.keys[string(key)] && len(l.keys) < maxKeys {
			l.keys[string(key)] = true
		}
	})
	l.mu.Unlock()
	var events []fields
	whole := &jsonLine{reader: reader, mapper: l.mapper, objects: []*fastjson.Object{object}}
	err = whole.eachItem(func(item *jsonLine) (err error) {
		if item == nil {
			return fmt.Errorf("%s: %w", strings.Join(l.mapper.each, "."), errNotObjects)
		}
		item.present = l.present
		line := item.toMappedLine(number, time.Time{})
		events, err = l.mapper.lineEvents(events, line)
		for i := range l.present {
			if !l.present[i].Load() {
				_, _ = line.cellAt(i) // which notes the column, also if no event needs it
			}
		}
		return err
	})
	return events, err
}

// jsonReader parses JSON objects, one at a time. It is not safe for concurrent use.
type jsonReader struct {
	parser   fastjson.Parser
	single   [1]fields // of a line in our own fields
	interned internTable
	number   []byte
	nested   nested
}

var jsonReaders = sync.Pool{New: func() any { return &jsonReader{} }}

// internTable caches strings, because most values occur in many events.
type internTable [1024]string

func (t *internTable) internText(text []byte) string {
	if len(text) > maxText {
		return string(text) // too long for a field, so it is rejected
	}
	known := &t[xxhash.Sum64(text)%uint64(len(t))]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

// missingColumns returns an error if none of the parsed lines has a column that the mapping requires.
func (l *jsonLines) missingColumns() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mapper == nil || l.mapper.anyColumns || len(l.keys) == 0 {
		return nil
	}
	if missing := l.mapper.missingColumns(l.mapper.needed,
		func(cell int) bool { return l.present[cell].Load() }); missing != "" {
		return fmt.Errorf("no line has the key %s; the lines have %s: correct the mapping, or set a default for "+
			"the field: %s", missing, strings.Join(slices.Sorted(maps.Keys(l.keys)), ", "), mappingHint)
	}
	return nil
}

// mappingHint names the documentation of mappings.
const mappingHint = "see docs/data-in.md, Mapping reference"

// missingColumns lists the columns that a file must have and does not. Of the columns of an element of needed, the file
// must have one.
func (m *mapper) missingColumns(needed [][]int, has func(cell int) bool) string {
	isThere := func(cell int) bool { return has(cell) || strings.HasPrefix(m.columns[cell], headerPrefix) }
	var missing []string
	for _, cells := range needed {
		if !m.anyColumns && len(cells) > 0 && !slices.ContainsFunc(cells, isThere) {
			missing = append(missing, strconv.Quote(m.columns[cells[0]]))
		}
	}
	slices.Sort(missing)
	return strings.Join(slices.Compact(missing), ", ")
}

// scalarText returns a JSON string, number or boolean as text. It returns an empty string for null and for a missing
// value.
func (r *jsonReader) scalarText(v *fastjson.Value) (string, error) {
	if v == nil {
		return "", nil
	}
	switch v.Type() {
	case fastjson.TypeNull:
		return "", nil
	case fastjson.TypeString:
		text, err := v.StringBytes()
		return r.interned.internText(text), err
	case fastjson.TypeNumber, fastjson.TypeTrue, fastjson.TypeFalse:
		r.number = v.MarshalTo(r.number[:0])
		return r.interned.internText(r.number), nil
	case fastjson.TypeObject, fastjson.TypeArray:
	}
	return "", errors.New("must be a string, a number or a boolean")
}

// isNameField reports whether a field has an id or a key.
func isNameField(f field) bool {
	return f == fieldCampaignID || f == fieldVariationID || f == fieldGoalID
}

// errNameNumber is the fault of a number that is not an id. Programs write the same number in different ways, so it is
// no key.
var errNameNumber = errors.New("a number must be an integer, which is an id; a key such as \"2.0\" must be a text")

func isInteger(number string) bool { return strings.Trim(number, "-0123456789") == "" }

// nameText is like scalarText, of an id or a key.
func (r *jsonReader) nameText(v *fastjson.Value) (string, error) {
	text, err := r.scalarText(v)
	isNumber := v != nil && v.Type() == fastjson.TypeNumber
	if err == nil && isNumber && !isInteger(text) {
		err = fmt.Errorf("%q: %w", clipText(text), errNameNumber)
	}
	return text, err
}

// readFields returns the fields of an event with Lifthouse's field names. The error names all fields that are unknown,
// duplicate or of the wrong type.
func (r *jsonReader) readFields(object *fastjson.Object) (fields, error) {
	var f fields
	var found faults.Collector
	var seen [fieldCount + 1]bool // the last element is for exposures
	details := &givenDetails{}
	object.Visit(func(key []byte, v *fastjson.Value) {
		if len(found.List) == maxFaults {
			return
		}
		at, known := fieldsByName[string(key)]
		if !known && string(key) == exposuresName {
			at = fieldCount
			known = true
		}
		switch {
		case !known:
			found.AddField(clipText(string(key)), "%s; %s", faults.UnknownField,
				faults.OneOf(append(fieldNames[:], exposuresName)...))
		case seen[at]:
			found.AddField(clipText(string(key)), faults.GivenTwice)
		default:
			seen[at] = true
			var err error
			switch {
			case at == fieldCount:
				f.exposures, err = r.readExposures(v)
			case at >= fieldAttributes:
				err = r.readDetail(details, at, v)
				f.details = details
			case isNameField(at):
				f.values[at], err = r.nameText(v)
			default:
				f.values[at], err = r.scalarText(v)
			}
			if err != nil {
				found.AddField(string(key), "%v", err)
			}
		}
	})
	if len(found.List) > 0 {
		return f, errors.New(found.List.Join("; "))
	}
	return f, nil
}

func (r *jsonReader) readExposures(v *fastjson.Value) ([]exposure, error) {
	items, err := v.Array()
	if err != nil || len(items) == 0 {
		return nil, errors.New("must be a list of {campaignId, variationId} or {widgetId, experimentId, variationId}")
	}
	if len(items) > maxExposures {
		return nil, fmt.Errorf("must have at most %d elements, has %d", maxExposures, len(items))
	}
	list := make([]exposure, len(items))
	for i, item := range items {
		object, err := item.Object()
		if err != nil {
			return nil, fmt.Errorf("[%d]: must be an object", i)
		}
		e := &list[i]
		texts := [...]*string{&e.campaignID, &e.widgetID, &e.experimentID, &e.variationID}
		var seen [len(texts)]bool
		object.Visit(func(key []byte, v *fastjson.Value) {
			at := slices.Index(fieldNames[fieldCampaignID:fieldVariationID+1], string(key))
			switch {
			case err != nil: // of an earlier key
				return
			case at >= 0 && seen[at]:
				err = fmt.Errorf("%s: %s", clipText(string(key)), faults.GivenTwice)
				return
			}
			var text string
			read := r.scalarText
			if isNameField(fieldCampaignID + field(at)) {
				read = r.nameText
			}
			text, err = read(v)
			if err == nil && at < 0 {
				err = fmt.Errorf("%s %q", faults.UnknownField, clipText(string(key)))
			} else if err == nil {
				*texts[at] = text
				seen[at] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return list, nil
}

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

func newRows(m *mapper, places []place) *rows {
	return &rows{
		mapper: m, places: places, lines: make([]row, 0, partRows), cells: make([]string, 0, partRows*len(m.columns)),
	}
}

// addRow appends a row and returns its cells, which the caller fills.
func (r *rows) addRow(number, record int64) []string {
	r.lines = append(r.lines, row{number: number, record: record})
	from := len(r.cells)
	r.cells = r.cells[:from+len(r.mapper.columns)]
	return r.cells[from:]
}

// setFault sets the error of the last row.
func (r *rows) setFault(fault error) { r.lines[len(r.lines)-1].fault = fault }

// parseRows calls take for each line with the fields of its events.
func (r *rows) parseRows(take func(line origin, events []fields, err error)) {
	columns := len(r.mapper.columns)
	var reader jsonReader
	var current []string // cells of the line
	mapped := mappedLine{cellAt: func(cell int) (string, error) { return current[cell], nil }}
	for i, line := range r.lines {
		if line.fault != nil {
			take(origin{number: line.number}, nil, line.fault)
			continue
		}
		current = r.cells[i*columns : (i+1)*columns]
		mapped.record = line.record
		var events []fields
		err := r.readInnerValues(&reader, current)
		if err == nil {
			events, err = r.mapper.lineEvents(nil, &mapped)
			if fault := r.textFault(current); fault != nil {
				err = fault
			}
		}
		take(origin{number: line.number, columns: r.mapper.columns, cells: current}, events, err)
	}
}

// readInnerValues replaces JSON objects in cells with the values that the mapping names.
func (r *rows) readInnerValues(reader *jsonReader, cells []string) error {
	for cell, place := range r.places {
		if place.inner == "" || place.column < 0 {
			continue
		}
		value, err := reader.cellValue(cells[cell], place.inner, r.mapper.ofNames[cell])
		cells[cell] = value
		if err != nil {
			return fmt.Errorf("%s: %w", r.mapper.columns[cell], err)
		}
	}
	return nil
}

// textFault returns the first fault in the encoding of the cells.
func (r *rows) textFault(cells []string) error {
	if !r.text {
		return nil
	}
	for cell, text := range cells {
		if isASCII(text) {
			continue
		}
		if fault := encodingFault(r.mapper.columns[cell], text, r.converted); fault != nil {
			return fault
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
