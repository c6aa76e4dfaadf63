package query_test

import (
	"errors"
	"fmt"

	"lifthouse/engine/query"
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
	// dimension "colour": must be one of browser, channel, city, country, device, firstVisitPage, os, referrer, region, utmCampaign, utmContent, utmMedium, utmSource, utmTerm, visitorType
	// filters[dateFrom] "yesterday": must be a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z), in a year from 1970 to 2199
}
