package moments

// Kind is the kind of an event, with the values of the column event.
type Kind uint8

// The kinds.
const (
	View Kind = iota + 1
	Click
	Submit
	Completion
	Conversion
	Contact
	Goal
)
