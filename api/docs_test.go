package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestFieldsAreDescribed checks that each schema, each of its fields and each parameter has a description.
func TestFieldsAreDescribed(t *testing.T) {
	c := must.Get(theContract())(t)
	for name, schema := range c.doc.Components.Schemas {
		check.That(t, schema.Value.Description != "", "the schema %s has no description", name)
		for field, of := range schema.Value.Properties {
			check.That(t, of.Value.Description != "", "%s.%s has no description", name, field)
		}
	}
	for name, parameter := range c.doc.Components.Parameters {
		check.That(t, parameter.Value.Description != "", "the parameter %s has no description", name)
	}
}

// TestOperationsAreDescribed checks the texts of operations.
func TestOperationsAreDescribed(t *testing.T) {
	c := must.Get(theContract())(t)
	var ids, summaries []string
	for _, path := range c.paths {
		for method, operation := range path.item.Operations() {
			name := method + " " + path.template
			check.That(t, operation.Summary != "", "%s: summary %q, description %q", name, operation.Summary,
				operation.Description)
			check.That(t, len(operation.Summary) <= 60, "%s: summary %q, description %q", name, operation.Summary,
				operation.Description)
			check.That(t, !strings.HasSuffix(operation.Summary, "."), "%s: summary %q, description %q", name,
				operation.Summary, operation.Description)
			check.That(t, operation.Description != "", "%s: summary %q, description %q", name, operation.Summary,
				operation.Description)
			must.Equal(t, len(operation.Tags), 1, "%s has the tags %q", name, operation.Tags)
			check.That(t, c.doc.Tags.Get(operation.Tags[0]) != nil, "%s has the tags %q", name, operation.Tags)
			if method != http.MethodOptions {
				ids, summaries = append(ids, operation.OperationID), append(summaries, operation.Summary)
			}
		}
	}
	for _, names := range [][]string{ids, summaries} {
		slices.Sort(names)
		check.Equal(t, len(slices.Compact(slices.Clone(names))), len(names), "some are equal: %q", names)
	}
}

// schemasIn calls visit for a schema and all schemas in it.
func schemasIn(name string, schema *openapi3.SchemaRef, visit func(name string, schema *openapi3.SchemaRef)) {
	if schema == nil {
		return
	}
	visit(name, schema)
	if schema.Ref != "" {
		return // visited as a component
	}
	of := schema.Value
	for field, inner := range of.Properties {
		schemasIn(field, inner, visit)
	}
	for _, inner := range slices.Concat(of.AllOf, of.OneOf, of.AnyOf, of.PrefixItems) {
		schemasIn(name, inner, visit)
	}
	schemasIn(name, of.Items, visit)
}

// TestIntervalsAreTuplesAndIDsAreIntegers checks the types of all fields and parameters.
func TestIntervalsAreTuplesAndIDsAreIntegers(t *testing.T) {
	c := must.Get(theContract())(t)
	const interval = "#/components/schemas/Interval"
	id := regexp.MustCompile(`^id$|^\w+Id$`)
	ids, intervals := 0, 0
	verify := func(name string, schema *openapi3.SchemaRef) {
		of := schema.Value
		switch {
		case name == "eventId", name == "requestId": // chosen by a client
		case of.Type.Includes("string") && of.Pattern != "": // a hash, of an entry of the log or of a readout
		case id.MatchString(name):
			ids++
			isKey := of.Type.Includes("string") && of.MaxLength != nil // of an event
			if !of.Type.Includes("integer") || !isKey && of.Type.Includes("string") || of.Format != "int64" ||
				of.Min == nil {
				t.Errorf("%s is not an integer of 64 bits with a minimum", name)
			}
		}
		if schema.Ref == interval {
			intervals++
		} else if len(of.PrefixItems) == 0 && of.Items != nil && of.Items.Value.Type.Includes("number") &&
			of.Items.Value.Type.Includes("null") {
			t.Errorf("%s is a list of numbers and nulls, want an Interval", name)
		}
	}
	for name, schema := range c.doc.Components.Schemas {
		schemasIn(name, schema, verify)
	}
	for _, parameter := range c.doc.Components.Parameters {
		schemasIn(parameter.Value.Name, parameter.Value.Schema, verify)
	}
	check.That(t, ids >= 35, "%d ids and %d intervals", ids, intervals)
	check.Equal(t, intervals, 4, "%d ids and %d intervals", ids, intervals)
	tuple := c.doc.Components.Schemas["Interval"].Value
	check.Equal(t, len(tuple.PrefixItems), 2, "the schema Interval is not a tuple of two")
	check.Equal(t, tuple.MinItems, 2, "the schema Interval is not a tuple of two")
	must.That(t, tuple.MaxItems != nil, "the schema Interval is not a tuple of two")
	check.Equal(t, *tuple.MaxItems, 2, "the schema Interval is not a tuple of two")
	for text, valid := range map[string]bool{"1,2": true, "null,2": true, "1,null": true, "null,null": true, "1": false, "1,2,3": false, `1,"2"`: false, "": false} {
		value := must.JSON[any](t, "["+text+"]")
		check.Equal(t, tuple.VisitJSON(value, openapi3.EnableJSONSchema2020()) == nil, valid, "[%s]", text)
	}
}
