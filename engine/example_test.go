package engine_test

import (
	"errors"
	"fmt"

	"lifthouse/engine/calculator"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
)

// The query string of a report is parsed strictly.
func ExampleParseReport() {
	_, err := query.ParseReport(query.CampaignResults, "dimension=colour&filters[dateFrom]=yesterday")
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		for _, fault := range invalid.Faults {
			fmt.Printf("%s %q: %s\n", fault.Name, fault.Value, fault.Detail)
		}
	}
	// Output:
	// dimension "colour": must be one of device, country, channel, referrer
	// filters[dateFrom] "yesterday": must be a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z)
}

// The calculator compares variations without a store.
func ExampleParseCalculatorInput() {
	input, err := calculator.Parse([]byte(`{"metric":"binary","variations":[{"n":10000,"converted":500},{"n":10000,"converted":600}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(input.Answer().Conclusion.Text)
	// Output:
	// Variation 1 is better than control: a lift of +20.0 % (90 % always-valid interval +1.4 % to +42.0 %), which is valid at every look.
}

// A fraction in per cent with the decimals that its uncertainty justifies.
func ExamplePercent() {
	fmt.Println(result.Percent(0.2483, result.PercentDecimals(0.12), true))
	// Output:
	// +24.8 %
}
