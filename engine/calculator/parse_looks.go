package calculator

import (
	"cmp"
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
	texts := list.parseList(1, maxLooks, fmt.Sprintf("an array of 1 to %d looks", maxLooks))
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
	texts := list.parseList(r.given, r.given, fmt.Sprintf("an array of %d variations, in the order of variations", r.given))
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
			given.compareSums(sums[i], before[i], -1, "at least")
		}
		if isLast {
			given.compareSums(sums[i], earlierSums{*today, r.valid[i], fmt.Sprintf("variations[%d]", i)}, 1, "at most")
		}
	}
	return variations, sums
}

// compareSums rejects sums that are below (-1) or above (1) those of the previous look or of today.
func (f givenFields) compareSums(now, other earlierSums, wrong int, bound string) {
	if now.visitors && other.visitors && cmp.Compare(now.Visitors, other.Visitors) == wrong {
		f.fieldValue("n").mustBe(fmt.Sprintf("%s %d, which is n of %s", bound, other.Visitors, other.path))
	}
	if now.converted && other.converted && cmp.Compare(now.Converted, other.Converted) == wrong {
		f.fieldValue("converted").mustBe(fmt.Sprintf("%s %d, which is converted of %s", bound, other.Converted, other.path))
	}
}
