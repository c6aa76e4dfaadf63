package metric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse returns the metric of a text, in canonical form. The error has all Faults that were found.
func Parse(text string, names *Names) (*Metric, error) {
	return parseWhole(text, names, (*parser).parseMetric)
}

// ParseRecorded returns the metric of a recorded text, which has the ids of its goals, see Metric.WithGoalIDs. goals
// are those whose keys are known. Goals and properties may have been removed since.
func ParseRecorded(text string, goals []Goal) (*Metric, error) {
	return Parse(text, &Names{
		Goals: goals, AcceptsUnknownGoals: true, AcceptsUnknownProperties: true, AcceptsUnknownAttributes: true,
	})
}

// ParseVisitors returns the condition of a text over attributes of first views, in canonical form. The error has all
// Faults that were found.
func ParseVisitors(text string, names *Names) (*Condition, error) {
	return parseWhole(text, names, (*parser).parseVisitors)
}

// parseWhole returns what a whole text says, in canonical form, as read reads it.
func parseWhole[T fmt.Stringer](text string, names *Names, read func(*parser) T) (none T, err error) {
	p := newParser(text, names)
	found := read(p)
	if len(p.faults) == 0 {
		p.checkCanonicalLength(found.String())
	}
	if err := p.faults.orNil(); err != nil {
		return none, err
	}
	return found, nil
}

// parser reads tokens by recursive descent. Errors of names and types do not stop it. After an error of the grammar it
// sees only the end of the text.
type parser struct {
	names       *Names
	tokens      []token
	at          int
	stopped     bool
	ofVisitors  bool    // fields are attributes
	offers      []offer // what the present token may be
	faults      Faults
	depth       int
	comparisons int
}

func newParser(text string, names *Names) *parser {
	p := &parser{names: names}
	p.tokens, p.faults = splitTokens(text)
	p.stopped = len(p.faults) > 0
	return p
}

func (p *parser) parseMetric() *Metric {
	m := p.parseRatio()
	p.parseEnd(oneOrTwo)
	return m
}

// parseRatio reads a declared metric, a quantity, or the ratio of two quantities.
func (p *parser) parseRatio() *Metric {
	if declared := p.takeMetric(); declared != nil {
		return declared
	}
	m := &Metric{Numerator: p.parseQuantity()}
	if p.takeToken("/") {
		denominator := p.parseQuantity()
		m.Denominator = &denominator
	}
	return m
}

// takeMetric takes the key of a declared metric, and returns the metric; nil: the present token is none.
func (p *parser) takeMetric() *Metric {
	if len(p.names.Metrics) == 0 {
		return nil
	}
	p.addOffer(offer{kind: offerMetric, text: p.names.Metrics[0].Key})
	t := p.peekToken()
	declared := p.names.findMetric(t.text)
	if t.kind != wordToken || declared == nil {
		return nil
	}
	p.nextToken()
	return declared.mapQuantities(func(*Quantity) {})
}

func (p *parser) parseVisitors() *Condition {
	p.ofVisitors = true
	c := p.parseCondition()
	p.parseEnd("")
	return c
}

// parseEnd reads the end of the text. An operator of arithmetic in its place has an explanation.
func (p *parser) parseEnd(ofArithmetic string) {
	t := p.peekToken()
	isArithmetic := t.text == "/" || t.text == "-"
	switch {
	case t.kind == endToken:
		p.addOffer(offer{kind: offerEnd})
	case isArithmetic && ofArithmetic != "":
		p.stopAt(t, "found %q: %s", t.text, ofArithmetic)
	default:
		p.addOffer(offer{kind: offerEnd})
		p.stopExpecting()
	}
}

// checkCanonicalLength refuses a text whose canonical form would not be accepted.
func (p *parser) checkCanonicalLength(text string) {
	if n := len([]rune(text)); n > MaxCharacters {
		p.stopAt(p.tokens[len(p.tokens)-1], "the canonical text has %d characters: at most %d are allowed", n,
			MaxCharacters)
	}
}

func (p *parser) peekToken() token {
	if p.stopped {
		return token{}
	}
	return p.tokens[p.at]
}

// nextToken goes to the next token. The end of the text has no next one.
func (p *parser) nextToken() {
	if !p.stopped && p.at+1 < len(p.tokens) {
		p.at++
		p.offers = nil
	}
}

