package schema_test

import (
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
)

// TestIdentity has the text and the hashes of an identity with each kind of field.
func TestIdentity(t *testing.T) {
	of := schema.NewIdentity("thing", 2)
	of.Add("name", "a \"b\"\n=c")
	of.AddNumber("number", -1.5e-9)
	of.AddDuration("time", 90*time.Second)
	of.AddSubject(schema.Subject{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 7, ExperimentID: 9})
	check.Equal(t, of.String(), `thing="2"
name="a \"b\"\n=c"
number="-1.5e-09"
time="90"
website="1"
subject="widget"
id="7"
experiment="9"
`)
	check.Equal(t, of.Hash(), uint64(13237480272948292858))
	check.Equal(t, of.Hex(), "faec524e2cfab4b7fbae2f3f12440c93")
}

// TestIdentitiesDiffer has facts whose fields would be equal if they were only joined.
func TestIdentitiesDiffer(t *testing.T) {
	identify := func(fields ...string) uint64 {
		of := schema.NewIdentity("thing", 1)
		for i := 0; i < len(fields); i += 2 {
			of.Add(fields[i], fields[i+1])
		}
		return of.Hash()
	}
	all := map[uint64][]string{}
	for _, fields := range [][]string{
		{}, {"a", ""}, {"a", "1"}, {"a", "1", "b", "2"}, {"b", "2", "a", "1"}, {"a", "1\"\nb=\"2"}, {"a", "12"}, {"a1", "2"},
	} {
		hash := identify(fields...)
		check.That(t, all[hash] == nil, "%q and %q have the same hash", all[hash], fields)
		all[hash] = fields
	}
}
