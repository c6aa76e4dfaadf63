package faults_test

import (
	"strings"
	"testing"

	"lifthouse/schema/faults"
	"lifthouse/schema/schematest/check"
)

func TestCollectorNamesAllFaultsUpToALimit(t *testing.T) {
	c := faults.Collector{Most: 3}
	check.That(t, c.List.Err() == nil, "no faults are an error")
	c.Append(faults.Fault{Name: "a.nam", Line: 7, WithoutValue: true, Detail: faults.UnknownField + "; " + faults.SuggestName("nam", []string{"id", "name"})})
	c.Add("b", 5, faults.OneOf("1", "2"))
	for range 3 {
		c.Add("c", "", "must be set")
	}
	const want = `line 7: a.nam: unknown field; did you mean name?
b: "5": must be one of 1, 2
c: "": must be set
query: "": 2 more`
	check.Equal(t, c.WithRest("query", "%d more").Error(), want, "faults")
}

func TestSuggestName(t *testing.T) {
	names := []string{"device", "country", "utmSource"}
	for misspelt, want := range map[string]string{
		"Contry": "did you mean country?", "utm_source": "did you mean utmSource?",
		"size": "must be one of device, country, utmSource", "": "must be one of device, country, utmSource",
	} {
		check.Equal(t, faults.SuggestName(misspelt, names), want, "%v", misspelt)
	}
}

func TestClipKeepsWholeCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "1234567": "1234567", "12345678": "1234567…", "123456é": "123456…", "12345é8": "12345é…",
		"1\xff345678": "1�34567…",
	} {
		check.Equal(t, faults.Clip(text, 7), want, "%v", text)
	}
	check.Equal(t, faults.Clip(strings.Repeat("\x80", 20), 7), "…")
}