// takeToken takes an operator or a word of the grammar, if it is the present token.
func (p *parser) takeToken(text string) bool {
	p.addOffer(offer{kind: offerToken, text: text})
	if !p.peekToken().isOperator(text) {
		return false
	}
	p.nextToken()
	return true
}

// requireToken takes an operator or a word of the grammar.
func (p *parser) requireToken(text string) {
	if !p.takeToken(text) {
		p.stopExpecting()
	}
}

// addFault adds an error that does not stop the parser.
func (p *parser) addFault(at token, detail string, values ...any) {
	if !p.stopped {
		p.faults = append(p.faults, Fault{at.from + 1, fmt.Sprintf(detail, values...)})
	}
}

// stopAt adds an error of the grammar.
func (p *parser) stopAt(at token, detail string, values ...any) {
	p.addFault(at, detail, values...)
	p.stopped = true
}

// stopExpecting adds an error: the present token is none that may follow.
func (p *parser) stopExpecting() {
	found := p.peekToken()
	p.stopAt(found, "expected %s, found %s", describeOffers(p.offers), found)
}

func (p *parser) addOffer(o offer) {
	if !p.stopped {
		p.offers = append(p.offers, o)
	}
}

func (p *parser) parseQuantity() (q Quantity) {
	for _, call := range Calls {
		if p.takeToken(string(call)) {
			q.Call = call
			break
		}
	}
	if q.Call == "" {
		p.stopExpecting()
		return q
	}
	p.requireToken("(")
	p.parseSteps(&q)
	if q.Call == Converted {
		q.AtLeast = p.parseAtLeast()
	}
	p.requireToken(")")
	if p.takeToken("within") {
		q.Within = p.parseRange(q.Call == Funnel)
	}
	return q
}

// parseSteps reads the events of a quantity, and the field that is read of them.
func (p *parser) parseSteps(q *Quantity) {
	q.Steps = []Events{p.parseEvents(q)}
	if q.Call != Funnel {
		return
	}
	for p.requireToken(","); !p.stopped; {
		at := p.peekToken()
		step := p.parseEvents(q)
		p.checkStep(at, q.Steps, &step)
		if len(q.Steps) == MaxSteps {
			p.stopAt(at, "a funnel has at most %d steps", MaxSteps)
		}
		q.Steps = append(q.Steps, step)
		if !p.takeToken(",") {
			return
		}
	}
}

// checkStep refuses a step of a funnel that counts events of an earlier step: one event would be both.
func (p *parser) checkStep(at token, earlier []Events, step *Events) {
	for i := range earlier {
		if shared := earlier[i].sharedGoals(step); shared != "" {
			const detail = "steps %d and %d are both of %[3]s: write converted(%[3]s at least 2)"
			p.addFault(at, detail, i+1, len(earlier)+1, shared)
			return
		}
	}
}

// sharedGoals returns a text of the goals of both, or an empty text.
func (e *Events) sharedGoals(o *Events) string {
	switch {
	case len(e.Goals) == 0:
		return o.formatGoals()
	case len(o.Goals) == 0:
		return e.formatGoals()
	}
	both := Events{Goals: slices.DeleteFunc(slices.Clone(e.Goals), func(g Goal) bool {
		return !slices.Contains(o.Goals, g)
	})}
	if len(both.Goals) == 0 {
		return ""
	}
	return both.formatGoals()
}

func (p *parser) parseEvents(q *Quantity) (e Events) {
	at := p.peekToken()
	e.Goals = p.parseGoals(q.Call == Converted || q.Call == Count)
	if q.Call == Sum || q.Call == Max || q.Call == Distinct {
		q.Field = p.parseCallField(q.Call, e.formatGoals())
	}
	if !p.takeToken("where") {
		return e
	}
	e.Where = p.parseCondition()
	if len(e.Goals) > 0 && e.Goals[0].Action != "" {
		p.addFault(at, "an action has no value, properties or lines: it takes no condition")
	}
	return e
}

