package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Event is a stored event with the time of its acceptance.
type Event struct {
	AcceptedAt time.Time
	schema.Event

	unattributed bool // a goal without exposures, in the chapter of a subject for which it counts
}

// Chapter explains how the report of a campaign, widget or experiment counts a visitor. The
// report has neither filters nor a window.
type Chapter struct {
	Subject   schema.Subject
	Name      string    // of the campaign, widget or experiment; empty: not declared, or unattributed goals
	Counts    bool      // the visitor is in the report
	Why       string    // why the visitor is in the report, or is not
	FirstView time.Time // zero: no view
	Variation int64     // of the first view
	Lines     []Line
}

// Line is an event of a chapter.
type Line struct {
	Event
	Counts  bool // the event counts in the report of its goal
	Why     string
	Arrival string // note that the event arrived late or before its time; empty: neither
}

// ExplainEvents explains all stored events of one visitor, including copies. It returns a chapter for each
// campaign, widget and experiment, and one for the unattributed goals of each website. asOf returns a plan as it was in
// force at the first view of its subject.
func ExplainEvents(events []Event, known *catalogue.Snapshot, asOf func(*plan.Plan) *plan.Plan) []Chapter {
	bySubject, copies := map[schema.Subject][]Event{}, map[schema.Subject][]Line{}
	first := map[identity]Event{}
	for _, e := range slices.SortedStableFunc(slices.Values(events), func(a, b Event) int { return a.AcceptedAt.Compare(b.AcceptedAt) }) {
		s, id := e.SubjectOf(), identity{e.SubjectOf(), e.EventID}
		if counted, is := first[id]; is {
			copies[s] = append(copies[s], Line{Event: e, Why: copyOf(&counted, &e), Arrival: arrivalNote(&e)})
			continue
		}
		first[id] = e
		bySubject[s] = append(bySubject[s], e)
	}
	var chapters []Chapter
	for subject, own := range bySubject {
		if subject.Kind != schema.SubjectNone {
			own = append(own, attributedTo(subject, own, bySubject, first)...)
			slices.SortStableFunc(own, inOrder)
			c := newNarrator(subject, own, known, asOf).buildChapter(own)
			c.Lines = append(c.Lines, copies[subject]...)
			chapters = append(chapters, c)
			continue
		}
		slices.SortStableFunc(own, inOrder)
	}
	attributed := chapters
	for subject, own := range bySubject {
		if subject.Kind == schema.SubjectNone {
			c := unattributedChapter(subject, own, attributed, known)
			c.Lines = append(c.Lines, copies[subject]...)
			chapters = append(chapters, c)
		}
	}
	slices.SortFunc(chapters, func(a, b Chapter) int {
		x, y := a.Subject, b.Subject
		return cmp.Or(cmp.Compare(x.WebsiteID, y.WebsiteID), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.ID, y.ID), cmp.Compare(x.ExperimentID, y.ExperimentID))
	})
	return chapters
}

// identity identifies an event of a visitor.
type identity struct {
	schema.Subject
	id uint64
}

// copyOf says why a copy of an event does not count.
func copyOf(counted, e *Event) string {
	same := e.Event
	if same == counted.Event {
		return "a copy of an event that arrived before, " + formatTime(counted.AcceptedAt)
	}
	return "a copy, with other content, of an event that arrived before, " + formatTime(counted.AcceptedAt) + "; the first arrival counts"
}

// attributedTo returns the visitor's unattributed goals that count for a subject: all since the first view,
// except goals with the id of an event of the subject.
func attributedTo(subject schema.Subject, own []Event, bySubject map[schema.Subject][]Event, first map[identity]Event) []Event {
	var firstView *Event
	for i := range own {
		if own[i].Kind == schema.KindView && (firstView == nil || inOrder(own[i], *firstView) < 0) {
			firstView = &own[i]
		}
	}
	if firstView == nil {
		return nil
	}
	var goals []Event
	for _, e := range bySubject[schema.Subject{WebsiteID: subject.WebsiteID, Kind: schema.SubjectNone}] {
		if _, has := first[identity{subject, e.EventID}]; !has && !e.Time.Before(firstView.Time) {
			e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = subject.Kind, subject.ID, subject.ExperimentID, firstView.VariationID
			e.unattributed = true
			goals = append(goals, e)
		}
	}
	return goals
}

