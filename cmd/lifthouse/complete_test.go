package main

import (
	"slices"
	"strings"
	"testing"
)

// TestCompletions checks what a shell may complete for arguments and flags.
func TestCompletions(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/operated.catalog.yaml")
	for _, test := range []struct {
		line string
		want []string // some of the completions
	}{
		{"report |", []string{"campaign", "widget", "experiment\tof a widget"}},
		{"report campaign |", []string{"12\tBanner"}},
		{"report widget |", []string{"7\tNewsletter"}},
		{"report experiment |", []string{"7/2\tNewsletter: Wording"}},
		{"report campaign 12 --goal |", []string{"3\tPurchase"}},
		{"report campaign 12 --metric |", []string{"goalConversionRate", "averageValue"}},
		{"report campaign 12 --dimension |", []string{"device", "utmSource"}},
		{"report campaign 12 --interval |", []string{"hour", "day", "week"}},
		{"report campaign 12 --filter |", []string{"country=", "zScore="}},
		{"events --website |", []string{"1\tshop.example.com"}},
		{"import --format |", []string{"csv", "ndjson", "parquet"}},
		{"token create --scope |", []string{"read", "write", "ingest"}},
		{"compare --methodology |", []string{"frequentist", "bayesian"}},
	} {
		args := append([]string{"__complete"}, strings.Fields(strings.TrimSuffix(test.line, "|"))...)
		lines := strings.Split(h.must(append(args, "")...), "\n")
		for _, want := range test.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%s completes %q, want %q among them", test.line, lines, want)
			}
		}
	}
}
