package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"lifthouse/schema/faults"

	"github.com/parquet-go/parquet-go"
)

// The limits of a draft of a mapping.
const (
	draftLines   = 1000 // of the file, from its start
	draftColumns = 500
	draftValues  = 3  // of a column
	draftText    = 24 // characters of a value
)

// draft has the columns of the first lines of a file.
type draft struct {
	name      string // of the file
	format    string
	separator rune // of CSV
	isText    bool // the file is UTF-8
	lines     int
	columns   []draftColumn // in the order of the file
}

// draftColumn is a column of a file, with some of its values.
type draftColumn struct {
	name   string
	values []string // different ones that are not empty
}

// DraftMapping returns a mapping, as YAML, for the columns of the first lines of a file, or of Options.Input for the
// path -. A column with the name of a field, whatever its case and with or without _, - and spaces, is that field. All
// other columns are comments with some of their values, each cut. Nothing is guessed from values but the separator of
// CSV: the one that divides the header into the most columns.
func DraftMapping(ctx context.Context, path string, o Options) (string, error) {
	file, err := o.openSource(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	d := draft{name: filepath.Base(path), format: o.Format, isText: true}
	if d.format == "" {
		d.format = formatOf(path)
	}
	switch d.format {
	case formatCSV:
		err = d.readCSV(&contextReader{ctx: ctx, r: file})
	case formatParquet:
		err = d.readParquet(file)
	default:
		d.format = formatNDJSON
		err = d.readObjects(&contextReader{ctx: ctx, r: file})
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, err)
	case len(d.columns) == 0:
		return "", fmt.Errorf("%s: the first lines have no columns", path)
	}
	return d.yaml(), nil
}

// addValue notes a value of a column, which is added if it is new.
func (d *draft) addValue(name, value string) {
	at := slices.IndexFunc(d.columns, func(c draftColumn) bool { return c.name == name })
	if at < 0 {
		if len(d.columns) == draftColumns {
			return
		}
		at = len(d.columns)
		d.columns = append(d.columns, draftColumn{name: name})
	}
	d.isText = d.isText && utf8.ValidString(name) && utf8.ValidString(value)
	c := &d.columns[at]
	value = shortenValue(value)
	if value != "" && len(c.values) < draftValues && !slices.Contains(c.values, value) {
		c.values = append(c.values, value)
	}
}

// shortenValue returns a value as one line of at most draftText characters.
func shortenValue(value string) string {
	value = strings.ToValidUTF8(value, "�")
	value = strings.Map(printable, value)
	value = strings.Join(strings.Fields(value), " ")
	if utf8.RuneCountInString(value) > draftText {
		value = strings.TrimSpace(string([]rune(value)[:draftText-1])) + "…"
	}
	return value
}

func (d *draft) readCSV(r io.Reader) error {
	plain, err := decompressFile(r)
	if err != nil {
		return err
	}
	text, err := decodeText(plain, "")
	if err != nil {
		return err
	}
	start, err := text.Peek(maxLine / 2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	header, _, _ := bytes.Cut(start, []byte{'\n'})
	d.separator = separatorOf(string(header))
	table, err := openTable(text, "", d.separator)
	if err != nil {
		return err
	}
	for _, name := range table.header {
		d.addValue(name, "")
	}
	for d.lines < draftLines {
		cells, err := table.readCells()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", d.lines+1, err)
		}
		d.lines++
		for i, cell := range cells[:min(len(cells), len(table.header))] {
			d.addValue(table.header[i], cell)
		}
	}
	return nil
}

// separatorOf returns the separator that divides a header into the most columns; a comma if none does.
func separatorOf(header string) rune {
	best := ','
	for _, separator := range ";\t|" {
		if strings.Count(header, string(separator)) > strings.Count(header, string(best)) {
			best = separator
		}
	}
	return best
}

func (d *draft) readObjects(r io.Reader) error {
	plain, err := decompressFile(r)
	if err != nil {
		return err
	}
	lines := json.NewDecoder(io.LimitReader(plain, draftLines*maxLine))
	lines.UseNumber()
	for d.lines < draftLines {
		var raw json.RawMessage
		err := lines.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && raw[0] != '{' {
			err = errors.New("must be a JSON object in each line")
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", d.lines+1, err)
		}
		d.lines++
		if err := d.addObject("", raw); err != nil {
			return fmt.Errorf("line %d: %w", d.lines, err)
		}
	}
	return nil
}

