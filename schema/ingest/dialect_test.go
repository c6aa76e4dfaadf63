package ingest

import (
	"bufio"
	"strings"
	"testing"
	"testing/iotest"

	"lifthouse/schema/schematest/check"
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
			check.That(t, err == nil && got == want, "separatorOf(%.20q) by %s = %q, %v; want %q", text, name, got, err, want)
			if whole, _ := r.ReadString(0); whole != text {
				t.Errorf("%.20q was consumed", text)
			}
		}
	}
}
