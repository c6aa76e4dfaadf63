package result_test

import (
	"fmt"

	"lifthouse/engine/result"
)

// A fraction in per cent with the decimals that its uncertainty justifies.
func ExampleFormatPercent() {
	fmt.Println(result.FormatPercent(0.2483, result.PercentDecimals(0.12), true))
	// Output:
	// +24.8 %
}
