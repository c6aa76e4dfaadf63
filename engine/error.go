package engine

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with a request.
type Fault struct {
	Name   string // of the parameter
	Value  string // as given
	Detail string // what is allowed
}

// InvalidError says all that is wrong with a request.
type InvalidError struct {
	Code   string // of the whole: invalid_parameter, unknown_goal
	Faults []Fault
}

// Error lists the faults.
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

// NotFoundError says that the account has no such resource.
type NotFoundError struct {
	Kind string // website, campaign
	ID   int64
}

// Error names the resource.
func (e *NotFoundError) Error() string {
	if e.ID == NoID {
		return "there is no such " + e.Kind
	}
	return fmt.Sprintf("there is no %s %d", e.Kind, e.ID)
}
