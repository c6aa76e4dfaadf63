package ingest

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"lifthouse/schema"

	"github.com/valyala/fastjson"
)

// The limits of what an event says besides its fields. Those of the names and values of a website are in labels.go.
const (
	maxAttributeValue = 64  // bytes of the value of an own attribute
	maxDetail         = 128 // bytes of the text of a property or of a line
	maxProperties     = 30  // of an event
	maxItems          = 200 // lines of an event; further ones are added up as one
	maxDetails        = 32 << 10
)

// itemField is a field of a line of an order.
type itemField int

const (
	itemProduct itemField = iota
	itemVariant
	itemCategory
	itemBrand
	itemName
	itemQuantity
	itemPrice    // of a piece
	itemDiscount // of the line
	itemCost     // of a piece
	itemRevenue  // of the line, instead of price, quantity and discount
	itemProfit   // of the line, instead of revenue and cost
	itemFieldCount
)

var itemFieldNames = [itemFieldCount]string{
	"product", "variant", "category", "brand", "name", "quantity", "price", "discount", "cost", "revenue", "profit",
}

// givenDetails are the own attributes, the properties and the lines of an incoming event as they were sent.
type givenDetails struct {
	attributes, properties []givenLabel
	items                  []givenItem
	discountIsOfPiece      bool // the discount of a line is that of a piece
	faults                 []detailFault
}

// detailFault is what cannot be read: an own attribute, a property, or a field of a line.
type detailFault struct{ kind, name, detail string }

// givenLabel is an own attribute or a property of an incoming event.
type givenLabel struct {
	name, value string
	isNumber    bool
}

// givenItem is a line of an incoming order. An empty text means that the field is not set.
type givenItem [itemFieldCount]string

// detailFields are the fields with own attributes, properties and lines, in JSON: of a file of columns as text.
var detailFields = []field{fieldAttributes, fieldProperties, fieldItems}

// readDetail reads a field of detailFields.
func (r *jsonReader) readDetail(d *givenDetails, f field, v *fastjson.Value) (err error) {
	switch f {
	case fieldAttributes:
		d.attributes, err = r.readLabels(v)
	case fieldProperties:
		d.properties, err = r.readLabels(v)
	default:
		d.items, err = r.readItems(v)
	}
	return err
}

// readLabels reads an object of names and values.
func (r *jsonReader) readLabels(v *fastjson.Value) (labels []givenLabel, err error) {
	if v.Type() == fastjson.TypeNull {
		return nil, nil
	}
	object, notObject := v.Object()
	if notObject != nil {
		return nil, errors.New(`must be an object of names and values, such as {"payment": "paypal"}`)
	}
	object.Visit(func(key []byte, v *fastjson.Value) {
		if err != nil { // of an earlier name
			return
		}
		name := r.interned.internText(key)
		var value string
		value, err = r.scalarText(v)
		if err != nil {
			err = fmt.Errorf("%s: %w", clipText(name), err)
			return
		}
		if value != "" {
			labels = append(labels, givenLabel{name, value, v.Type() == fastjson.TypeNumber})
		}
	})
	return labels, err
}

var errNoItems = errors.New(`must be a list of objects, such as [{"product": "SKU-7", "quantity": 2, "price": 39.95}]`)