// inOrder orders events by time. At the same time, views come first.
func inOrder(a, b Event) int {
	rank := func(e Event) int {
		if e.Kind == schema.KindView {
			return 0
		}
		return 1
	}
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.VariationID, b.VariationID), cmp.Compare(a.EventID, b.EventID))
}

// narrator explains how the report of a subject counts a visitor.
type narrator struct {
	subject  schema.Subject
	plan     *plan.Plan // nil: the subject is not declared
	fault    string     // why the subject is not declared
	owned    *catalogue.AccountResources
	first    *Event // the first view; nil: none
	excluded string // why the visitor is not in the report; empty: the visitor is
}

func newNarrator(subject schema.Subject, own []Event, known *catalogue.Snapshot, asOf func(*plan.Plan) *plan.Plan) *narrator {
	account, _ := known.AccountOfWebsite(subject.WebsiteID)
	n := &narrator{subject: subject, owned: known.AccountResources(account)}
	if p, err := plan.New(plan.ResultsRequest(account, subject), n.owned); err == nil {
		n.plan = asOf(p)
	} else {
		named := catalogue.NewEventNames()
		named.AddRows(&schema.Event{WebsiteID: subject.WebsiteID, Subject: subject.Kind, SubjectID: subject.ID, ExperimentID: subject.ExperimentID}, 1)
		for _, u := range known.UndeclaredNames(named) {
			n.fault = u.Detail
		}
	}
	var seen []int64 // variations
	for i := range own {
		if own[i].Kind != schema.KindView {
			continue
		}
		if n.first == nil {
			n.first = &own[i]
		}
		if !slices.Contains(seen, own[i].VariationID) {
			seen = append(seen, own[i].VariationID)
		}
	}
	n.excluded = n.exclusionReason(seen)
	return n
}

// exclusionReason returns why the visitor is not in the report, or an empty text.
func (n *narrator) exclusionReason(seen []int64) string {
	switch {
	case n.plan == nil:
		return n.fault
	case n.first == nil:
		return "without a view, the visitor is in no report"
	case len(seen) > 1 && n.plan.MultipleExposures == catalogue.ExcludeMultiExposed:
		return fmt.Sprintf("the visitor saw the variations %s; multi-exposed visitors are excluded", listIDs(seen))
	case !slices.ContainsFunc(n.plan.Variations, func(v plan.Variation) bool { return v.ID == n.first.VariationID }):
		return fmt.Sprintf("the first view is of variation %d, which the report does not have", n.first.VariationID)
	}
	return ""
}

func listIDs(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprint(id)
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}

func (n *narrator) buildChapter(own []Event) Chapter {
	c := Chapter{Subject: n.subject, Name: n.subjectName(), Counts: n.excluded == "", Why: n.excluded}
	if n.first != nil {
		c.FirstView, c.Variation = n.first.Time, n.first.VariationID
	}
	if c.Counts {
		c.Why = fmt.Sprintf("the visitor counts for variation %s since the first view, %s", n.variationLabel(n.first.VariationID), formatTime(n.first.Time))
	}
	for i := range own {
		counts, why := n.explainEvent(&own[i])
		c.Lines = append(c.Lines, Line{Event: own[i], Counts: counts, Why: why, Arrival: arrivalNote(&own[i])})
	}
	return c
}

