package calculator_test

import (
	"fmt"

	"lifthouse/engine/calculator"
)

// The calculator compares variations without a store.
func ExampleParse() {
	input, err := calculator.Parse([]byte(`{"metric":"binary","variations":[{"n":10000,"converted":500},{"n":10000,"converted":620}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(input.Answer().Conclusion.Text)
	// Output:
	// Variation 1 is better than control: a lift of +24.0 % (90 % always-valid interval +0.2 % to +53.5 %), which is valid at every look.
}
