package ingest

import (
	"bufio"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// inspected returns the inspection of a file with the content.
func inspected(t *testing.T, name, content string) *Inspection {
	t.Helper()
	path := must.WriteFile(t, name, content)
	return must.Get(InspectFile(t.Context(), path, Options{}))(t)
}

func TestDraftMapsControlToZero(t *testing.T) {
	in := inspected(t, "x.csv", "visitor,ts,group,revenue\na,1777636800,New,1\nb,1777636801,Control,2\nc,1777636802,New,0\n")
	draft := in.DraftMapping("x.csv")
	for _, want := range []string{`variationId: {column: "group", map: {"Control": 0, "New": 1}}`, `time: {column: "ts", format: "unix"}`, `when: {column: "revenue", above: 0}`} {
		check.Contains(t, draft, want)
	}
}

// FuzzInspect checks that no file crashes the inspection, and that a draft with all guesses is a mapping.
func FuzzInspect(f *testing.F) {
	f.Add("a;b\n1;2\n")
	f.Add("visitor,time,variation,value\nx,2026-05-01,control,\"1\n2\"\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(dir, "f.csv")
		must.OK(t, os.WriteFile(path, []byte(content), 0o600))
		in, err := InspectFile(t.Context(), path, Options{})
		if err != nil {
			return
		}
		found := in.GuessColumns()
		for _, field := range []string{"visitor", "time", "variationId"} {
			if c, known := found[field]; !known || c.Name == "" {
				return
			}
		}
		if _, err := ReadMapping(strings.NewReader(in.DraftMapping(content))); err != nil {
			t.Errorf("%v\n%s", err, in.DraftMapping(content))
		}
	})
}

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

// exactMoney is a reference implementation of parseMoney with big.Rat.
func exactMoney(text string) (int64, bool) {
	exact, valid := new(big.Rat).SetString(text)
	if !valid || new(big.Rat).Abs(exact).Cmp(big.NewRat(schema.MaxMoney, 1)) > 0 {
		return 0, false
	}
	units, _ := new(big.Int).SetString(exact.Mul(exact, big.NewRat(schema.MoneyScale, 1)).FloatString(0), 10) // FloatString rounds half away from zero
	return units.Int64(), true
}

// TestParseMoneyEqualsExactArithmetic compares parseMoney with big.Rat, also for the results of floating-point
// arithmetic.
func TestParseMoneyEqualsExactArithmetic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{
		"18.990000000000002", "0.30000000000000004", "1e-7", "-1e-7", "0.00005", "-0.00005", "0.00004999999999999999999", "5e-5", "4.9e-5",
		"1000000000", "-1000000000", "999999999.99995", "999999999.99994", "1000000000.00000000001", "1e9", "1.00000000000000000001e9", "1e10", "1e64",
		"0e999", "1" + strings.Repeat("0", 30) + "e-30", "0." + strings.Repeat("0", 400) + "1", "1e-400",
	}
	for range 20_000 {
		text := fmt.Sprintf("%d", random.Int64N(2_000_000_002)-1_000_000_001)
		switch random.IntN(4) {
		case 0:
			text += fmt.Sprintf(".%0*d", 1+random.IntN(6), random.IntN(100))
		case 1:
			text = strconv.FormatFloat(float64(random.IntN(100)+1)*float64(random.IntN(10_000))/100*1.1, 'g', -1, 64)
		case 2:
			text += strconv.FormatFloat(random.Float64(), 'f', -1, 64)[1:]
		}
		if random.IntN(3) == 0 && !strings.Contains(text, "e") {
			text += fmt.Sprintf("e%d", random.IntN(16)-11)
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		got, ok := parseMoney(text)
		want, fits := exactMoney(text)
		must.That(t, got == want && ok == fits, "parseMoney(%q) = %d, %v; want %d, %v", text, got, ok, want, fits)
	}
	for text, want := range map[string]bool{"1e-99999999999999999999": true, "0e99999999999999999999": true, "1e99999999999999999999": false} {
		got, ok := parseMoney(text)
		check.That(t, got == 0 && ok == want, "parseMoney(%q) = %d, %v; want 0, %v", text, got, ok, want)
	}
}

func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{"0", "-1", "12.5", "1e3", "1e-4", ".5", "5.", "", "-", "e1", "1e", "NaN", "1_0", "0x1", "1e64", "0e-64", "+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseMoney(text)
		check.That(t, !ok || (got <= schema.MaxMoney*schema.MoneyScale && got >= -schema.MaxMoney*schema.MoneyScale), "parseMoney(%q) = %d, beyond the limit", text, got)
		if ok && len(text) < 20 && !strings.Contains(strings.ToLower(text), "e") {
			want, fits := exactMoney(text)
			check.That(t, fits && want == got, "parseMoney(%q) = %d; want %d, %v", text, got, want, fits)
		}
	})
}
