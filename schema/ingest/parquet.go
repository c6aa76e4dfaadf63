package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetLines reads the rows of a Parquet file as lines, numbered from 1. Timestamps are converted to RFC 3339 in UTC.
type parquetLines struct {
	ctx        context.Context
	reportRead func(rows int64) // sets the number of bytes read
	groups     []parquet.RowGroup
	rows       parquet.Rows
	buffer     []parquet.Row
	mapper     *mapper
	places     []place // leaf columns of the file for the mapper's columns
	texts      []func(parquet.Value) (string, error)
	number     int64
}

// parquetRows is the number of rows per read.
const parquetRows = 256

func newParquetLines(ctx context.Context, file *os.File, counted *contextReader,
	m *mapper,
) (l *parquetLines, err error) {
	defer recoverError(&err)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("not Parquet: %w", err)
	}
	paths := opened.Schema().Columns()
	header := make([]string, len(paths))
	for i, path := range paths {
		header[i] = strings.Join(path, ".")
	}
	l = &parquetLines{ctx: ctx, groups: opened.RowGroups(), mapper: m, buffer: make([]parquet.Row, parquetRows)}
	l.reportRead = func(rows int64) {
		counted.n.Store(int64(float64(info.Size()) * float64(rows) / float64(max(opened.NumRows(), 1))))
	}
	l.mapper, l.places, err = placeColumns(l.mapper, header)
	if err != nil {
		return nil, err
	}
	l.texts = make([]func(parquet.Value) (string, error), len(l.places))
	for i, name := range l.mapper.columns {
		for at, path := range paths {
			leaf, _ := opened.Schema().Lookup(path...)
			if leaf.MaxRepetitionLevel > 0 && strings.HasPrefix(name+".", path[0]+".") {
				return nil, fmt.Errorf("column %q contains lists: must have one value per row; export JSON lines",
					path[0])
			}
			if at == l.places[i].column {
				l.texts[i] = textOf(leaf.Node.Type())
			}
		}
	}
	return l, nil
}

// recoverError converts a panic to an error. The Parquet library panics on some invalid files.
func recoverError(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("the Parquet file is invalid: %v", cause)
	}
}

func (l *parquetLines) readPart() (parse, error) {
	rows := newRows(l.mapper, l.places)
	for len(rows.lines)+parquetRows <= partRows {
		if err := l.readRows(rows); err != nil {
			return rows.parseRows, err
		}
	}
	return rows.parseRows, nil
}

// readRows reads up to parquetRows rows. It returns io.EOF after the last row.
func (l *parquetLines) readRows(rows *rows) (err error) {
	defer recoverError(&err)
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if l.rows == nil {
		if len(l.groups) == 0 {
			return io.EOF
		}
		l.rows = l.groups[0].Rows()
		l.groups = l.groups[1:]
	}
	n, err := l.rows.ReadRows(l.buffer)
	for _, row := range l.buffer[:n] {
		l.number++
		cells := rows.addRow(l.number, l.number)
		if fault := l.readCells(cells, row); fault != nil {
			rows.setFault(fault)
		}
	}
	l.reportRead(l.number)
	if !errors.Is(err, io.EOF) {
		return err
	}
	if n > 0 {
		return nil
	}
	err = l.rows.Close()
	l.rows = nil
	return err
}

// readCells sets the cells of a row up to the first that cannot be read.
func (l *parquetLines) readCells(cells []string, row parquet.Row) error {
	for i, place := range l.places {
		if place.column < 0 {
			continue
		}
		value := row[slices.IndexFunc(row, func(v parquet.Value) bool { return v.Column() == place.column })]
		if value.IsNull() {
			continue
		}
		cell, err := l.texts[i](value)
		cells[i] = cell
		isFloat := value.Kind() == parquet.Float || value.Kind() == parquet.Double
		mustBeName := isFloat && l.mapper.ofNames[i]
		if err == nil && mustBeName && !isInteger(cell) {
			err = fmt.Errorf("%q: %w", cell, errNameNumber)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.mapper.columns[i], err)
		}
	}
	return nil
}

// textOf returns the function that converts values of the type to text.
func textOf(stored parquet.Type) func(parquet.Value) (string, error) {
	logical := stored.LogicalType()
	if logical == nil {
		return plainText
	}
	return func(v parquet.Value) (string, error) {
		switch t := logical.Value.(type) {
		case *format.TimestampType:
			at := time.Unix(0, v.Int64())
			switch t.Unit.Value.(type) {
			case *format.MilliSeconds:
				at = time.UnixMilli(v.Int64())
			case *format.MicroSeconds:
				at = time.UnixMicro(v.Int64())
			case *format.NanoSeconds:
			default:
				return "", errors.New("the timestamp has an unknown unit")
			}
			return at.UTC().Format(time.RFC3339Nano), nil
		case *format.DateType:
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.RFC3339), nil
		case *format.DecimalType:
			var units *big.Int // stored in two's complement
			switch v.Kind() {
			case parquet.Int32:
				units = big.NewInt(int64(v.Int32()))
			case parquet.Int64:
				units = big.NewInt(v.Int64())
			default:
				units = new(big.Int).SetBytes(v.ByteArray())
				if bytes := v.ByteArray(); len(bytes) > 0 && bytes[0] >= 0x80 {
					units.Sub(units, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
				}
			}
			ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
			return new(big.Rat).SetFrac(units, ten).FloatString(int(t.Scale)), nil
		case *format.IntType:
			switch {
			case t.IsSigned:
			case v.Kind() == parquet.Int32:
				return strconv.FormatUint(uint64(v.Uint32()), 10), nil
			default:
				return strconv.FormatUint(v.Uint64(), 10), nil
			}
		}
		return plainText(v)
	}
}

func plainText(v parquet.Value) (string, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean()), nil
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10), nil
	case parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10), nil
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32), nil
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'f', -1, 64), nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(v.ByteArray()), nil
	case parquet.Int96:
	}
	return "", fmt.Errorf("the type %s is not supported", v.Kind())
}