// readItems reads a list of lines.
func (r *jsonReader) readItems(v *fastjson.Value) ([]givenItem, error) {
	if v.Type() == fastjson.TypeNull {
		return nil, nil
	}
	list, err := v.Array()
	if err != nil {
		return nil, errNoItems
	}
	items := make([]givenItem, len(list))
	for i, element := range list {
		object, err := element.Object()
		if err != nil {
			return nil, errNoItems
		}
		if err := r.readItem(&items[i], object); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return items, nil
}

// readItem reads a line.
func (r *jsonReader) readItem(item *givenItem, object *fastjson.Object) (err error) {
	var seen [itemFieldCount]bool
	object.Visit(func(key []byte, v *fastjson.Value) {
		at := slices.Index(itemFieldNames[:], string(key))
		switch {
		case err != nil: // of an earlier key
			return
		case at < 0:
			err = fmt.Errorf("unknown field %q; must be one of %s", clipText(string(key)),
				strings.Join(itemFieldNames[:], ", "))
			return
		case seen[at]:
			err = fmt.Errorf("%s: is given twice", key)
			return
		}
		seen[at] = true
		item[at], err = r.scalarText(v)
		if err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
	})
	return err
}

// readDetailTexts reads the fields of detailFields that a file of columns has as JSON.
func (b *builder) readDetailTexts() {
	for _, f := range detailFields {
		text := b.given.values[f]
		if text == "" {
			continue
		}
		reader := jsonReaders.Get().(*jsonReader)
		value, err := parseJSON(&reader.parser, []byte(text))
		if err == nil {
			if b.given.details == nil {
				b.given.details = &givenDetails{}
			}
			err = reader.readDetail(b.given.details, f, value)
		}
		jsonReaders.Put(reader)
		if err != nil {
			b.AddField(fieldNames[f], "%v", err)
		}
	}
}

// setDetails sets the own attributes, the properties and the lines of an event.
func (b *builder) setDetails(e *schema.Event) {
	b.readDetailTexts()
	given := b.given.details
	if given == nil {
		return
	}
	for _, fault := range given.faults {
		b.dropOrFail(fault.kind, fault.name, "", fault.detail)
	}
	b.setOwnAttributes(e, given.attributes)
	if e.Kind != schema.KindGoal {
		if len(given.properties) > 0 {
			b.dropOrFail("properties", fieldNames[fieldProperties], "", "only goals have properties")
		}
		if len(given.items) > 0 {
			b.dropOrFail("items", fieldNames[fieldItems], "", "only goals have lines")
		}
	} else {
		b.setProperties(e, given.properties)
		b.setItems(e, given)
	}
	b.limitDetails(&e.Details)
}

// dropOrFail counts what is dropped from an event, by its kind, if the sender cannot be changed, and otherwise adds a
// fault.
func (b *builder) dropOrFail(kind, name, value, detail string) {
	if !b.isLenient {
		if value == "" {
			b.AddField(name, "%s", detail)
		} else {
			b.Add(name, clipText(value), detail)
		}
		return
	}
	b.countDropped(kind)
}

// countDropped counts a label that is dropped.
func (b *builder) countDropped(kind string) {
	if b.dropped == nil {
		b.dropped = map[string]int{}
	}
	b.dropped[kind]++
}

// setOwnAttributes sets the own attributes.
func (b *builder) setOwnAttributes(e *schema.Event, given []givenLabel) {
	for _, label := range given {
		at := fieldNames[fieldAttributes] + "." + clipText(label.name)
		_, isTwice := e.Details.Attributes[label.name]
		switch fault := schema.LabelFault(label.name); {
		case fault != "":
			b.dropOrFail("attribute", fieldNames[fieldAttributes], label.name, fault)
		case isTwice:
			b.dropOrFail("attribute", at, "", "is given twice")
		case label.isNumber:
			b.dropOrFail("attribute", at, label.value, "must be a text or a boolean")
		case b.isDetailText("attribute", at, label.value, maxAttributeValue):
			if e.Details.Attributes == nil {
				e.Details.Attributes = schema.Labels{}
			}
			e.Details.Attributes[label.name] = label.value
		}
	}
}

// isDetailText reports whether a text is valid. If not, it is dropped, or a fault.
func (b *builder) isDetailText(kind, at, text string, most int) bool {
	detail := ""
	switch {
	case len(text) > most:
		detail = fmt.Sprintf("must have at most %d bytes, has %d", most, len(text))
	case !utf8.ValidString(text):
		text = strings.ToValidUTF8(text, "�")
		detail = "must be UTF-8"
	case strings.IndexByte(text, 0) >= 0: // it separates joined labels
		detail = "must not have the character U+0000"
	default:
		return true
	}
	b.dropOrFail(kind, at, text, detail)
	return false
}

// setProperties sets the properties of a goal.
func (b *builder) setProperties(e *schema.Event, given []givenLabel) {
	d := &e.Details
	for _, label := range given {
		at := fieldNames[fieldProperties] + "." + clipText(label.name)
		_, isText := d.Properties[label.name]
		_, isNumber := d.Numbers[label.name]
		switch fault := schema.LabelFault(label.name); {
		case fault != "":
			b.dropOrFail("property", fieldNames[fieldProperties], label.name, fault)
		case isText || isNumber:
			b.dropOrFail("property", at, "", "is given twice")
		case len(d.Properties)+len(d.Numbers) == maxProperties:
			b.dropOrFail("property", at, "", fmt.Sprintf("an event must have at most %d properties", maxProperties))
		case label.isNumber:
			b.setNumber(d, at, label)
		case b.isDetailText("property", at, label.value, maxDetail):
			if d.Properties == nil {
				d.Properties = schema.Labels{}
			}
			d.Properties[label.name] = label.value
		}
	}
}

// setNumber sets a property that is a number.
func (b *builder) setNumber(d *schema.Details, at string, label givenLabel) {
	units, isNumber := parseMoney(label.value)
	if !isNumber {
		b.dropOrFail("property", at, label.value,
			fmt.Sprintf("must be a number with an absolute value of at most %d", schema.MaxMoney))
		return
	}
	if d.Numbers == nil {
		d.Numbers = map[string]int64{}
	}
	d.Numbers[label.name] = units
}

// setItems sets the lines of a goal. Those above the maximum are added up as one.
func (b *builder) setItems(e *schema.Event, given *givenDetails) {
	for i := range given.items {
		at := fmt.Sprintf("items[%d]", i)
		item := b.buildItem(at, &given.items[i], given.discountIsOfPiece)
		if i < maxItems {
			e.Items = append(e.Items, item)
			continue
		}
		if i == maxItems {
			e.Items = append(e.Items, schema.Item{Product: schema.OtherLabel})
		}
		addItem(&e.Items[maxItems], &item)
	}
}

// addItem adds the numbers of a line to another line.
func addItem(to, item *schema.Item) {
	to.Quantity += item.Quantity
	to.Revenue += item.Revenue
	to.Profit += item.Profit
}

// buildItem returns a line. What is invalid is dropped, or a fault.
func (b *builder) buildItem(at string, given *givenItem, discountIsOfPiece bool) (item schema.Item) {
	for f, to := range []*string{&item.Product, &item.Variant, &item.Category, &item.Brand, &item.Name} {
		text := given[f]
		if text != "" && b.isDetailText("item", at+"."+itemFieldNames[f], text, maxDetail) {
			*to = text
		}
	}
	if given[itemProduct] == "" {
		b.dropOrFail("item", at+".product", "", "missing: must be the id of the product")
	}
	if item.Product == "" {
		item.Product = schema.OtherLabel
	}
	n := lineNumbers{builder: b, at: at, given: given}
	quantity := n.numberOf(itemQuantity, big.NewRat(1, 1))
	pieces := n.numberOf(itemPrice, nil)
	discount := n.numberOf(itemDiscount, nil)
	cost := n.numberOf(itemCost, nil)
	if discountIsOfPiece {
		discount.Mul(discount, quantity)
	}
	revenue := n.numberOf(itemRevenue, pieces.Sub(pieces.Mul(pieces, quantity), discount))
	profit := new(big.Rat)
	if given[itemCost] != "" {
		profit.Sub(revenue, cost.Mul(cost, quantity))
	}
	profit = n.numberOf(itemProfit, profit)
	item.Quantity = n.unitsOf("quantity", quantity)
	item.Revenue = n.unitsOf("revenue", revenue)
	item.Profit = n.unitsOf("profit", profit)
	return item
}

// lineNumbers reads the numbers of a line, exactly, so that an amount is rounded once.
type lineNumbers struct {
	*builder
	at    string
	given *givenItem
}

// numberOf returns the number of a field; if it is not set, the other number, nil being 0. An invalid one is 0.
func (n *lineNumbers) numberOf(f itemField, other *big.Rat) *big.Rat {
	text := n.given[f]
	if text == "" && other != nil {
		return other
	}
	if text == "" {
		return new(big.Rat)
	}
	units, isNumber := parseMoney(text)
	if !isNumber {
		n.dropOrFail("item", n.at+"."+itemFieldNames[f], text, fmt.Sprintf(
			"must be a decimal number such as 12.5, with an absolute value of at most %d", schema.MaxMoney))
		return new(big.Rat)
	}
	if isPlain := len(text) <= maxExactNumber && !strings.ContainsAny(text, "eE"); isPlain {
		if exact, is := new(big.Rat).SetString(text); is {
			return exact
		}
	}
	return big.NewRat(units, schema.MoneyScale)
}

// maxExactNumber is the maximum length of a number that is not rounded before an amount is computed from it. Longer
// ones, and those in scientific notation, have 4 decimals.
const maxExactNumber = 32

// unitsOf returns a number in 1/schema.MoneyScale, rounded half away from zero.
func (n *lineNumbers) unitsOf(name string, x *big.Rat) int64 {
	scaled := new(big.Rat).Mul(x, big.NewRat(schema.MoneyScale, 1))
	doubled := new(big.Int).Lsh(new(big.Int).Abs(scaled.Num()), 1)
	doubled.Add(doubled, scaled.Denom())
	units := doubled.Quo(doubled, new(big.Int).Lsh(scaled.Denom(), 1))
	if !units.IsInt64() || units.Int64() > schema.MaxMoney*schema.MoneyScale {
		const most = "must have an absolute value of at most %d"
		n.dropOrFail("item", n.at+"."+name, "", fmt.Sprintf(most, schema.MaxMoney))
		return 0
	}
	if x.Sign() < 0 {
		return -units.Int64()
	}
	return units.Int64()
}

// limitDetails limits the size of the details in canonical form. If the sender cannot be changed, the lines are added
// up as one.
func (b *builder) limitDetails(d *schema.Details) {
	if sizeOfDetails(d) <= maxDetails {
		return
	}
	size := len(d.EncodeDetails())
	if size <= maxDetails {
		return
	}
	b.dropOrFail("details", "attributes, properties and items", "",
		fmt.Sprintf("must have at most %d bytes together, have %d", maxDetails, size))
	one := schema.Item{Product: schema.OtherLabel}
	for i := range d.Items {
		addItem(&one, &d.Items[i])
	}
	if len(d.Items) > 0 {
		d.Items = []schema.Item{one}
	}
}

// sizeOfDetails returns a size that the canonical form does not exceed: an escaped byte has up to six characters.
func sizeOfDetails(d *schema.Details) int {
	const ofItem, ofLabel = 160, 40
	size := 0
	for _, labels := range []schema.Labels{d.Attributes, d.Properties} {
		for name, value := range labels {
			size += len(name) + 6*len(value) + ofLabel
		}
	}
	for name := range d.Numbers {
		size += len(name) + ofLabel
	}
	for i := range d.Items {
		item := &d.Items[i]
		size += 6*(len(item.Product)+len(item.Variant)+len(item.Category)+len(item.Brand)+len(item.Name)) + ofItem
	}
	return size
}
