package result_test

import (
	"fmt"

	"lifthouse/engine/wording"
)

// A fraction in per cent with the decimals that its uncertainty justifies.
func ExampleFormatPercent() {
	fmt.Println(wording.FormatPercent(0.2483, wording.PercentDecimals(0.12), true))
	// Output:
	// +24.8 %
}
