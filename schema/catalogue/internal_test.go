package catalogue

import "testing"

// ValidDomain reports whether a website may have the domain.
var ValidDomain = validDomain

// TestConflictsOfALaggingReplica reads a written row back from a replica that does not have it yet.
func TestConflictsOfALaggingReplica(t *testing.T) {
	mine := row{key: key{1, kindToken, 1, partDefinition}, Writer: "this", Version: 1}
	if found := (versions{}).conflictingRows([]row{mine}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
