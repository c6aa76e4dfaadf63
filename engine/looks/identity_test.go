package looks

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/stats"
)

// TestDeclarationsAreIdentifiedForever has the text and the hash of a declaration with all fields. A recorded look is
// found by this hash. A change makes all recorded looks those of another declaration, and must increase
// declarationVersion.
func TestDeclarationsAreIdentifiedForever(t *testing.T) {
	p := &plan.Plan{Question: plan.Question{MultipleExposures: "exclude"}}
	p.Rules.Methodology, p.Rules.SignificanceLevel = "bayesian", 95
	p.Rules.LookRules = plan.LookRules{
		PlannedDays: 28, PlannedVisitors: 1000, Maturity: 10 * time.Minute,
		EquivalenceMargin: .015,
	}
	p.Rules.Prior = &stats.Prior{Mean: -.001, StandardDeviation: .03, Campaigns: new(7)}
	p.Declared.Cap = &schema.Cap{Percentile: 99.5}
	p.Declared.ConversionWindow = schema.ConversionWindow{
		From: time.Hour, To: 7 * 24 * time.Hour,
		Settle: 14 * 24 * time.Hour,
	}
	p.Variations = []plan.Variation{{ID: 0}, {ID: 2}, {ID: 3, Added: true}}
	of := identityOfDeclaration(p)
	check.Equal(t, of.String(), `declaration="1"
methodology="bayesian"
significanceLevel="95"
plannedDays="28"
plannedVisitors="1000"
maturity="600"
equivalenceMargin="0.015"
multipleExposures="exclude"
priorMean="-0.001"
priorStandardDeviation="0.03"
cap="p99.5"
windowFrom="3600"
windowTo="604800"
settle="1209600"
variation="0"
variation="2"
`)
	check.Equal(t, of.Hash(), uint64(17146101110910471975))

	plain := &plan.Plan{Question: plan.Question{MultipleExposures: "firstVariation"}}
	plain.Rules.Methodology, plain.Rules.SignificanceLevel, plain.Rules.PlannedDays = "frequentist", 95, 28
	check.Equal(t, DeclarationOf(plain).Hash, uint64(17330414574368407626))
}

// TestDeclarationsHaveAllFields lists the fields of the settings from which a declaration is identified. The author
// of a new one decides whether a look depends on it. If it does, it belongs to identityOfDeclaration, with a higher
// declarationVersion; in both cases, it belongs to this list.
func TestDeclarationsHaveAllFields(t *testing.T) {
	fieldsOf := func(of any) string {
		var names []string
		for field := range reflect.TypeOf(of).Fields() {
			names = append(names, field.Name)
		}
		return strings.Join(names, " ")
	}
	check.Equal(t, fieldsOf(plan.LookRules{}), "PlannedDays PlannedVisitors Maturity EquivalenceMargin")
	check.Equal(t, fieldsOf(plan.Rules{}), "Compare Methodology SignificanceLevel Power MDE Prior StatedPrior LookRules")
	check.Equal(t, fieldsOf(stats.Prior{}), "Mean StandardDeviation Campaigns")
	check.Equal(t, fieldsOf(schema.Cap{}), "Percentile Units")
	check.Equal(t, fieldsOf(schema.ConversionWindow{}), "From To Settle")
	check.Equal(t, fieldsOf(schema.Subject{}), "WebsiteID Kind ID ExperimentID")
}
