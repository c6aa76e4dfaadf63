package metric

import "slices"

// Ask is a question as people write it in one line:
//
//	ask = metric [ "for" visitors ] [ "by" attribute [ "," attribute ] ] [ "split" text ]
type Ask struct {
	Metric     *Metric
	Visitors   *Condition // nil: all
	Dimensions []string   // attributes by which the visitors are broken down, at most two
	Split      *Field     // text by which the metric is split; nil: none
}

// ParseAsk returns the question of a line, in canonical form. The error has all Faults that were found.
func ParseAsk(text string, names *Names) (*Ask, error) {
	return parseWhole(text, names, (*parser).parseAsk)
}

// ParseSplit returns the text of events or of lines by which a metric is split. The error has all Faults that were
// found.
func ParseSplit(text string, names *Names) (*Field, error) {
	p := newParser(text, names)
	field := p.parseSplit()
	p.parseEnd("")
	if err := p.faults.orNil(); err != nil {
		return nil, err
	}
	return field, nil
}

// CompleteAsk returns what may follow after a number of characters of a question.
func CompleteAsk(text string, at int, names *Names) Completion {
	return completeAt(text, at, names, func(p *parser) { p.parseAsk() })
}

// String returns the canonical text.
func (a *Ask) String() string {
	text := a.Metric.String()
	if a.Visitors != nil {
		text += " for " + a.Visitors.String()
	}
	for i, name := range a.Dimensions {
		text += []string{" by ", ", "}[i] + name
	}
	if a.Split != nil {
		text += " split " + a.Split.Name
	}
	return text
}

func (p *parser) parseAsk() *Ask {
	ask := &Ask{Metric: p.parseRatio()}
	if p.takeToken("for") {
		p.ofVisitors = true
		ask.Visitors = p.parseCondition()
		p.ofVisitors = false
	}
	if p.takeToken("by") {
		ask.Dimensions = p.parseDimensions()
	}
	at := p.peekToken()
	if p.takeToken("split") {
		ask.Split = p.parseSplit()
		if len(ask.Dimensions) > 0 {
			p.addFault(at, "a question has a breakdown or a split: omit by or split")
		}
	}
	p.parseEnd(oneOrTwo)
	return ask
}

// parseDimensions reads one or two attributes.
func (p *parser) parseDimensions() (names []string) {
	const most = 2
	p.ofVisitors = true
	defer func() { p.ofVisitors = false }()
	for !p.stopped {
		at := p.peekToken()
		f, _ := p.parseField()
		switch {
		case slices.Contains(names, f.name):
			p.addFault(at, "the breakdown has %s twice", f.name)
		case len(names) == most:
			p.stopAt(at, "a breakdown has at most two attributes")
		}
		names = append(names, f.name)
		if !p.takeToken(",") {
			break
		}
	}
	return names
}

// parseSplit reads a text of events or of lines.
func (p *parser) parseSplit() *Field {
	p.addOffer(offer{kind: offerCallField, afterPoint: true})
	at := p.peekToken()
	if at.kind != wordToken {
		p.stopExpecting()
		return nil
	}
	f, known := p.findField(p.readFieldName())
	switch {
	case p.stopped:
	case !known:
		p.addFault(at, "unknown field or property %q: %s", f.name, suggestNames(f.name, p.names.listFields()))
	case !f.text:
		p.addFault(at, "%s is a number: a split needs a text, such as items.product", f.name)
	}
	return &Field{f.source, f.name, false}
}
