package calculator_test

import (
	"fmt"

	"lifthouse/engine/calculator"
)

// The calculator compares variations without a store.
func ExampleParseInput() {
	input, err := calculator.ParseInput([]byte(`{"metric":"binary",
		"looks":[{"days":7,"variations":[{"n":5000,"converted":250},{"n":5000,"converted":290}]},
		         {"days":14,"variations":[{"n":10000,"converted":500},{"n":10000,"converted":620}]}],
		"variations":[{"n":10000,"converted":500},{"n":10000,"converted":620}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(input.ComputeAnswer().Conclusion.Text)
	// Output:
	// Variation 1 is better than control at look 2: a lift of +24.0 % (90 % interval +6.5 % to +44.3 %).
}
