package metric

import (
	"slices"
	"strconv"
	"strings"
)

// parseCondition reads a condition of events, or of visitors.
func (p *parser) parseCondition() *Condition {
	parts := []*Condition{p.parseBoth()}
	for p.takeToken("or") {
		parts = append(parts, p.parseBoth())
	}
	return combineParts(Or, parts)
}

func (p *parser) parseBoth() *Condition {
	parts := []*Condition{p.parseTest()}
	for p.takeToken("and") {
		parts = append(parts, p.parseTest())
	}
	return combineParts(And, parts)
}

func (p *parser) parseTest() *Condition {
	if p.depth++; p.depth > MaxDepth {
		p.stopAt(p.peekToken(), "more than %d parentheses and nots are inside each other", MaxDepth)
	}
	defer func() { p.depth-- }()
	p.addOffer(offer{kind: offerField, ofVisitors: p.ofVisitors})
	switch {
	case p.takeToken("not"):
		return negateCondition(p.parseTest())
	case p.takeToken("("):
		c := p.parseCondition()
		p.requireToken(")")
		return c
	}
	return p.parseComparison()
}

func (p *parser) parseComparison() *Condition {
	c := &Condition{Field: Field{Name: "?"}, Operator: Equal, Texts: []string{""}} // after an error
	at := p.peekToken()
	if p.comparisons++; p.comparisons > MaxComparisons {
		p.stopAt(at, "the text has more than %d comparisons", MaxComparisons)
	}
	f, known := p.parseField()
	if p.stopped {
		return c
	}
	c.Field = f.toField()
	negated := p.takeToken("not")
	operator := p.parseOperator(negated)
	switch operator.text {
	case string(In):
		p.parseList(c, f, known)
	case "":
		return c
	default:
		c.Operator = Operator(operator.text)
		f, known = p.narrowByOperator(operator, f, known)
		p.setValue(c, p.parseLiteral(f, known))
	}
	c.simplifyValues()
	if negated {
		return negateCondition(c)
	}
	return c
}

// parseOperator reads an operator of a comparison, only in and like after not.
func (p *parser) parseOperator(negated bool) token {
	t := p.peekToken()
	var allowed []Operator
	if !negated {
		allowed = []Operator{Equal, Unequal, Less, LessEqual, Greater, GreaterEqual}
	}
	for _, o := range append(allowed, In, Like) {
		if p.takeToken(string(o)) {
			return t
		}
	}
	p.stopExpecting()
	return token{}
}

// typedField is a field in a text, with the types that it may have.
type typedField struct {
	name         string
	source       Source
	text, number bool
}

func (f typedField) toField() Field { return Field{f.source, f.name, f.number && !f.text} }

// parseField reads the field of a comparison, and reports whether there is one with this name.
func (p *parser) parseField() (f typedField, known bool) {
	p.addOffer(offer{kind: offerField, ofVisitors: p.ofVisitors})
	t := p.peekToken()
	if t.kind != wordToken || slices.Contains(keywords, t.text) {
		p.stopExpecting()
		return f, false
	}
	name := p.readFieldName()
	if p.stopped {
		return f, false
	}
	if p.ofVisitors {
		return p.findAttribute(t, name)
	}
	f, known = p.findField(name)
	if !known {
		p.addFault(t, "unknown field or property %q: %s", name, suggestNames(name, p.names.listFields()))
	}
	return f, known
}

// readFieldName reads a word, or items, a point and a word.
func (p *parser) readFieldName() string {
	name := p.peekToken().text
	p.nextToken()
	if name != "items" || p.ofVisitors {
		return name
	}
	p.requireToken(".")
	p.addOffer(offer{kind: offerLineField})
	t := p.peekToken()
	if t.kind != wordToken {
		p.stopExpecting()
		return name
	}
	p.nextToken()
	return name + "." + t.text
}

