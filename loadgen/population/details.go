package population

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"lifthouse/schema"
)

const (
	numberOfProducts   = 5_000
	numberOfCategories = 20
	zipfExponent       = 1.05 // of the sales of products by their rank
)

// detailsOf draws the own attributes of an event, and the properties and two lines on average of a goal with a value. They
// depend on the event alone, so that all else is the same with and without them.
func detailsOf(e *schema.Event) schema.Details {
	d := schema.Details{Attributes: schema.Labels{"membership": memberships[e.VisitorID%uint64(len(memberships))]}}
	if e.Kind != schema.KindGoal || e.Value <= 0 {
		return d
	}
	random := rand.New(rand.NewPCG(e.EventID, 0)) //nolint:gosec // synthetic
	d.Properties = schema.Labels{
		"payment": payments[random.IntN(len(payments))], "coupon": coupons[random.IntN(len(coupons))],
	}
	d.Numbers = map[string]int64{"weight": 100 * (1 + random.Int64N(500))}
	lines := 1 + random.IntN(3)
	left := e.Value
	for line := range lines {
		rank := int(math.Exp(random.Float64() * math.Log(numberOfProducts+1)))
		rank = min(int(math.Pow(float64(rank), zipfExponent)), numberOfProducts)
		revenue := left / int64(lines-line)
		left -= revenue
		d.Items = append(d.Items, schema.Item{
			Product: fmt.Sprint("SKU-", rank), Category: fmt.Sprint("Category ", rank%numberOfCategories),
			Quantity: schema.MoneyScale * (1 + random.Int64N(3)), Revenue: revenue, Profit: revenue * 3 / 10,
		})
	}
	return d
}

var (
	memberships = []string{"guest", "guest", "guest", "member"}
	payments    = []string{"card", "card", "paypal", "invoice"}
	coupons     = []string{"none", "none", "none", "SUMMER", "WELCOME10"}
)

// appendDetails appends the own attributes, the properties and the lines of an event as JSON.
func appendDetails(b []byte, d *schema.Details) []byte {
	if d.IsEmpty() {
		return b
	}
	b = append(b, `,"attributes":{"membership":"`...)
	b = append(append(b, d.Attributes["membership"]...), `"}`...)
	if len(d.Items) == 0 {
		return b
	}
	b = append(b, `,"properties":{"coupon":"`...)
	b = append(append(b, d.Properties["coupon"]...), `","payment":"`...)
	b = append(append(b, d.Properties["payment"]...), `","weight":`...)
	b = appendUnits(b, d.Numbers["weight"])
	b = append(b, `},"items":[`...)
	for i := range d.Items {
		item := &d.Items[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"product":"`...), item.Product...), '"')
		b = appendText(b, "category", item.Category)
		b = appendUnits(append(b, `,"quantity":`...), item.Quantity)
		b = appendUnits(append(b, `,"revenue":`...), item.Revenue)
		b = appendUnits(append(b, `,"profit":`...), item.Profit)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendUnits appends a number of 1/schema.MoneyScale, which is not negative, with four decimals.
func appendUnits(b []byte, units int64) []byte {
	b = strconv.AppendInt(b, units/schema.MoneyScale, 10)
	return fmt.Appendf(b, ".%04d", units%schema.MoneyScale)
}
