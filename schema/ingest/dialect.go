package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// separators are the separators that are detected. A file with one column gets the
// first one.
var separators = []byte{',', ';', '\t', '|'}

// maxHeader is the maximum number of bytes that are read to find the end of the first
// line.
const maxHeader = 64 << 10

// separatorOf returns the separator that occurs most often in the first line, outside
// quotes.
func separatorOf(r *bufio.Reader) (rune, error) {
	header, err := firstLine(r)
	if err != nil {
		return 0, err
	}
	counts, quoted := map[byte]int{}, false
	for _, c := range header {
		if c == '"' {
			quoted = !quoted
		}
		if !quoted {
			counts[c]++
		}
	}
	found := separators[0]
	for _, c := range separators {
		if counts[c] > counts[found] {
			found = c
		}
	}
	return rune(found), nil
}

// firstLine returns the first line, or its first maxHeader bytes, without consuming it. It
// waits for no more input than the line needs.
func firstLine(r *bufio.Reader) ([]byte, error) {
	for n := 1; ; n = min(r.Buffered()+1, maxHeader) {
		_, err := r.Peek(n)
		text, _ := r.Peek(min(r.Buffered(), maxHeader))
		if line, _, found := bytes.Cut(text, []byte("\n")); found {
			return line, nil
		}
		if errors.Is(err, io.EOF) || len(text) == maxHeader {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// isEncoding reports whether the name is empty or that of an encoding of the WHATWG encoding standard, such as latin1,
// windows-1252 or utf-16le.
func isEncoding(name string) bool {
	_, err := htmlindex.Get(name)
	return name == "" || err == nil
}

var utf16Marks = [][]byte{{0xff, 0xfe}, {0xfe, 0xff}}

// decodeText converts a text to UTF-8. A text that begins with the byte order mark of UTF-16 is
// UTF-16, whatever the given encoding.
func decodeText(r *bufio.Reader, name string) (*bufio.Reader, error) {
	start, err := r.Peek(len(utf16Marks[0]))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, mark := range utf16Marks {
		if bytes.Equal(start, mark) {
			decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
			return bufio.NewReaderSize(transform.NewReader(r, decoder), maxLine), nil
		}
	}
	if name == "" {
		return r, nil
	}
	encoding, err := htmlindex.Get(name)
	if err != nil {
		return nil, err
	}
	if canonical, _ := htmlindex.Name(encoding); canonical == "utf-8" {
		return r, nil // do not replace invalid bytes
	}
	return bufio.NewReaderSize(transform.NewReader(r, encoding.NewDecoder()), maxLine), nil
}

// The values of Mapping.Decimal.
const (
	decimalPoint = "."
	decimalComma = ","
)

// withDecimalPoint returns a number that has a decimal comma with a decimal point.
func withDecimalPoint(value string) (string, error) {
	if strings.ContainsAny(value, ".' \u00a0\u202f") {
		return "", fmt.Errorf("%q: must have no thousands separators and, because the mapping has decimal: \",\", no decimal point", clipText(value))
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

// encodingFault returns an error if a cell is not text in the encoding of the file. converted
// is true if the file had another encoding than UTF-8.
func encodingFault(column, cell string, converted bool) error {
	switch {
	case !utf8.ValidString(cell):
		return fmt.Errorf("%s: %q: must be UTF-8: if the file has another encoding, name it in the mapping, for example encoding: windows-1252", column, clipText(strings.ToValidUTF8(cell, "�")))
	case converted && strings.ContainsRune(cell, utf8.RuneError):
		return fmt.Errorf("%s: %q: has characters that could not be decoded: check encoding in the mapping", column, clipText(cell))
	}
	return nil
}
