package books_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"lifthouse/engine/books"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// dayMS is the length of a day in milliseconds.
const dayMS = 24 * 60 * 60 * 1000

// randomRate returns the text of a rate of 1 to 12 digits.
func randomRate(r *rand.Rand) string {
	digits := fmt.Sprint(1 + r.Int64N(int64Power(1+r.IntN(books.MaxDigits))-1))
	decimals := r.IntN(books.MaxDigits + 1)
	if decimals == 0 {
		return digits
	}
	digits = strings.Repeat("0", max(decimals+1-len(digits), 0)) + digits
	return digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

func int64Power(exponent int) int64 {
	n := int64(1)
	for range exponent {
		n *= 10
	}
	return max(n, 10)
}

// roundHalfAway returns the integer nearest to a rational; of two, the one farther from zero.
func roundHalfAway(x *big.Rat) *big.Int {
	half := big.NewRat(1, 2)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	sum := new(big.Rat).Add(x, half)
	return new(big.Int).Quo(sum.Num(), sum.Denom())
}

// TestConversionEqualsExactRationals converts a million random amounts at random rates.
func TestConversionEqualsExactRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2026))
	const most = 10_000_000_000_000 // 10^9 with four decimals
	unknown, halves := 0, 0
	for range 1_000 {
		own := randomRate(r)
		other := randomRate(r)
		rates := books.NewRates("EUR", map[string][]books.Quote{
			"USD": {{Day: 100, Rate: must.Get(books.ParseRate(own))(t)}},
			"JPY": {{Day: 100, Rate: must.Get(books.ParseRate(other))(t)}},
		})
		website := []string{"USD", "EUR"}[r.IntN(2)]
		if website == "EUR" {
			own = "1"
		}
		book := &books.Book{Declaration: books.Declaration{Currency: website}, Rates: rates}
		x, known := book.FindExchange("JPY", 101*dayMS)
		must.That(t, known, "no rate")
		from, _ := new(big.Rat).SetString(other)
		to, _ := new(big.Rat).SetString(own)
		ratio := new(big.Rat).Quo(to, from)
		for range 1_000 {
			amount := r.Int64N(2*most+1) - most
			if r.IntN(3) == 0 {
				amount = r.Int64N(2001) - 1000
			}
			exact := new(big.Rat).Mul(new(big.Rat).SetInt64(amount), ratio)
			if exact.Denom().Cmp(big.NewInt(2)) == 0 {
				halves++
			}
			want := roundHalfAway(exact)
			got, known := x.Convert(amount)
			if isKnown := want.CmpAbs(big.NewInt(most)) <= 0; known != isKnown {
				t.Fatalf("%d at %s by %s: known is %t, want %t", amount, other, own, known, isKnown)
			}
			if !known {
				unknown++
			} else if got != want.Int64() {
				t.Fatalf("%d at %s by %s: %d, want %v", amount, other, own, got, want)
			}
		}
	}
	check.That(t, unknown > 0, "no amount is above the limit")
	check.That(t, halves > 0, "no amount is rounded at a half")
}

// TestRateOfADay checks which rate an order gets: that of the last day before its own, for at most 10 days.
func TestRateOfADay(t *testing.T) {
	parse := func(text string) books.Rate { return must.Get(books.ParseRate(text))(t) }
	rates := books.NewRates("EUR", map[string][]books.Quote{
		"JPY": {{Day: 110, Rate: parse("170")}, {Day: 100, Rate: parse("160.00")}, {Day: 101, Rate: parse("161.2")}},
		"USD": {{Day: 104, Rate: parse("1.25")}},
	})
	for _, c := range []struct {
		website, currency string
		at                int64
		want              string
	}{
		{"EUR", "JPY", 100*dayMS + dayMS/2, ""},
		{"EUR", "JPY", 101 * dayMS, "160.00"},
		{"EUR", "JPY", 102*dayMS - 1, "160.00"},
		{"EUR", "JPY", 102 * dayMS, "161.2"},
		{"EUR", "JPY", 111*dayMS - 1, "161.2"},
		{"EUR", "JPY", 111 * dayMS, "170"},
		{"EUR", "JPY", 121*dayMS - 1, "170"},
		{"EUR", "JPY", 121 * dayMS, ""},
		{"JPY", "EUR", 101 * dayMS, "0.00625"},
		{"USD", "JPY", 105 * dayMS, "128.960"},
		{"USD", "JPY", 104 * dayMS, ""}, // no rate of the website's currency
		{"USD", "EUR", 105 * dayMS, "0.8"},
		{"EUR", "CHF", 105 * dayMS, ""},
		{"", "JPY", 105 * dayMS, ""},
	} {
		book := &books.Book{Declaration: books.Declaration{Currency: c.website}, Rates: rates}
		x, known := book.FindExchange(c.currency, c.at)
		got := ""
		if known {
			got = x.PriceInWords()
		}
		check.Equal(t, got, c.want, "%s in %s on day %d", c.currency, c.website, c.at/dayMS)
	}
	var none *books.Book
	_, known := none.FindExchange("JPY", 105*dayMS)
	check.That(t, !known, "a website without a currency has a rate")
	day, _ := (&books.Book{Rates: rates}).LatestRate("JPY")
	check.Equal(t, day, 110, "the latest rate")
}

// TestRatesAreDecimals checks the texts of rates.
func TestRatesAreDecimals(t *testing.T) {
	for text, want := range map[string]string{
		"160": "160", "160.00": "160.00", "0.5": "0.5", "007": "7", "999999999999": "999999999999",
		"0.000000000001": "0.000000000001", "0": "", "0.00": "", "-1": "", "": "", ".5": "", "5.": "",
		"1e3": "", "1,5": "",
		"1000000000000": "", "0.0000000000001": "", "1.2.3": "", "1_000": "", "N/A": "", "1234567.890123": "",
	} {
		rate, err := books.ParseRate(text)
		got := ""
		if err == nil {
			got = rate.String()
		}
		check.Equal(t, got, want, "rate %q", text)
	}
}
