package catalogue

import (
	"testing"

	"lifthouse/schema/schematest/check"
)

// ValidDomain reports whether a website may have the domain.
var ValidDomain = validDomain

// TestConflictsOfALaggingReplica reads a written row back from a replica that does not have it yet.
func TestConflictsOfALaggingReplica(t *testing.T) {
	mine := row{key: key{1, kindToken, 1, partDefinition}, Writer: "this", Version: 1}
	found := (versions{}).conflictingRows([]row{mine})
	check.That(t, len(found) == 0, "%+v", found)
}