// addObject notes the keys of an object, in their order. Those of nested objects, and of the first element of a list,
// follow a dot.
func (d *draft) addObject(prefix string, object json.RawMessage) error {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if _, err := decoder.Token(); err != nil { // the brace
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if err := d.addJSON(prefix+fmt.Sprint(key), value); err != nil {
			return err
		}
	}
	return nil
}

// addJSON notes a value at a path.
func (d *draft) addJSON(path string, value json.RawMessage) error {
	switch value[0] {
	case '{':
		return d.addObject(path+".", value)
	case '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(value, &elements); err != nil || len(elements) == 0 {
			return err
		}
		return d.addJSON(path+".0", elements[0])
	case '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
		d.addValue(path, text)
	case 'n': // null
		d.addValue(path, "")
	default:
		d.addValue(path, string(value))
	}
	return nil
}

func (d *draft) readParquet(file *os.File) (err error) {
	defer recoverError(&err)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("not Parquet: %w", err)
	}
	paths := opened.Schema().Columns()
	texts := make([]func(parquet.Value) (string, error), len(paths))
	for i, path := range paths {
		leaf, _ := opened.Schema().Lookup(path...)
		if leaf.MaxRepetitionLevel == 0 { // no list, which a mapping cannot read
			texts[i] = textOf(leaf.Node.Type())
			d.addValue(strings.Join(path, "."), "")
		}
	}
	rows := parquet.NewReader(opened)
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, 1)
	for d.lines < draftLines {
		n, err := rows.ReadRows(buffer)
		if n == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		d.lines++
		for _, value := range buffer[0] {
			of := texts[value.Column()]
			if of == nil || value.IsNull() {
				continue
			}
			text, err := of(value)
			if err != nil {
				return fmt.Errorf("row %d: %w", d.lines, err)
			}
			d.addValue(strings.Join(paths[value.Column()], "."), text)
		}
	}
	return nil
}

// plainName matches the names of columns that YAML needs no quotes for.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$`)

// quoteYAML returns a scalar of YAML.
func quoteYAML(text string) string {
	if plainName.MatchString(text) && !strings.EqualFold(text, "null") {
		return text
	}
	return strconv.Quote(strings.ToValidUTF8(text, "�"))
}

// fieldOfColumn returns the field with the name of a column, whatever its case and with or without _, - and spaces.
func fieldOfColumn(column string) (string, bool) {
	plain := func(name string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	}
	details := []string{fieldNames[fieldAttributes], fieldNames[fieldProperties], fieldNames[fieldItems]}
	for _, name := range fieldNames {
		if plain(name) == plain(column) && !slices.Contains(details, name) {
			return name, true
		}
	}
	return "", false
}

// yaml returns the draft as the text of a mapping.
func (d *draft) yaml() string {
	var text strings.Builder
	printf := func(format string, of ...any) { _, _ = fmt.Fprintf(&text, format, of...) }
	lines := "line"
	if d.lines != 1 {
		lines += "s"
	}
	printf("# Draft of a mapping of %s, from its first %d %s. Each field takes the column after its colon.\n",
		faults.Clip(strings.Map(printable, d.name), draftColumns), d.lines, lines)
	printf("# Name a field for the columns that you need, and check with: lifthouse import --dry-run -m MAPPING FILE\n")
	printf("# docs/data-in.md shows what a mapping can do: several events in a line, constants, formats of times.\n")
	if !d.isText {
		printf("# encoding: windows-1252 # the file is not UTF-8: name its encoding here\n")
	}
	printf("format: %s\n", d.format)
	if d.separator != 0 && d.separator != ',' {
		printf("separator: %q\n", string(d.separator))
	}
	printf("fields:\n")
	taken := map[string]bool{}
	for _, exact := range []bool{true, false} { // an exact name takes precedence
		for i := range d.columns {
			field, is := fieldOfColumn(d.columns[i].name)
			if is && !taken[field] && (field == d.columns[i].name) == exact {
				taken[field] = true
				printf("  %s: %s%s\n", field, quoteYAML(d.columns[i].name), d.columns[i].comment())
				d.columns[i].name = ""
			}
		}
	}
	if len(taken) == 0 {
		printf("  # no column has the name of a field: %s\n", strings.Join(fieldNames[:6], ", ")+", …")
	}
	for _, c := range d.columns {
		if c.name != "" {
			printf("  # FIELD: %s%s\n", quoteYAML(c.name), c.comment())
		}
	}
	return text.String()
}

// printable replaces a character that is not printed.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// comment returns the values of a column as a comment.
func (c *draftColumn) comment() string {
	if len(c.values) == 0 {
		return " # empty"
	}
	return " # " + strings.Join(c.values, " | ")
}