// explainEvent returns whether an event counts, and why.
func (n *narrator) explainEvent(e *Event) (counts bool, why string) {
	switch {
	case n.plan == nil:
		return false, n.subject.ShortName() + " is not declared"
	case n.first == nil:
		return false, "the visitor has no view"
	case e.Time.Before(n.first.Time):
		return false, "before the first view, " + formatTime(n.first.Time)
	case n.excluded != "" && e.Kind == schema.KindView && e.VariationID != n.first.VariationID:
		return false, fmt.Sprintf("a view of another variation than the first view, %d", n.first.VariationID)
	case n.excluded != "":
		return false, "the visitor is not in the report"
	case e == n.first:
		return true, "the first view"
	}
	elsewhere := ""
	if e.VariationID != n.first.VariationID {
		elsewhere = fmt.Sprintf("; the event names variation %d, but the variation of the first view counts", e.VariationID)
	}
	if e.Kind != schema.KindGoal {
		return true, "after the first view" + elsewhere
	}
	switch {
	case n.plan.Goal == nil:
		return true, "after the first view; the report counts all goals" + elsewhere
	case n.owned.Goals[e.GoalID].WebsiteID != e.WebsiteID:
		return false, fmt.Sprintf("goal %d is not declared for website %d", e.GoalID, e.WebsiteID)
	case n.plan.Goal.ID != e.GoalID:
		return true, fmt.Sprintf("in reports of goal %d; the primary goal is %d", e.GoalID, n.plan.Goal.ID) + elsewhere
	}
	return true, "after the first view" + elsewhere
}

// subjectName returns the name of the subject, or an empty text if it is not declared.
func (n *narrator) subjectName() string {
	switch {
	case n.plan == nil:
		return ""
	case n.subject.Kind == schema.SubjectCampaign:
		return n.owned.Campaigns[n.subject.ID].Name
	}
	return n.owned.Widgets[n.subject.ID].Name
}

// variationLabel returns the id and the name of a variation of the report.
func (n *narrator) variationLabel(id int64) string {
	for _, v := range n.plan.Variations {
		if v.ID == id && v.Name != "" {
			return fmt.Sprintf("%d (%s)", id, v.Name)
		}
	}
	return fmt.Sprint(id)
}

// lateAfter is the time from which an event is called late.
const lateAfter = time.Hour

// arrivalNote says whether an event arrived late or before its time, or returns an empty text.
func arrivalNote(e *Event) string {
	late := e.AcceptedAt.Sub(e.Time)
	switch {
	case late > lateAfter:
		return formatDuration(late) + " late"
	case late < -time.Minute:
		return formatDuration(-late) + " before its time: check the sender's clock"
	}
	return ""
}

// formatDuration writes a duration in its largest unit.
func formatDuration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / unit.of); n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a minute"
}

func formatTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

// unattributedChapter returns the chapter of the goals without an exposure. Each goal counts
// for the subjects whose chapters include it.
func unattributedChapter(subject schema.Subject, own []Event, attributed []Chapter, known *catalogue.Snapshot) Chapter {
	c := Chapter{Subject: subject, Why: "goals that name no campaign or widget"}
	account, _ := known.AccountOfWebsite(subject.WebsiteID)
	goals := known.AccountResources(account).Goals
	for _, e := range own {
		line := Line{Event: e, Why: "no campaign or widget was seen before it", Arrival: arrivalNote(&e)}
		var of []string
		for _, chapter := range attributed {
			for _, other := range chapter.Lines {
				if chapter.Subject.WebsiteID == e.WebsiteID && other.unattributed && other.EventID == e.EventID {
					of = append(of, chapter.Subject.ShortName())
					line.Counts = line.Counts || other.Counts
				}
			}
		}
		if len(of) > 0 {
			slices.Sort(of)
			line.Why = "attributed to " + strings.Join(of, ", ")
		}
		if goals[e.GoalID].WebsiteID != e.WebsiteID {
			line.Why = fmt.Sprintf("goal %d is not declared for website %d", e.GoalID, e.WebsiteID)
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}