// parseGoals reads any, or goals, or actions.
func (p *parser) parseGoals(withActions bool) (goals []Goal) {
	if p.takeToken("any") {
		return nil
	}
	for !p.stopped {
		at := p.peekToken()
		g := p.parseGoal(withActions)
		if len(goals) > 0 && (g.Action == "") != (goals[0].Action == "") {
			p.addFault(at, "goals and actions cannot be combined by |")
		}
		goals = append(goals, g)
		if !p.takeToken("|") {
			break
		}
	}
	slices.SortFunc(goals, func(a, b Goal) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(goals)
}

func (p *parser) parseGoal(withActions bool) (g Goal) {
	p.addOffer(offer{kind: offerGoal, withActions: withActions})
	t := p.peekToken()
	isKeyword := t.kind == wordToken && slices.Contains(keywords, t.text)
	switch {
	case p.takeHidden("#"):
		return p.parseGoalID(t)
	case p.takeHidden("@"):
		return p.parseAction(t, withActions)
	case t.kind == numberToken:
		p.stopAt(t, "a goal is written by its key, or by its id as #%s", t.text)
		return g
	case t.kind != quotedToken && t.kind != wordToken || isKeyword:
		p.stopExpecting()
		return g
	}
	p.nextToken()
	g, known := p.names.findGoal(t.text)
	if !known {
		p.addFault(t, "unknown goal %q: %s", t.text, suggestNames(t.text, p.names.listGoals()))
		g.Key = t.text
	}
	return g
}

// takeHidden is takeToken for a token that is part of an offer of goals.
func (p *parser) takeHidden(text string) bool {
	if !p.peekToken().isOperator(text) {
		return false
	}
	p.nextToken()
	return true
}

// parseGoalID reads the id of a goal. at is the # before it.
func (p *parser) parseGoalID(at token) Goal {
	const largest = 1<<53 - 1 // of all ids
	p.addOffer(offer{kind: offerInteger, text: "the id of a goal, such as #17"})
	id, isID := p.takeInteger(largest)
	if !isID {
		p.stopExpecting()
		return Goal{}
	}
	g, known := p.names.findGoalByID(id)
	if !known && !p.names.AcceptsUnknownGoals {
		p.addFault(at, "unknown goal #%d: %s", id, suggestNames("", p.names.listGoals()))
	}
	return g
}

func (p *parser) parseAction(at token, allowed bool) Goal {
	p.addOffer(offer{kind: offerAction})
	t := p.peekToken()
	if t.kind != wordToken || !slices.Contains(Actions, Action(t.text)) {
		p.stopExpecting()
		return Goal{}
	}
	p.nextToken()
	if !allowed {
		p.addFault(at, "an action can only be in converted and count, such as count(@%s)", t.text)
	}
	return Goal{Action: Action(t.text)}
}

func (p *parser) parseAtLeast() int {
	if !p.takeToken("at") {
		return 1
	}
	p.requireToken("least")
	p.addOffer(offer{kind: offerInteger, text: fmt.Sprintf("an integer from 1 to %d", MaxAtLeast)})
	least, isInteger := p.takeInteger(MaxAtLeast)
	if !isInteger {
		p.stopExpecting()
		return 1
	}
	return int(least)
}

// takeInteger takes the next token if it is an integer from 1 to largest. Otherwise it returns false.
func (p *parser) takeInteger(largest int64) (int64, bool) {
	t := p.peekToken()
	n, err := strconv.ParseInt(t.text, 10, 64)
	isInteger := t.kind == numberToken && err == nil
	if !isInteger || n < 1 || n > largest {
		return 0, false
	}
	p.nextToken()
	return n, true
}

// parseRange reads a range of ages; of a funnel, the longest time between its first and its last step.
func (p *parser) parseRange(ofFunnel bool) (r Range) {
	at := p.peekToken()
	r.To = p.parseTime()
	if ofFunnel || !p.takeToken("..") {
		if r.To == 0 {
			p.addFault(at, "a time is from 1h to 400d, such as 7d")
		}
		return r
	}
	at = p.peekToken()
	r.From = r.To
	r.To = p.parseTime()
	if r.From >= r.To {
		p.addFault(at, "a range ends after its start, such as 7d..14d")
	}
	return r
}

// parseTime reads a number of hours or days.
func (p *parser) parseTime() time.Duration {
	p.addOffer(offer{kind: offerTime})
	t := p.peekToken()
	number, inDays := strings.CutSuffix(t.text, "d")
	if !inDays {
		number = strings.TrimSuffix(t.text, "h")
	}
	n, err := strconv.ParseUint(number, 10, 16)
	d := time.Duration(n) * time.Hour //nolint:gosec // at most 16 bits
	if inDays {
		d *= 24
	}
	if t.kind != wordToken || err != nil || d > MaxWithin {
		p.stopExpecting()
		return 0
	}
	p.nextToken()
	return d
}
