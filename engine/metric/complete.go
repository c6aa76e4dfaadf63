package metric

import (
	"slices"
	"strconv"
	"strings"
)

// offerKind is a kind of what may be the next token.
type offerKind int

const (
	offerToken offerKind = iota
	offerEnd
	offerMetric
	offerGoal
	offerAction
	offerField
	offerLineField
	offerCallField
	offerLiteral
	offerInteger
	offerTime
)

// offer is what a token may be.
type offer struct {
	kind        offerKind
	text        string
	withActions bool       // of a goal
	ofVisitors  bool       // of a field
	number      bool       // of the field of a call
	afterPoint  bool       // of the field of a call
	field       typedField // of a literal
}

// describeOffer returns an offer as errors show it.
func (o *offer) describeOffer() string {
	switch o.kind {
	case offerEnd:
		return "the end"
	case offerMetric:
		return "a metric of the website, such as " + o.text
	case offerGoal:
		if o.withActions {
			return "a goal, an action such as @view"
		}
		return "a goal"
	case offerAction:
		return "an action: view, click, submit, completion, conversion or contact"
	case offerField:
		if o.ofVisitors {
			return "an attribute, such as device or country"
		}
		return "a field, such as value, items.category, or the name of a property"
	case offerLineField:
		return "a field of a line, such as items.category"
	case offerCallField:
		if o.number {
			return "a number, such as value, items.revenue, or the name of a property"
		}
		return "a text, such as items.product, or the name of a property"
	case offerLiteral:
		return o.describeLiteral()
	case offerTime:
		return "a time from 1h to 400d, such as 7d"
	case offerToken:
		if kindOfToken(o.text) == "operator" {
			return strconv.Quote(o.text)
		}
		return o.text
	default: // an integer
		return o.text
	}
}

func (o *offer) describeLiteral() string {
	const text = "a text in quotes, such as 'Shoes'"
	switch {
	case !o.field.number:
		return text
	case !o.field.text:
		return "a number"
	}
	return "a number, or " + text
}