// findField returns the field of events or lines with a name.
func (p *parser) findField(name string) (f typedField, known bool) {
	for _, field := range append(NumberFields(), textFields...) {
		if field.Name == name {
			return typedField{name, field.Source, !field.Number, field.Number}, true
		}
	}
	property, known := p.names.findProperty(name)
	return typedField{name, OfProperty, property.Text, property.Number}, known && !strings.Contains(name, ".")
}

func (p *parser) findAttribute(at token, name string) (f typedField, known bool) {
	all := p.names.listAttributes()
	known = slices.Contains(all, name) || p.names.AcceptsUnknownAttributes && !IsReserved(name)
	if !known {
		p.addFault(at, "unknown attribute %q: %s", name, suggestNames(name, all))
	}
	return typedField{name, OfAttribute, true, false}, known
}

// parseCallField reads the field of sum, max or distinct.
func (p *parser) parseCallField(call Call, goals string) Field {
	wantsNumber := call != Distinct
	example := ".value"
	if !wantsNumber {
		example = ".items.product"
	}
	at := p.peekToken()
	p.addOffer(offer{kind: offerCallField, number: wantsNumber})
	if !p.takeHidden(".") {
		p.stopAt(at, "%s needs a field after the goal, such as %s%s", call, goals, example)
		return Field{}
	}
	p.addOffer(offer{kind: offerCallField, number: wantsNumber, afterPoint: true})
	at = p.peekToken()
	if at.kind != wordToken {
		p.stopExpecting()
		return Field{}
	}
	name := p.readFieldName()
	f, known := p.findField(name)
	field := Field{f.source, name, wantsNumber}
	switch {
	case p.stopped:
	case !known:
		p.addFault(at, "unknown field or property %q: %s", name, suggestNames(name, p.names.listFields()))
	case wantsNumber && !f.number:
		p.addFault(at, "%s is a text: %s needs a number, such as value", name, call)
	case !wantsNumber && !f.text:
		p.addFault(at, "%s is a number: %s needs a text, such as items.product", name, call)
	}
	return field
}

// narrowByOperator returns a field with the type that an operator needs. mayCheck reports whether the type of the value
// can be checked: after a wrong operator, either type may be meant.
func (p *parser) narrowByOperator(operator token, f typedField, known bool) (narrow typedField, mayCheck bool) {
	isOrder := strings.ContainsAny(operator.text, "<>")
	isPattern := operator.text == string(Like)
	switch {
	case !known:
	case isOrder && !f.number:
		p.addFault(operator, "%s is a text: it can be compared with =, !=, in and like", f.name)
		f.number = true
		known = false
	case isPattern && !f.text:
		p.addFault(operator, "%s is a number: it can be compared with =, !=, <, <=, >, >= and in", f.name)
		f.text = true
		known = false
	}
	switch {
	case isOrder:
		f.text = false
	case isPattern:
		f.number = false
	}
	return f, known
}

// literal is a value in a text.
type literal struct {
	isNumber bool
	number   int64
	text     string
}

// parseLiteral reads a value of a field.
func (p *parser) parseLiteral(f typedField, known bool) literal {
	p.addOffer(offer{kind: offerLiteral, field: f})
	t := p.peekToken()
	switch t.kind {
	case quotedToken:
		p.nextToken()
		if known && !f.text {
			p.addFault(t, "%s is a number: compare it with a number, such as 30", f.name)
		}
		return literal{text: p.checkValue(t, f)}
	case numberToken:
		p.nextToken()
		if known && !f.number {
			p.addFault(t, "%s is a text: write the value in quotes, such as '%s'", f.name, t.text)
		}
		return literal{isNumber: true, number: p.parseNumber(t)}
	default:
		p.stopExpecting()
		return literal{}
	}
}

