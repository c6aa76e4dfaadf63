package ingest

import (
	"slices"

	"lifthouse/schema"
)

// Outcome counts the rows of one or more writes by outcome.
type Outcome struct {
	Inserted   int // inserted rows
	Duplicates int // rows that were already stored, or that occurred earlier in the same call
	Conflicts  int // duplicates with other content; the first row is kept
	Attributed int // derived rows that were inserted: one per unattributed goal and subject that its visitor saw
}

// Add adds the counts of another outcome.
func (o *Outcome) Add(other Outcome) {
	o.Inserted += other.Inserted
	o.Duplicates += other.Duplicates
	o.Conflicts += other.Conflicts
	o.Attributed += other.Attributed
}

// Verdict is the outcome of one event.
type Verdict int

// The outcomes of an event.
const (
	Stored    Verdict = iota
	Duplicate         // duplicate of a stored event, or of an earlier event of the same call
	Conflict          // duplicate with other content; the first event is kept
)

// selectStored returns the events with the verdict Stored. The result may be the
// given slice.
func selectStored(events []schema.Event, verdicts []Verdict) []schema.Event {
	if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v != Stored }) {
		return events
	}
	selected := make([]schema.Event, 0, len(events))
	for i := range events {
		if verdicts[i] == Stored {
			selected = append(selected, events[i])
		}
	}
	return selected
}

func outcomeOf(verdicts []Verdict) Outcome {
	var o Outcome
	for _, v := range verdicts {
		switch v {
		case Stored:
			o.Inserted++
		case Conflict:
			o.Conflicts++
			o.Duplicates++
		case Duplicate:
			o.Duplicates++
		}
	}
	return o
}

// duplicateVerdict returns the verdict on an event with the same identity as an
// earlier one.
func duplicateVerdict(earlier, later *schema.Event) Verdict {
	same := *later
	same.Derived = earlier.Derived // not part of the content
	if *earlier != same {
		return Conflict
	}
	return Duplicate
}

// batchVerdicts returns a verdict per event. The first event of each identity is
// Stored; the others are duplicates.
func batchVerdicts(events []schema.Event) []Verdict {
	verdicts := make([]Verdict, len(events))
	first := make(map[identity]*schema.Event, len(events))
	for i := range events {
		e := &events[i]
		if earlier, known := first[identityOf(e)]; known {
			verdicts[i] = duplicateVerdict(earlier, e)
			continue
		}
		first[identityOf(e)] = e
	}
	return verdicts
}