// describeOffers returns what may follow. Where a field may, not and a parenthesis go without saying.
func describeOffers(offers []offer) string {
	var texts []string
	hasField := slices.ContainsFunc(offers, func(o offer) bool { return o.kind == offerField })
	for i := range offers {
		isObvious := hasField && (offers[i].text == "not" || offers[i].text == "(")
		if text := offers[i].describeOffer(); !isObvious && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// Completion is what may follow at a place of a text.
type Completion struct {
	From       int         // characters before the word that is being written; it ends at the place
	Candidates []Candidate // the most used first
	// Field is set if a value of a text is being written, and Prefix is its beginning: its values are not names.
	Field  *Field
	Prefix string
}

// Candidate is a text that may replace the word that is being written.
type Candidate struct {
	Text string
	Kind string // keyword, operator, call, metric, goal, action, field, property, attribute, time
}

// completeAt parses the text before the word at a place: the parser knows what may follow at the end.
func completeAt(text string, at int, names *Names, parse func(*parser)) Completion {
	characters := []rune(text)
	at = min(max(at, 0), len(characters), MaxCharacters)
	tokens, faults := splitTokens(string(characters[:at]))
	word, rest := splitLast(tokens, at)
	isOpen := word.open && len(faults) == 1
	if len(faults) > 0 && !isOpen {
		return Completion{From: at}
	}
	c := Completion{From: word.from, Prefix: word.text}
	c.addNext(append(slices.Clone(rest), token{from: word.from, to: word.from}), names, parse)
	c.keepMatching(word)
	isComplete := slices.ContainsFunc(c.Candidates, func(found Candidate) bool { return found.Text == word.text })
	if isComplete {
		c.addAfter(word, tokens, names, parse)
	}
	if c.Field == nil {
		c.Prefix = ""
	}
	return c
}

// addNext adds what may follow after tokens, of which the last is the end.
func (c *Completion) addNext(tokens []token, names *Names, parse func(*parser)) {
	p := &parser{names: names, tokens: tokens}
	parse(p)
	if p.at < len(tokens)-1 { // an error is before the place
		return
	}
	for i := range p.offers {
		c.addOffer(&p.offers[i], names)
	}
}

// addAfter adds what may follow a complete word, each candidate with the word.
func (c *Completion) addAfter(word token, tokens []token, names *Names, parse func(*parser)) {
	var next Completion
	next.addNext(tokens, names, parse)
	for _, candidate := range next.Candidates {
		space := " "
		if strings.HasPrefix(candidate.Text, ".") || slices.Contains([]string{"(", ")", ",", "|"}, candidate.Text) {
			space = ""
		}
		c.addCandidates(candidate.Kind, word.text+space+candidate.Text)
	}
}

// splitLast returns the word or text that ends at a place, and the tokens before. Without one, the word is empty.
func splitLast(tokens []token, at int) (word token, rest []token) {
	rest = tokens[:len(tokens)-1]
	word = token{from: at, to: at}
	if len(rest) == 0 {
		return word, rest
	}
	last := rest[len(rest)-1]
	isWritten := last.to == at && (last.kind == wordToken || last.kind == numberToken || last.open)
	if isWritten {
		return last, rest[:len(rest)-1]
	}
	return word, rest
}

func (c *Completion) addCandidates(kind string, texts ...string) {
	for _, text := range texts {
		c.Candidates = append(c.Candidates, Candidate{text, kind})
	}
}

// addOffer adds the candidates of an offer.
func (c *Completion) addOffer(o *offer, names *Names) {
	switch o.kind {
	case offerToken:
		c.addCandidates(kindOfToken(o.text), o.text)
	case offerMetric:
		c.addCandidates("metric", names.listMetrics()...)
	case offerGoal:
		c.addCandidates("goal", names.listGoals()...)
		if o.withActions {
			c.addActions("@")
		}
	case offerAction:
		c.addActions("")
	case offerField:
		if o.ofVisitors {
			c.addCandidates("attribute", names.listAttributes()...)
			return
		}
		c.addFields(names, "", func(Field) bool { return true })
	case offerLineField:
		c.addLineFields()
	case offerCallField:
		point := "."
		if o.afterPoint {
			point = ""
		}
		c.addFields(names, point, func(f Field) bool { return f.Number == o.number })
	case offerLiteral:
		if o.field.text {
			c.Field = &Field{Source: o.field.source, Name: o.field.name}
		}
	case offerTime:
		c.addCandidates("time", "1d", "7d", "14d", "30d")
	case offerEnd, offerInteger: // nothing to write, and any number
	}
}

func (c *Completion) addActions(before string) {
	for _, action := range Actions {
		c.addCandidates("action", before+string(action))
	}
}

// addFields adds the fields and properties of events that are wanted.
func (c *Completion) addFields(names *Names, point string, isWanted func(Field) bool) {
	for _, f := range append(NumberFields(), textFields...) {
		if isWanted(f) {
			c.addCandidates("field", point+f.Name)
		}
	}
	for _, p := range names.Properties {
		isText := p.Text && isWanted(Field{OfProperty, p.Name, false})
		isNumber := p.Number && isWanted(Field{OfProperty, p.Name, true})
		if isText || isNumber {
			c.addCandidates("property", point+p.Name)
		}
	}
}

func (c *Completion) addLineFields() {
	for _, f := range append(NumberFields(), textFields...) {
		if f.Source == OfLine {
			c.addCandidates("field", strings.TrimPrefix(f.Name, "items."))
		}
	}
}

// keepMatching removes candidates that do not begin with the word, ignoring case, and those that are given twice.
func (c *Completion) keepMatching(word token) {
	prefix := strings.ToLower(word.text)
	seen := map[Candidate]bool{}
	c.Candidates = slices.DeleteFunc(c.Candidates, func(candidate Candidate) bool {
		matches := strings.HasPrefix(strings.ToLower(strings.TrimLeft(candidate.Text, "'")), prefix)
		again := seen[candidate]
		seen[candidate] = true
		return again || !matches
	})
}

func kindOfToken(text string) string {
	switch {
	case slices.Contains(Calls, Call(text)):
		return "call"
	case isWordRune([]rune(text)[0]):
		return "keyword"
	default:
		return "operator"
	}
}
