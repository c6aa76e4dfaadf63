package demo

import (
	"math/rand/v2"
	"strconv"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
)

// product is a product of the shop.
type product struct {
	id, name, category, brand string
	weight                    int // how often it is sold, without an effect
}

var products = []product{
	{"runner", "Runner", "Shoes", "Northwind", 14},
	{"trail-boot", "Trail boot", "Shoes", "Northwind", 9},
	{"sandal", "Sandal", "Shoes", "Contoso", 7},
	{"rain-jacket", "Rain jacket", "Jackets", "Northwind", 8},
	{"down-jacket", "Down jacket", "Jackets", "Contoso", 6},
	{"wind-vest", "Wind vest", "Jackets", "Fabrikam", 5},
	{"backpack-20", "Backpack 20 l", "Bags", "Fabrikam", 7},
	{"backpack-40", "Backpack 40 l", "Bags", "Fabrikam", 4},
	{"belt-bag", "Belt bag", "Bags", "Contoso", 3},
	{"wool-hat", "Wool hat", "Accessories", "Contoso", 9},
	{"gloves", "Gloves", "Accessories", "Northwind", 6},
	{"socks", "Hiking socks", "Accessories", "Fabrikam", 15},
}

// shoesInBanner is how much more often shoes are in orders of the visitors who see the banner about free delivery.
const shoesInBanner = 2

// describeEvents sets what the events of the shop say besides amounts: whether the visitor is a member, how an order was
// paid, and its lines. Their revenue is the value of the order. They depend on the event alone.
func describeEvents(events []schema.Event) {
	for i := range events {
		e := &events[i]
		membership := "guest"
		if schema.HashID(strconv.FormatUint(e.VisitorID, 10))%3 == 0 {
			membership = "member"
		}
		e.Details.Attributes = schema.Labels{"membership": membership}
		isOrder := e.Kind == schema.KindGoal && e.GoalID == purchase && e.Value > 0
		if isOrder {
			describeOrder(e)
		}
	}
}

// describeOrder sets the properties and the lines of an order.
func describeOrder(e *schema.Event) {
	random := rand.New(rand.NewPCG(e.EventID, purchase)) //nolint:gosec // synthetic
	payments := []string{"card", "card", "paypal", "invoice"}
	e.Properties = schema.Labels{"payment": payments[random.IntN(len(payments))]}
	if random.IntN(5) == 0 {
		e.Properties["coupon"] = "SUMMER"
	}
	shoes := 1
	if e.SubjectID == Campaign && e.VariationID == 1 {
		shoes = shoesInBanner
	}
	lines := 1 + random.IntN(3)
	left := e.Value
	for line := range lines {
		p := drawProduct(random, shoes)
		revenue := left / int64(lines-line)
		left -= revenue
		e.Items = append(e.Items, schema.Item{
			Product: p.id, Name: p.name, Category: p.category, Brand: p.brand,
			Quantity: schema.MoneyScale * int64(1+random.IntN(2)), Revenue: revenue, Profit: revenue / 4,
		})
	}
}

// drawProduct draws a product. shoes is a factor of how often shoes are sold.
func drawProduct(random *rand.Rand, shoes int) *product {
	weightOf := func(p *product) int {
		if p.category == "Shoes" {
			return shoes * p.weight
		}
		return p.weight
	}
	return population.DrawByWeight(random, products, weightOf)
}
