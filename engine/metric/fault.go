package metric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lifthouse/schema/faults"
)

// Fault is an error in a text.
type Fault struct {
	Character int    // from 1; of a text that ends too early, the one after its last
	Detail    string // what is wrong, and what is allowed
}

// String returns the fault with its place.
func (f Fault) String() string { return fmt.Sprintf("at character %d: %s", f.Character, f.Detail) }

// Faults are all errors that were found in a text, in the order of their characters. After an error of the grammar the
// rest of the text is not read.
type Faults []Fault

// Error returns the faults, separated by semicolons.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = f[i].String()
	}
	return strings.Join(texts, "; ")
}

// ListFaults returns the faults of a parameter or field with a text.
func (f Faults) ListFaults(name, text string) (list faults.List) {
	for _, fault := range f {
		list = append(list, faults.Fault{Name: name, Value: text, Detail: fault.String()})
	}
	return list
}

// orNil returns the faults in order, or nil without any.
func (f Faults) orNil() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Character, b.Character) })
	return slices.Compact(f)
}
