package calculator

import (
	"encoding/json"
	"fmt"
	"math"
)

// The limits of the looks of an input.
const (
	maxLooks = 200
	maxDays  = 3650
	maxTau   = 1000
)

// parseLooks reads the looks. The numbers of visitors and converted visitors must not decrease
// from look to look, nor exceed those of the variations. Values are not checked, because refunds
// can reduce them.
func (r *inputReader) parseLooks(q *Input, list givenValue) {
	if list.text == nil || len(q.Variations) == 0 {
		return
	}
	var texts []json.RawMessage
	want := fmt.Sprintf("an array of 1 to %d looks", maxLooks)
	if json.Unmarshal(list.text, &texts) != nil {
		list.mustBe(want)
		return
	}
	if len(texts) < 1 || len(texts) > maxLooks {
		list.mustBe(fmt.Sprintf("%s, have %d", want, len(texts)))
	}
	var before []earlierSums
	last := 0.0
	for i, text := range texts[:min(len(texts), maxLooks)] {
		given, ok := r.parseObject(fmt.Sprintf("%s[%d]", list.path, i), text, lookFields)
		if !ok {
			continue
		}
		look := Look{}
		look.Variations, before = r.lookSums(q, given.fieldValue("variations"), before, i == len(texts)-1)
		look.Tau = r.parseTau(q, given, last, visitorsOf(look.Variations))
		last = math.Max(last, look.Tau)
		q.Looks = append(q.Looks, look)
	}
}

// parseTau reads the time of a look, which must be later than the previous look. If
// plannedVisitors measure the time, it never decreases.
func (r *inputReader) parseTau(q *Input, given givenFields, last float64, visitors int64) float64 {
	days, tau := given.fieldValue("days"), given.fieldValue("tau")
	if q.PlannedVisitors > 0 {
		for _, v := range []givenValue{days, tau} {
			if v.text != nil {
				v.mustBe("omitted, because plannedVisitors measures the time")
			}
		}
		return math.Max(last, float64(visitors)/float64(q.PlannedVisitors))
	}
	var found float64
	switch {
	case days.text != nil && tau.text != nil:
		tau.mustBe("omitted, because days is given")
		return 0
	case tau.text != nil:
		if found = tau.parseNumber(0, maxTau); found == 0 && string(tau.text) == "0" {
			tau.mustBe("above 0")
		}
	default:
		whole, _ := days.parseInteger(1, maxDays)
		found, tau = float64(whole)/float64(max(q.PlannedDays, 1)), days
	}
	if found > 0 && found <= last {
		tau.mustBe("later than the look before")
	}
	return found
}

// earlierSums are the sums of a variation at a look, and their path in the input.
type earlierSums struct {
	Variation
	validCounts
	path string
}

// lookSums reads the sums of a look. before has the sums of the previous look.
func (r *inputReader) lookSums(q *Input, list givenValue, before []earlierSums, isLast bool) ([]Variation, []earlierSums) {
	var texts []json.RawMessage
	want := fmt.Sprintf("an array of %d variations, in the order of variations", r.given)
	if list.text == nil || json.Unmarshal(list.text, &texts) != nil {
		list.mustBe(want)
		return nil, nil
	}
	if len(texts) != r.given {
		list.mustBe(fmt.Sprintf("%s, have %d", want, len(texts)))
	}
	variations := make([]Variation, len(q.Variations))
	sums := make([]earlierSums, len(q.Variations))
	for i, text := range texts[:min(len(texts), len(q.Variations))] {
		given, ok := r.parseObject(fmt.Sprintf("%s[%d]", list.path, i), text, sumsFields)
		if !ok {
			continue
		}
		today := &q.Variations[i]
		v := &variations[i]
		*v = Variation{ID: today.ID, Control: today.Control, Share: today.Share}
		if id := given.fieldValue("id"); id.text != nil && today.ID >= 0 {
			if n, isWhole := wholeNumber(id.text); !isWhole || n != today.ID {
				id.mustBe(fmt.Sprintf("%d, the id of variations[%d]", today.ID, i))
			}
		}
		sums[i] = earlierSums{validCounts: r.parseSums(q, given, v), path: given.path}
		sums[i].Variation = *v
		if i < len(before) {
			given.notBelow(sums[i], before[i])
		}
		if isLast {
			given.notAbove(sums[i], earlierSums{*today, r.valid[i], fmt.Sprintf("variations[%d]", i)})
		}
	}
	return variations, sums
}

// notBelow rejects sums below those of the previous look.
func (f givenFields) notBelow(now, before earlierSums) {
	if now.visitors && before.visitors && now.Visitors < before.Visitors {
		f.fieldValue("n").mustBe(fmt.Sprintf("at least %d, which is n of %s", before.Visitors, before.path))
	}
	if now.converted && before.converted && now.Converted < before.Converted {
		f.fieldValue("converted").mustBe(fmt.Sprintf("at least %d, which is converted of %s", before.Converted, before.path))
	}
}

// notAbove rejects sums above those of today.
func (f givenFields) notAbove(now, today earlierSums) {
	if now.visitors && today.visitors && now.Visitors > today.Visitors {
		f.fieldValue("n").mustBe(fmt.Sprintf("at most %d, which is n of %s", today.Visitors, today.path))
	}
	if now.converted && today.converted && now.Converted > today.Converted {
		f.fieldValue("converted").mustBe(fmt.Sprintf("at most %d, which is converted of %s", today.Converted, today.path))
	}
}
