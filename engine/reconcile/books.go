package reconcile

import (
	"math/big"
	"strconv"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/stats"
)

// Decimal is an amount in 1/schema.MoneyScale.
type Decimal struct{ Units big.Int }

// String writes the amount with all four decimals.
func (d *Decimal) String() string {
	return new(big.Rat).SetFrac(&d.Units, big.NewInt(schema.MoneyScale)).FloatString(4)
}

// MarshalText returns the amount as a decimal string, so that no reader rounds it.
func (d *Decimal) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// OrderSums are a number of orders, and the sums of their amounts.
type OrderSums struct {
	Orders int64   `json:"orders"`
	Value  Decimal `json:"value"`
	Profit Decimal `json:"profit"`
}

func (s *OrderSums) addOrders(orders, value, profit int64) {
	s.Orders += orders
	s.Value.Units.Add(&s.Value.Units, big.NewInt(value))
	s.Profit.Units.Add(&s.Profit.Units, big.NewInt(profit))
}

func (s *OrderSums) addSums(o *OrderSums) {
	s.Orders += o.Orders
	s.Value.Units.Add(&s.Value.Units, &o.Value.Units)
	s.Profit.Units.Add(&s.Profit.Units, &o.Profit.Units)
}

func (s *OrderSums) subtractSums(o *OrderSums) {
	s.Orders -= o.Orders
	s.Value.Units.Sub(&s.Value.Units, &o.Value.Units)
	s.Profit.Units.Sub(&s.Profit.Units, &o.Profit.Units)
}

// LineSums are the orders of a line.
type LineSums struct {
	Line Line `json:"line"`
	OrderSums
	Newer   int64 `json:"newer,omitempty"`   // of Amount: those with a higher revision in the export
	Refused int64 `json:"refused,omitempty"` // of NotReceived: those in lines rejected in the last week
	// of Counted and Amount: those without a visitor, of customers won in the test
	Carried    int64                 `json:"carried,omitempty"`
	Differs    bool                  `json:"differs"`    // the share of visitors differs between variations
	Variations map[string]*OrderSums `json:"variations"` // by that of the first view

	visitors map[string]int64 // by variation
}

func (l *LineSums) addOrders(orders, value, profit int64, variation string) {
	l.OrderSums.addOrders(orders, value, profit)
	if variation != "" {
		if l.Variations[variation] == nil {
			l.Variations[variation] = &OrderSums{}
		}
		l.Variations[variation].addOrders(orders, value, profit)
	}
}

// Conversion is what the orders of the report in another currency are worth in that of the website.
type Conversion struct {
	From      OrderSums `json:"from"`      // as they were sent
	To        OrderSums `json:"to"`        // in the currency of the website, as the report has them
	LeastRate string    `json:"leastRate"` // units of the currency for one unit of the website's
	MostRate  string    `json:"mostRate"`

	least, most *big.Rat
}

// addOrder adds an order that is converted.
func (c *Conversion) addOrder(sent, worth [3]int64, x *books.Exchange) {
	c.From.addOrders(1, sent[0], sent[1])
	c.To.addOrders(1, worth[0], worth[1])
	price := x.Price()
	if c.least == nil || price.Cmp(c.least) < 0 {
		c.least = price
		c.LeastRate = x.PriceInWords()
	}
	if c.most == nil || price.Cmp(c.most) > 0 {
		c.most = price
		c.MostRate = x.PriceInWords()
	}
}

// Books are an export beside a report in one currency.
type Books struct {
	Currency    string      `json:"currency,omitempty"`
	Lines       []*LineSums `json:"lines"`
	Export      OrderSums   `json:"export"`
	Report      OrderSums   `json:"report"`     // by the facts; amounts in other currencies by the events
	Difference  Decimal     `json:"difference"` // value that the lines do not explain
	Converted   *Conversion `json:"converted,omitempty"`
	RateUnknown *OrderSums  `json:"rateUnknown,omitempty"` // the orders of the report that are not converted

	left OrderSums // what the lines do not explain; 0, unless facts and events differ
}

func newBooks(currency string) *Books {
	b := &Books{Currency: currency}
	for line := range open {
		b.Lines = append(b.Lines, &LineSums{
			Line: line, Variations: map[string]*OrderSums{}, visitors: map[string]int64{},
		})
	}
	return b
}

// addRow adds an order of the export, whose line is known.
func (b *Books) addRow(row *ExportedOrder) {
	b.Export.addOrders(1, row.Value, row.Profit)
	value := row.Value
	profit := row.Profit
	if row.Line == Amount {
		value -= row.Ours[0]
		profit -= row.Ours[1]
	}
	b.Lines[row.Line].addOrders(1, value, profit, row.Variation)
	if isCounted := row.Line == Amount || row.Line == Counted; isCounted && row.isCarried {
		b.Lines[row.Line].Carried++
	}
}

// addForeign adds an order of the report that is in another currency than that of the website.
func (b *Books) addForeign(s *state, worth *fold.Worth) {
	sent := s.Event.Amounts
	b.Report.addOrders(0, sent[0], sent[1])
	if x, isKnown := s.FindExchange(); isKnown && worth.IsKnown {
		if b.Converted == nil {
			b.Converted = &Conversion{}
		}
		b.Converted.addOrder(sent, worth.Amounts, &x)
		return
	}
	if b.RateUnknown == nil {
		b.RateUnknown = &OrderSums{}
	}
	b.RateUnknown.addOrders(1, sent[0], sent[1])
}

// addUp adds up the lines, and compares them between variations. exposed has the visitors of each.
func (b *Books) addUp(variations []plan.Variation, exposed map[int64]int64) {
	b.left = OrderSums{Orders: b.Lines[Amount].Orders} // the report has them
	b.left.addSums(&b.Export)
	b.left.subtractSums(&b.Report)
	for _, line := range b.Lines[:Counted] {
		b.left.subtractSums(&line.OrderSums)
		var some, all []int64
		for _, v := range variations {
			some = append(some, line.visitors[strconv.FormatInt(v.ID, 10)])
			all = append(all, exposed[v.ID])
		}
		line.Differs = stats.CompareShares(some, all).Differ
	}
	b.Difference = b.left.Value
}
