package calculator

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// plannedLook reads the sums of the planned look.
func (r *inputReader) plannedLook(q *Input, given givenValue) {
	if given.text == nil {
		return
	}
	fields, ok := r.object(given.path, given.text, lookFields)
	if !ok || r.given == 0 {
		return
	}
	var texts []json.RawMessage
	list := fields.value("variations")
	want := fmt.Sprintf("an array of %d variations, in the order of variations", r.given)
	if list.text == nil || json.Unmarshal(list.text, &texts) != nil {
		list.want(want)
		return
	}
	complete := len(texts) == r.given
	if !complete {
		list.want(fmt.Sprintf("%s, have %d", want, len(texts)))
	}
	q.PlannedLook = make([]Variation, len(q.Variations))
	for i, text := range texts[:min(len(texts), len(q.Variations))] {
		sums, ok := r.object(fmt.Sprintf("%s[%d]", list.path, i), text, sumsFields)
		complete = ok && r.earlier(q, i, sums) && complete
	}
	if complete {
		r.reached(q, list)
	}
}

// earlier reads the sums of variation i at the planned look. It returns false if the
// number of visitors is invalid.
//
// Visitors and converted visitors only increase after the planned look. Unconverted
// visitors may convert later, and values may fall through refunds, so that these are
// not checked.
func (r *inputReader) earlier(q *Input, i int, given givenFields) bool {
	today, was := &q.Variations[i], &q.PlannedLook[i]
	*was = Variation{ID: today.ID, Control: today.Control, Share: today.Share}
	if id := given.value("id"); id.text != nil && today.ID >= 0 {
		if n, isWhole := wholeNumber(id.text); !isWhole || n != today.ID {
			id.want(fmt.Sprintf("%d, the id of variations[%d]", today.ID, i))
		}
	}
	valid := r.sums(q, given, was)
	if valid.visitors && r.valid[i].visitors && was.Visitors > today.Visitors {
		given.value("n").want(fmt.Sprintf("at most %d, which is n of variations[%d]", today.Visitors, i))
	}
	if valid.converted && r.valid[i].converted && was.Converted > today.Converted {
		given.value("converted").want(fmt.Sprintf("at most %d, which is converted of variations[%d]", today.Converted, i))
	}
	return valid.visitors
}

// reached checks that the planned look has the planned number of visitors.
func (r *inputReader) reached(q *Input, list givenValue) {
	if n := visitorsOf(q.PlannedLook); n < q.PlannedVisitors {
		r.fault(list.path, strconv.FormatInt(n, 10), fmt.Sprintf("must have at least %d visitors in all, which is plannedVisitors, have %d; omit plannedLook until then", q.PlannedVisitors, n))
	}
}

// visitorsOf returns the number of visitors over all variations.
func visitorsOf(variations []Variation) int64 {
	var n int64
	for i := range variations {
		n += variations[i].Visitors
	}
	return n
}