// checkValue returns a value of an attribute as it is stored.
func (p *parser) checkValue(t token, f typedField) string {
	if f.source != OfAttribute || p.names.CheckValue == nil {
		return t.text
	}
	stored, fault := p.names.CheckValue(f.name, t.text)
	if fault != "" {
		p.addFault(t, "%s %s", f.name, fault)
	}
	return stored
}

// parseNumber returns a number in 1/Scale.
func (p *parser) parseNumber(t token) int64 {
	const largest = 1_000_000_000_000
	whole, fraction, _ := strings.Cut(t.text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	decimals, badFraction := strconv.ParseUint((fraction + "0000")[:4], 10, 16)
	switch {
	case len(fraction) > 4 || badFraction != nil:
		p.addFault(t, "a number has at most 4 decimals, such as 0.25")
		return 0
	case err != nil || n > largest || n < -largest:
		p.addFault(t, "a number is from -%d to %d", largest, largest)
		return 0
	}
	if strings.HasPrefix(whole, "-") {
		return n*Scale - int64(decimals) //nolint:gosec // at most 9999
	}
	return n*Scale + int64(decimals) //nolint:gosec // at most 9999
}

// parseList reads the values of a list, which are all of the type of the first one.
func (p *parser) parseList(c *Condition, f typedField, known bool) {
	c.Operator = In
	c.Texts = nil
	p.requireToken("(")
	for !p.stopped {
		at := p.peekToken()
		v := p.parseLiteral(f, known)
		f.number = f.number && v.isNumber
		f.text = f.text && !v.isNumber
		p.setValue(c, v)
		if len(c.Texts)+len(c.Numbers) > MaxValues {
			p.stopAt(at, "a list has at most %d values", MaxValues)
		}
		if !p.takeToken(",") {
			break
		}
	}
	p.requireToken(")")
}

// setValue adds a value to a comparison. The value decides the type of a property that has both.
func (p *parser) setValue(c *Condition, v literal) {
	c.Field.Number = v.isNumber
	if c.Operator != In {
		c.Texts = nil
	}
	if v.isNumber {
		c.Numbers = append(c.Numbers, v.number)
	} else {
		c.Texts = append(c.Texts, v.text)
	}
}

// simplifyValues brings a comparison into canonical form.
func (c *Condition) simplifyValues() {
	slices.Sort(c.Texts)
	c.Texts = slices.Compact(c.Texts)
	slices.Sort(c.Numbers)
	c.Numbers = slices.Compact(c.Numbers)
	isSingle := c.Operator == In && len(c.Texts)+len(c.Numbers) == 1
	isPlain := c.Operator == Like && len(c.Texts) == 1 && !strings.Contains(c.Texts[0], "*")
	if isSingle || isPlain {
		c.Operator = Equal
	}
}

// combineParts returns the canonical form of parts that are combined by And or Or, which are sets.
func combineParts(operator Operator, parts []*Condition) *Condition {
	var all []*Condition
	for _, part := range parts {
		if part.Operator == operator {
			all = append(all, part.Parts...)
		} else {
			all = append(all, part)
		}
	}
	slices.SortFunc(all, func(a, b *Condition) int { return strings.Compare(a.String(), b.String()) })
	all = slices.CompactFunc(all, func(a, b *Condition) bool { return a.String() == b.String() })
	if len(all) == 1 {
		return all[0]
	}
	return &Condition{Operator: operator, Parts: all}
}

// negateCondition returns the canonical form of the opposite of a condition. A text is equal to a value or not. A
// number may also be missing, which satisfies no comparison.
func negateCondition(c *Condition) *Condition {
	switch {
	case c.Operator == Not:
		return c.Parts[0]
	case c.Operator == Equal && !c.Field.Number:
		return &Condition{Operator: Unequal, Field: c.Field, Texts: c.Texts}
	case c.Operator == Unequal && !c.Field.Number:
		return &Condition{Operator: Equal, Field: c.Field, Texts: c.Texts}
	}
	return &Condition{Operator: Not, Parts: []*Condition{c}}
}
