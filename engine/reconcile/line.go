package reconcile

// Line says where an order of the export is in the comparison: in the first line that applies.
type Line uint8

// The lines.
const (
	Unreadable Line = iota
	Repeated
	OtherPeriod
	OtherGoal
	Cancelled
	NoVisitor
	NoHome // of a customer that no visitor's order won
	OtherVisitor
	NotReceived
	CancelledHere
	OtherTime
	AutomatedVisitor
	NotInCampaign
	AcquiredElsewhere // the visitor whose order won the customer has no view
	BeforeFirstView
	AcquiredBefore
	SeveralVariations
	UndeclaredVariation
	OutsideWindow
	NotMature
	OtherCurrency // counted in another currency: it leaves the one, and enters the other with a minus
	Amount        // counted, with another amount: the difference
	NotInExport   // counted, and not in the export: negative
	Counted       // as the export has it
	open          // not known yet
)

// texts are the name of each line, and what it says of its orders.
var texts = [open][2]string{
	Unreadable: {"unreadable", "cannot be read"}, Repeated: {"repeated", "repeated in the export"},
	OtherPeriod: {"otherPeriod", "outside the dates"}, OtherGoal: {"otherGoal", "of another goal or website"},
	Cancelled: {"cancelled", "cancelled"}, NoVisitor: {"noVisitor", "without a visitor"},
	NoHome:       {"noHome", "without a visitor, of customers that no visitor's first order won"},
	OtherVisitor: {"otherVisitor", "stored under another visitor"}, NotReceived: {"notReceived", "not received"},
	CancelledHere: {"cancelledHere", "cancelled here"}, OtherTime: {"otherTime", "with another time here"},
	AutomatedVisitor:    {"automatedVisitor", "of automated visitors"},
	NotInCampaign:       {"notInCampaign", "of visitors without a view"},
	AcquiredElsewhere:   {"acquiredElsewhere", "without a visitor, of customers won by visitors without a view"},
	BeforeFirstView:     {"beforeFirstView", "before the first view"},
	AcquiredBefore:      {"acquiredBefore", "without a visitor, of customers won before the first view"},
	SeveralVariations:   {"severalVariations", "of excluded visitors, who saw several variations"},
	UndeclaredVariation: {"undeclaredVariation", "of variations that the report does not have"},
	OutsideWindow:       {"outsideWindow", "outside the conversion window"},
	NotMature:           {"notMature", "of visitors whose conversion window, or the time to settle, has not ended"},
	OtherCurrency:       {"otherCurrency", "in another currency here"},
	Amount:              {"amount", "with another amount here, by the difference"},
	NotInExport:         {"notInExport", "in the report only"}, Counted: {"counted", "in the report"},
}

// String returns the name of the line.
func (l Line) String() string { return texts[l][0] }

// MarshalText returns the name of the line.
func (l Line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// InWords says what the orders of the line are.
func (l Line) InWords() string { return texts[l][1] }
