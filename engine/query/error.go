package query

import (
	"fmt"

	"lifthouse/schema/faults"
)

// InvalidError has all errors of a request.
type InvalidError struct {
	Code   string // invalid_parameter or unknown_goal
	Faults faults.List
}

// Error returns the faults as text.
func (e *InvalidError) Error() string { return e.Faults.Join("; ") }

// InvalidParameters returns an InvalidError with the faults, or nil if there are none.
func InvalidParameters(all ...faults.Fault) error {
	if len(all) == 0 {
		return nil
	}
	return &InvalidError{Code: InvalidParameter, Faults: all}
}

// GoalFault returns the error of a goal that the website does not have.
func GoalFault(id int64) error {
	value := fmt.Sprint(id)
	if id == NoID {
		value = "0, or larger than any id"
	}
	return &InvalidError{Code: UnknownGoal, Faults: faults.List{{Name: ParamGoal, Value: value, Detail: "must be the id of a goal of the same website"}}}
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
