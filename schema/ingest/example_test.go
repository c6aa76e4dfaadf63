package ingest_test

import (
	"fmt"
	"strings"

	"lifthouse/schema/ingest"
)

// A mapping from the columns of an order file to events.
func ExampleReadMapping() {
	mapping, err := ingest.ReadMapping(strings.NewReader(`
format: csv
fields:
  eventId: {column: order}
  visitor: {column: customer}
  time: {column: created}
  websiteId: {value: 1}
events:
  - fields:
      event: {value: goal}
      goalId: {value: 3}
      value: {column: total}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mapping.Format, len(mapping.Events), "event per line")
	// Output:
	// csv 1 event per line
}
