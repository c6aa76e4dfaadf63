// Package reconcile compares a shop's own books with a report: it puts each order of an export in one named line, so
// that the lines add up exactly, in 1/10,000 of the currency.
package reconcile

import (
	"math/big"

	"lifthouse/schema"
)

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
	OtherVisitor
	NotReceived
	CancelledHere
	OtherTime
	AutomatedVisitor
	NotInCampaign
	BeforeFirstView
	SeveralVariations
	UndeclaredVariation
	OutsideWindow
	NotMature
	Amount      // counted, with another amount: the difference
	NotInExport // counted, and not in the export: negative
	Counted     // as the export has it
	open        // not known yet
)

// texts are the name of each line, and what it says of its orders.
var texts = [open][2]string{
	Unreadable: {"unreadable", "cannot be read"}, Repeated: {"repeated", "repeated in the export"},
	OtherPeriod: {"otherPeriod", "outside the dates"}, OtherGoal: {"otherGoal", "of another goal or website"},
	Cancelled: {"cancelled", "cancelled"}, NoVisitor: {"noVisitor", "without a visitor"},
	OtherVisitor: {"otherVisitor", "stored under another visitor"}, NotReceived: {"notReceived", "not received"},
	CancelledHere: {"cancelledHere", "cancelled here"}, OtherTime: {"otherTime", "with another time here"},
	AutomatedVisitor:    {"automatedVisitor", "of automated visitors"},
	NotInCampaign:       {"notInCampaign", "of visitors without a view"},
	BeforeFirstView:     {"beforeFirstView", "before the first view"},
	SeveralVariations:   {"severalVariations", "of excluded visitors, who saw several variations"},
	UndeclaredVariation: {"undeclaredVariation", "of variations that the report does not have"},
	OutsideWindow:       {"outsideWindow", "outside the conversion window"},
	NotMature:           {"notMature", "of visitors whose conversion window, or the time to settle, has not ended"},
	Amount:              {"amount", "with another amount here, by the difference"},
	NotInExport:         {"notInExport", "in the report only"}, Counted: {"counted", "in the report"},
}

// String returns the name of the line.
func (l Line) String() string { return texts[l][0] }

// MarshalText returns the name of the line.
func (l Line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// InWords says what the orders of the line are.
func (l Line) InWords() string { return texts[l][1] }

// Decimal is an amount in 1/schema.MoneyScale.
type Decimal struct{ Units big.Int }

// String writes the amount with all four decimals.
func (d *Decimal) String() string {
	return new(big.Rat).SetFrac(&d.Units, big.NewInt(schema.MoneyScale)).FloatString(4)
}

// MarshalText returns the amount as a decimal string, so that no reader rounds it.
func (d *Decimal) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Sums are a number of orders, and the sums of their amounts.
type Sums struct {
	Orders int64   `json:"orders"`
	Value  Decimal `json:"value"`
	Profit Decimal `json:"profit"`
}

func (s *Sums) addOrders(orders, value, profit int64) {
	s.Orders += orders
	s.Value.Units.Add(&s.Value.Units, big.NewInt(value))
	s.Profit.Units.Add(&s.Profit.Units, big.NewInt(profit))
}

func (s *Sums) subtractSums(o *Sums) {
	s.Orders -= o.Orders
	s.Value.Units.Sub(&s.Value.Units, &o.Value.Units)
	s.Profit.Units.Sub(&s.Profit.Units, &o.Profit.Units)
}

func (s *Sums) isZero() bool {
	return s.Orders == 0 && s.Value.Units.Sign() == 0 && s.Profit.Units.Sign() == 0
}
