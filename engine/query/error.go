package query

import (
	"fmt"
	"strings"
)

// Fault is one error in a request.
type Fault struct {
	Name   string // parameter
	Value  string // as given
	Detail string // what is allowed
}

// InvalidError has all errors of a request.
type InvalidError struct {
	Code   string // invalid_parameter or unknown_goal
	Faults []Fault
}

// Error returns the faults as text.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = fmt.Sprintf("%s: %q: %s", f.Name, f.Value, f.Detail)
	}
	return strings.Join(texts, "; ")
}

// The values of InvalidError.Code.
const (
	InvalidParameter = "invalid_parameter"
	UnknownGoal      = "unknown_goal"
)

// NotFoundError reports that the account has no such resource.
type NotFoundError struct {
	Kind string // website, campaign
	ID   int64
}

// Error returns the kind and the id of the resource.
func (e *NotFoundError) Error() string {
	if e.ID == NoID {
		return e.Kind + " not found"
	}
	return fmt.Sprintf("%s %d not found", e.Kind, e.ID)
}
