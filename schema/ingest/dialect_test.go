package ingest

import (
	"bufio"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"lifthouse/schema/schematest/must"
)

func TestSeparatorOf(t *testing.T) {
	for text, want := range map[string]rune{
		"a,b,c\n1;2;3;4;5": ',', "a;b;c\n": ';', "a\tb": '\t', "a|b|c": '|', "one column": ',', "": ',',
		`"a;b;c;d",e,f` + "\n": ',', `"a,b,c,d";e;f`: ';', "a,b;c": ',',
		strings.Repeat("x", maxHeader+10) + ";;;": ',',
	} {
		for name, r := range map[string]*bufio.Reader{
			"whole": bufio.NewReaderSize(strings.NewReader(text), maxLine), "bytes": bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), maxLine),
		} {
			got, err := separatorOf(r)
			if err != nil || got != want {
				t.Errorf("separatorOf(%.20q) by %s = %q, %v; want %q", text, name, got, err, want)
			}
			if whole, _ := r.ReadString(0); whole != text {
				t.Errorf("%.20q was consumed", text)
			}
		}
	}
}

// TestFilesAsTheyAre imports one event from files as spreadsheets and databases write them.
func TestFilesAsTheyAre(t *testing.T) {
	const mapping = `
decimal: ","
encoding: %
fields:
  eventId: id
  time: {column: Zeit, format: "02.01.2006 15:04", zone: Europe/Berlin}
  websiteId: {value: 1}
  visitor: Kunde
  event: {value: goal}
  goalId: {value: 3}
  value: Umsatz
  campaignId: {value: 12}
  variationId: {value: 1}
events: [{when: {column: Umsatz, above: 1.5}, fields: {}}]
`
	const german = "id;Zeit;Kunde;Umsatz\r\n1;02.05.2026 14:00;Jürgen;1234,56\r\n2;02.05.2026 14:00;Jürgen;1,5\r\n"
	latin, _ := charmap.Windows1252.NewEncoder().String(german)
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(strings.ReplaceAll(german, ";", "\t"))
	for name, file := range map[string][2]string{
		"utf-8": {"utf-8", german}, "with a byte order mark": {`""`, "\ufeff" + german}, "Excel, Latin-1": {"latin1", latin},
		"Excel, Unicode text": {`""`, utf16}, "pipes": {`""`, strings.ReplaceAll(german, ";", "|")},
	} {
		m := must.Get(ReadMapping(strings.NewReader(strings.Replace(mapping, "%", file[0], 1))))(t)
		compiled := must.Get(newMapper(m, nil))(t)
		l, err := openLines(strings.NewReader(file[1]), formatCSV, m, compiled)
		if err != nil {
			t.Fatal(name, err)
		}
		parse, _ := l.readPart()
		var found []fields
		parse(func(_ origin, events []fields, err error) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			found = append(found, events...)
		})
		if len(found) != 1 || found[0].values[fieldVisitor] != "Jürgen" || found[0].values[fieldValue] != "1234.56" {
			t.Errorf("%s: %+v; want one event of Jürgen with 1234.56", name, found)
		}
	}
}

func TestThousandsSeparatorsAreRefused(t *testing.T) {
	for _, value := range []string{"1.234,56", "1 234,56", "1'234", "1\u00a0234,5", "1.234"} {
		if got, err := withDecimalPoint(value); err == nil {
			t.Errorf("%q is read as %s", value, got)
		}
	}
	if got, err := withDecimalPoint("-12,5"); err != nil || got != "-12.5" {
		t.Errorf("-12,5 is read as %s, %v", got, err)
	}
	for value, want := range map[string]string{
		"12,5":     `; for decimal commas, set decimal: "," in the mapping`,
		"1,234":    `; if the comma is the decimal separator, set decimal: "," in the mapping; if it separates thousands, export the numbers without it`,
		"1,234.56": "; export the numbers without thousands separators",
		"1.234,56": "; export the numbers without thousands separators",
		"1 234":    "; export the numbers without thousands separators",
		"twelve":   "",
	} {
		if got := numberHint(value); got != want {
			t.Errorf("%q has the hint %q, want %q", value, got, want)
		}
	}
}

func TestMappingsNameTheFaultsOfADialect(t *testing.T) {
	_, err := ReadMapping(strings.NewReader("decimal: \";\"\nencoding: klingon\nseparator: ab\n"))
	for _, want := range []string{`decimal ";": must be . or ,`, `encoding "klingon": must be a name`, `separator "ab": must be one character`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestFaultsOfEncodings reads files whose mapping has no encoding, or a wrong one.
func TestFaultsOfEncodings(t *testing.T) {
	const sources = "fields: {visitor: Kunde, region: {column: Gruppe, map: {\"für\": a}}}"
	for _, test := range []struct{ mapping, file, want string }{
		{sources, "Kunde;Gruppe\nJ\xfcrgen;für\n", `Kunde: "J�rgen": must be UTF-8: if the file has another encoding, name it in the mapping, for example encoding: windows-1252`},
		{sources, "Kunde;Gruppe\nx;f\xfcr\n", `Gruppe: "f�r": must be UTF-8`},
		{"encoding: utf8\n" + sources, "Kunde;Gruppe\nJ\xfcrgen;für\n", `Kunde: "J�rgen": must be UTF-8`},
		{"encoding: shift_jis\n" + sources, "Kunde;Gruppe\nJ\xfcrgen;x\n", `Kunde: "J�gen": has characters that could not be decoded: check encoding in the mapping`},
		{sources, "K\xfcnde;Gruppe\nx;y\n", `header: "K�nde;Gruppe": must be UTF-8: if the file has another encoding`},
		{"encoding: latin1\n" + sources, "Kunde;Gruppe\nJ\xfcrgen;f\xfcr\n", ""},
		{sources, "Kunde;Gruppe\nJ\ufffdrgen;für\n", ""}, // a damaged name, but valid UTF-8
	} {
		m := must.Get(ReadMapping(strings.NewReader(test.mapping)))(t)
		compiled := must.Get(newMapper(m, nil))(t)
		var got string
		l, err := openLines(strings.NewReader(test.file), formatCSV, m, compiled)
		if err != nil {
			got = err.Error()
		} else {
			parse, _ := l.readPart()
			parse(func(_ origin, _ []fields, err error) {
				if err != nil {
					got = err.Error()
				}
			})
		}
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%q: %q, want %q", test.file, got, test.want)
		}
	}
}
