package catalogue

import (
	"fmt"
	"strings"
)

// given lists the fields that a part of a file sets. In the zero value, all fields are
// set.
type given struct {
	lines map[string]int
	path  string
}

func givenIn(lines map[string]int, path string) given { return given{lines, path} }

// listElement returns the fields that an element of a list sets.
func (g given) listElement(list string, index int) given {
	return given{g.lines, fmt.Sprintf("%s.%s[%d]", g.path, list, index)}
}

func (g given) hasField(field string) bool { return g.lines == nil || g.lines[g.path+"."+field] > 0 }

// addNotes adds notes to the last change if it created a resource.
func (a *applier) addNotes(changed bool, notes func() []string) {
	if last := len(a.changes) - 1; changed && a.changes[last].Created {
		a.changes[last].Notes = notes()
	}
}

// creationNotes returns the defaults that apply because the file does not set them. It also
// returns what a new campaign lacks to start, or to compare anything.
func (c *Campaign) creationNotes(given given) []string {
	var defaults, notes []string
	for _, field := range []struct {
		name  string
		value any
	}{
		{"type", c.Type},
		{"trafficAllocation", fmt.Sprintf("%d %%", c.TrafficAllocation)},
		{"controlShare", fmt.Sprintf("%d %%", c.ControlShare)},
		{"significanceLevel", fmt.Sprintf("%d %%", c.SignificanceLevel)},
		{"mde", fmt.Sprintf("%v %%", c.MDE)},
	} {
		if !given.hasField(field.name) {
			defaults = append(defaults, fmt.Sprintf("%s %v", field.name, field.value))
		}
	}
	if len(defaults) > 0 {
		notes = append(notes, "defaults: "+strings.Join(defaults, ", "))
	}
	weights := 0
	for _, v := range c.Variations {
		weights += v.Share
	}
	switch {
	case len(c.Variations) == 0:
		notes = append(notes, "no variations: nothing is compared with control")
	case weights == 0:
		notes = append(notes, "all variations have share 0")
	}
	if c.PrimaryGoalID == 0 {
		notes = append(notes, "no primaryGoalId: reports count all goals")
	}
	return append(notes, startNote(c.Initial, fmt.Sprintf("/v1/campaigns/%d", c.ID))...)
}

// creationNotes returns what a new widget lacks to start.
func (w *Widget) creationNotes() []string {
	notes := startNote(w.Initial, fmt.Sprintf("/v1/widgets/%d", w.ID))
	for _, e := range w.Experiments {
		if !e.Active {
			notes = append(notes, fmt.Sprintf("experiment %d: active: false: set active: true in the file when it starts", e.ID))
		}
	}
	return notes
}

func startNote(initial Initial, path string) []string {
	if initial.Active {
		return nil
	}
	return []string{fmt.Sprintf("active: false: start with POST %s/start, or on the page", path)}
}
