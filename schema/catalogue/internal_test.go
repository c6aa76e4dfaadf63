package catalogue

import (
	"fmt"
	"testing"

	"lifthouse/engine/metric"
	"lifthouse/schema"
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

func TestNamedShares(t *testing.T) {
	two := []Variation{{ID: 1, Name: "B", Share: 1}, {ID: 2, Name: "C", Share: 3}}
	for _, c := range []struct {
		name     string
		campaign Campaign
		want     []NamedShare
	}{
		{"only Control", Campaign{}, []NamedShare{{"Control", 0}}},
		{"a variation in place of Control", Campaign{Variations: two}, []NamedShare{{"B", .25}, {"C", .75}}},
		{
			"the rest by weights",
			Campaign{ControlShare: 50, Variations: two},
			[]NamedShare{{"Control", .5}, {"B", .125}, {"C", .375}},
		},
		{
			"no weights",
			Campaign{ControlShare: 50, Variations: []Variation{{ID: 1, Name: "B"}}},
			[]NamedShare{{"Control", .5}, {"B", 0}},
		},
	} {
		got := c.campaign.namedShares()
		check.Equal(t, fmt.Sprint(got), fmt.Sprint(c.want), c.name)
	}
}

// TestNamesOfMetricsAreReserved checks that no property and no own attribute has a name that metrics read as something
// else. The currency is the only further name.
func TestNamesOfMetricsAreReserved(t *testing.T) {
	for _, name := range schema.ReservedWords {
		check.Equal(t, metric.IsReserved(name), name != "currency", "%s in metrics", name)
	}
	for _, name := range metric.Attributes {
		check.That(t, schema.LabelFault(name) != "", "%s is allowed as a name", name)
	}
	check.Equal(t, len(metric.Attributes), len(schema.AttributeNames))
}
