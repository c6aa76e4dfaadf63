package readout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
)

// Summary is what is kept of a readout beside its body: the answer, and what later events may change.
type Summary struct {
	Question   string        `json:"question"` // hash of the declaration
	Status     string        `json:"status,omitempty"`
	Sentence   string        `json:"sentence"`
	Variation  *int64        `json:"variationId,omitempty"` // of the decision
	Variations []SummaryLift `json:"variations"`            // without control
}

// SummaryLift is the lift of a variation at the look.
type SummaryLift struct {
	ID          int64    `json:"id"`
	Lift        *float64 `json:"lift"`
	Text        string   `json:"text"` // the lift as it is written
	Significant bool     `json:"significant"`
}

// NewSummary returns the summary of what was known at a look.
func NewSummary(at *engine.AtLook) Summary {
	s := Summary{Question: strconv.FormatUint(at.Question, 16)}
	b := &builder{Sources: Sources{AtLook: at}, report: at.Report}
	if d := at.Report.Decision; d != nil {
		s.Status, s.Sentence, s.Variation = string(d.Status), d.Text, d.VariationID
	} else {
		s.Sentence = at.Report.Conclusion.Text
	}
	for i := range at.Report.Variations {
		v := &at.Report.Variations[i]
		if v.Comparison == nil {
			continue
		}
		lift, _ := b.liftAt(v)
		of := SummaryLift{ID: v.ID, Lift: lift.Value, Text: liftText(lift), Significant: v.Comparison.Significant}
		if look := b.lookRow(v.ID); look != nil {
			of.Significant = look.Significant
		}
		s.Variations = append(s.Variations, of)
	}
	return s
}

// ParseSummary parses a stored summary.
func ParseSummary(text []byte) (s Summary, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read the summary of a readout: %w", err)
	}
	return s, nil
}

// Since says what has changed since a readout was made.
type Since struct {
	Changed bool   `json:"changed"`
	Text    string `json:"text"`
}

// NewSince compares a readout with what is known now at the same look, and with the decision of now. look is the number
// of the look; 0: the readout is about full days.
func NewSince(then *Summary, look int, at *engine.AtLook, now *result.Decision) Since {
	if then.Question != strconv.FormatUint(at.Question, 16) {
		return Since{true, "Since then: another question was declared, so the figures of this readout are not " +
			"comparable with those of now."}
	}
	subject := fmt.Sprint("look ", look)
	if look == 0 {
		subject = "these days"
	}
	moved, isOtherwise := then.findMoves(at)
	stands := then.newDecision(now)
	var sentences []string
	switch {
	case len(moved) > 0:
		sentences = append(sentences, fmt.Sprintf("events that arrived or changed later give %s %s.", subject,
			strings.Join(moved, ", and ")))
	case stands == "":
		return Since{false, "Nothing has changed since."}
	default:
		sentences = append(sentences, fmt.Sprintf("the figures of %s are the same.", subject))
	}
	if isOtherwise {
		sentences = append(sentences, "The question would be answered otherwise today; a recorded look is not changed.")
	}
	sentences = append(sentences, cmp.Or(stands, "The decision stands."))
	return Since{true, "Since then: " + strings.Join(sentences, " ")}
}

// findMoves returns the lifts that are others now, in words, and reports whether any is significant only then or only
// now.
func (s *Summary) findMoves(at *engine.AtLook) (moved []string, isOtherwise bool) {
	b := &builder{Sources: Sources{AtLook: at}, report: at.Report}
	for i := range at.Report.Variations {
		v := &at.Report.Variations[i]
		was := s.findLift(v.ID)
		if v.Comparison == nil || was == nil {
			continue
		}
		lift, _ := b.liftAt(v)
		isSignificant := v.Comparison.Significant
		if look := b.lookRow(v.ID); look != nil {
			isSignificant = look.Significant
			if look.Recomputed != nil {
				lift, isSignificant = &look.Recomputed.Improvement, look.Recomputed.Significant
			}
		}
		isOtherwise = isOtherwise || isSignificant != was.Significant
		isEqual := lift.Value == nil && was.Lift == nil
		if lift.Value != nil && was.Lift != nil {
			isEqual = *lift.Value == *was.Lift
		}
		if isEqual {
			continue
		}
		text := fmt.Sprintf("a lift of %s, not %s", liftText(lift), was.Text)
		if was.Lift != nil && lift.Value != nil && liftText(lift) == was.Text {
			text = fmt.Sprintf("a lift of %s, not %s", exactLift(*lift.Value), exactLift(*was.Lift))
		}
		if len(s.Variations) > 1 {
			text += " (" + v.Name + ")"
		}
		moved = append(moved, text)
	}
	return moved, isOtherwise
}

// exactLift writes a lift with more digits than its interval permits, to show a small change.
func exactLift(x float64) string {
	const decimals = 4
	return wording.FormatPercent(x, decimals, true)
}

// findLift returns the lift of a variation; nil: there is none.
func (s *Summary) findLift(id int64) *SummaryLift {
	for i := range s.Variations {
		if s.Variations[i].ID == id {
			return &s.Variations[i]
		}
	}
	return nil
}

// newDecision returns what is decided now, if it is something else; empty: the decision stands.
func (s *Summary) newDecision(now *result.Decision) string {
	if now == nil {
		return ""
	}
	isSame := s.Status == string(now.Status)
	isOfSame := (s.Variation == nil) == (now.VariationID == nil)
	if isOfSame && s.Variation != nil {
		isOfSame = *s.Variation == *now.VariationID
	}
	if isSame && isOfSame {
		return ""
	}
	return "The decision is now: " + now.Text
}
