package tables

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/wording"

	"github.com/parquet-go/parquet-go"
)

// Format is the format of a file. It is also the ending of its name.
type Format string

// The formats.
const (
	Parquet Format = "parquet"
	CSV     Format = "csv"
	JSON    Format = "json"
	NDJSON  Format = "ndjson"
)

// Formats are all formats.
var Formats = []Format{Parquet, CSV, JSON, NDJSON}

// writer writes the rows of a table.
type writer[R any] interface {
	writeRow(row *R) error
	// close ends the file. A Parquet file that is not closed cannot be read.
	close() error
}

// newWriter returns the writer of a format.
func newWriter[R any](to io.Writer, format Format, fields []field) writer[R] {
	switch format {
	case CSV:
		return newTextWriter[R](to, fields)
	case JSON:
		return &jsonWriter[R]{to: to, fields: fields, before: "[", between: ",\n ", after: "]\n"}
	case NDJSON:
		return &jsonWriter[R]{to: to, fields: fields, between: "\n", after: "\n"}
	case Parquet:
	}
	return newParquetWriter[R](to)
}

// parquetWriter writes rows to a Parquet file.
type parquetWriter[R any] struct {
	file *parquet.GenericWriter[R]
	rows []R
}

const (
	// rowGroup is the number of rows of a row group, of which the writer has one in memory.
	rowGroup = 20_000
	// atOnce is the number of rows that are written to the file at once.
	atOnce = 1000
)

func newParquetWriter[R any](to io.Writer) *parquetWriter[R] {
	return &parquetWriter[R]{file: parquet.NewGenericWriter[R](to, parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("lifthouse.contract", strconv.Itoa(Contract)))}
}

func (w *parquetWriter[R]) writeRow(row *R) error {
	w.rows = append(w.rows, *row)
	if len(w.rows) < atOnce {
		return nil
	}
	return w.writeRows()
}

func (w *parquetWriter[R]) writeRows() error {
	_, err := w.file.Write(w.rows)
	w.rows = w.rows[:0]
	return err
}

func (w *parquetWriter[R]) close() error {
	if err := w.writeRows(); err != nil {
		return err
	}
	return w.file.Close()
}

// textWriter writes rows as CSV with a header.
type textWriter[R any] struct {
	file   *csv.Writer
	fields []field
	record []string
}

func newTextWriter[R any](to io.Writer, fields []field) *textWriter[R] {
	w := &textWriter[R]{csv.NewWriter(to), fields, make([]string, len(fields))}
	for i := range fields {
		w.record[i] = fields[i].Name
	}
	_ = w.file.Write(w.record) // close returns the error
	return w
}

func (w *textWriter[R]) writeRow(row *R) error {
	of := reflect.ValueOf(row).Elem()
	for i := range w.fields {
		switch cell := cellOf(of.FieldByIndex(w.fields[i].index)).(type) {
		case nil:
			w.record[i] = ""
		case string:
			w.record[i] = wording.EscapeFormula(cell)
		default:
			text, err := json.Marshal(cell) // a number or a bool as in JSON
			if err != nil {
				return fmt.Errorf("column %s: %w", w.fields[i].Name, err)
			}
			w.record[i] = string(text)
		}
	}
	return w.file.Write(w.record)
}

func (w *textWriter[R]) close() error {
	w.file.Flush()
	return w.file.Error()
}

// jsonWriter writes rows as objects, whose members are the columns in their order.
type jsonWriter[R any] struct {
	to                     io.Writer
	fields                 []field
	before, between, after string
	rows                   int
	text                   bytes.Buffer
}

func (w *jsonWriter[R]) writeRow(row *R) error {
	w.text.Reset()
	if w.rows == 0 {
		w.text.WriteString(w.before)
	} else {
		w.text.WriteString(w.between)
	}
	w.rows++
	of := reflect.ValueOf(row).Elem()
	encoder := json.NewEncoder(&w.text)
	encoder.SetEscapeHTML(false)
	separator := byte('{')
	for i := range w.fields {
		w.text.WriteByte(separator)
		separator = ','
		w.text.WriteString(`"` + w.fields[i].Name + `":`) // names need no escapes
		if err := encoder.Encode(cellOf(of.FieldByIndex(w.fields[i].index))); err != nil {
			return fmt.Errorf("column %s: %w", w.fields[i].Name, err)
		}
		w.text.Truncate(w.text.Len() - 1) // the newline of the encoder
	}
	w.text.WriteByte('}')
	_, err := w.to.Write(w.text.Bytes())
	return err
}

func (w *jsonWriter[R]) close() error {
	end := w.after
	switch {
	case w.rows > 0:
	case w.before == "": // no line
		return nil
	default:
		end = w.before + w.after
	}
	_, err := io.WriteString(w.to, end)
	return err
}

// cellOf returns the value of a field: nil, an integer, a number, a bool, or a text. Times and days are texts.
func cellOf(value reflect.Value) any {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	switch cell := value.Interface().(type) {
	case time.Time:
		return query.FormatInstant(cell)
	case Day:
		return cell.String()
	case int64, float64, bool:
		return cell
	}
	return value.String()
}
