package ingest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/valyala/fastjson"
	"golang.org/x/text/encoding/charmap"
)

// Inspection describes a file before it is imported.
type Inspection struct {
	Format    string
	Separator rune   // of a CSV file
	Encoding  string // of a CSV file; empty: UTF-8 or UTF-16
	ShortRows bool   // rows of a CSV file lack cells at their end
	Rows      int    // rows that were read, at most maxInspected
	Columns   []Column
	First     [][]string // the first rows, in the order of Columns
}

// Column is a column of a file, or a key of its JSON lines.
type Column struct {
	Name     string
	Type     ColumnType
	Layout   string // format of a time for a mapping; empty: none is needed
	Comma    bool   // numbers have a decimal comma
	Grouped  string // a number with thousands separators, or empty
	Empty    int    // rows without a value
	Distinct int    // different values, at most maxDistinct
	More     bool   // there are more different values
	Values   []string
}

const (
	maxInspected = 10_000 // number of rows on which types and guesses are based
	maxDistinct  = 1_000
	shownRows    = 10
	shownValues  = 8
)

// InspectFile reads the first rows of a file and returns its columns with their types.
func InspectFile(ctx context.Context, path string, o Options) (*Inspection, error) {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	in := &Inspection{Format: cmp.Or(o.Format, formatOf(path))}
	read := in.readCSV
	switch in.Format {
	case formatParquet:
		err = in.readParquet(ctx, file)
		return in, err
	case formatNDJSON:
		read = in.readNDJSON
	}
	plain, err := decompressReader(file)
	if err == nil {
		err = read(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return in, nil
}

// collectColumns completes the columns from the rows that were read.
func (in *Inspection) collectColumns(names []string, rows [][]string) {
	in.Rows, in.First = len(rows), rows[:min(shownRows, len(rows))]
	for i, name := range names {
		empty := 0
		var examples []string
		more := false
		values := make([]string, 0, len(rows))
		seen := map[string]bool{}
		for _, row := range rows {
			value := row[i]
			if value == "" {
				empty++
				continue
			}
			values = append(values, value)
			more = more || !seen[value] && len(seen) == maxDistinct
			if !seen[value] && len(seen) < maxDistinct {
				seen[value] = true
				if len(examples) < shownValues {
					examples = append(examples, value)
				}
			}
		}
		c := typeOf(values)
		c.Name, c.Empty, c.Distinct, c.More, c.Values = name, empty, len(seen), more, examples
		in.Columns = append(in.Columns, c)
	}
}

func (in *Inspection) readCSV(r *bufio.Reader) (err error) {
	if r, err = decodeText(r, ""); err != nil {
		return err
	}
	if in.Separator, err = separatorOf(r); err != nil {
		return err
	}
	bounded := &boundedReader{r: r, left: maxLine}
	records := csv.NewReader(bounded)
	records.Comma, records.FieldsPerRecord = in.Separator, -1
	header, err := records.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty: must have a header with the names of the columns")
	}
	if err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	var rows [][]string
	short := false
	for len(rows) < maxInspected {
		bounded.left = maxLine
		row, err := records.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		in.ShortRows, short = in.ShortRows || short, len(row) < len(header) // the last row that was read may be cut off
		rows = append(rows, append(row, make([]string, max(0, len(header)-len(row)))...)[:len(header)])
	}
	in.decodeCells(append([][]string{header}, rows...))
	in.collectColumns(header, rows)
	return nil
}

// decodeCells converts cells that are not UTF-8 from Windows-1252, the Western European
// encoding of Windows.
func (in *Inspection) decodeCells(rows [][]string) {
	if !slices.ContainsFunc(rows, func(row []string) bool {
		return slices.ContainsFunc(row, func(cell string) bool { return !utf8.ValidString(cell) })
	}) {
		return
	}
	in.Encoding = "windows-1252"
	for _, row := range rows {
		for i, cell := range row {
			row[i], _ = charmap.Windows1252.NewDecoder().String(cell) // cannot fail
		}
	}
}

// readNDJSON reads JSON lines. The keys of a nested object have the names that a mapping
// uses: properties.plan.
func (in *Inspection) readNDJSON(r *bufio.Reader) error {
	var names []string
	var objects []map[string]string
	var parser fastjson.Parser
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan() && len(objects) < maxInspected; number++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		object, err := parser.ParseBytes(lines.Bytes())
		if err != nil || object.Type() != fastjson.TypeObject {
			return fmt.Errorf("line %d: must be a JSON object", number)
		}
		cells := map[string]string{}
		flattenObject(object, "", cells, &names)
		objects = append(objects, cells)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	rows := make([][]string, len(objects))
	for i, cells := range objects {
		for _, name := range names {
			rows[i] = append(rows[i], cells[name])
		}
	}
	in.collectColumns(names, rows)
	return nil
}

// flattenObject adds the scalars of an object by name. It skips lists, except lists of objects
// with key and value.
func flattenObject(v *fastjson.Value, name string, cells map[string]string, names *[]string) {
	switch v.Type() {
	case fastjson.TypeObject:
		v.GetObject().Visit(func(key []byte, inner *fastjson.Value) {
			full := string(key)
			if name != "" {
				full = name + "." + full
			}
			flattenObject(inner, full, cells, names)
		})
		return
	case fastjson.TypeArray:
		for _, e := range v.GetArray() {
			if key := e.Get("key"); key != nil && key.Type() == fastjson.TypeString && name != "" {
				if value := typedValue(e.Get("value")); value != nil && value.Type() != fastjson.TypeObject && value.Type() != fastjson.TypeArray {
					flattenObject(value, name+"."+string(key.GetStringBytes()), cells, names)
				}
			}
		}
		return
	case fastjson.TypeNull:
		cells[name] = ""
	case fastjson.TypeString:
		cells[name] = string(v.GetStringBytes())
	default:
		cells[name] = v.String()
	}
	if !slices.Contains(*names, name) {
		*names = append(*names, name)
	}
}

// readParquet reads the columns without lists.
func (in *Inspection) readParquet(ctx context.Context, file *os.File) (err error) {
	defer recoverError(&err)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("not Parquet: %w", err)
	}
	var names []string
	for _, leaf := range leavesOf(opened.Root(), nil) {
		if leaf.MaxRepetitionLevel() == 0 {
			names = append(names, strings.Join(leaf.Path(), "."))
		}
	}
	l, err := newParquetLines(ctx, file, &contextReader{ctx: ctx, r: file}, &mapper{columns: names})
	if err != nil {
		return err
	}
	var rows [][]string
	for len(rows) < maxInspected {
		parse, err := l.readPart()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		parse(func(line origin, _ []fields, _ error) { rows = append(rows, slices.Clone(line.cells)) })
		if err != nil {
			break
		}
	}
	in.collectColumns(names, rows[:min(len(rows), maxInspected)])
	return nil
}
