package api_test

import (
	"net/http"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestPlanRefusals asks for plans that no website can have. An error names all faults at once.
func TestPlanRefusals(t *testing.T) {
	s, _ := newTwoSites(t)
	const path = "/v1/websites/1/plan"
	for _, test := range []struct {
		query string
		wants []string
	}{
		{"?power=59&mde=.5&traffic=0&share=50&share=x&metric=visits&methodology=none&significanceLevel=99&visitorsPerDay=-1&colour=red", []string{
			`"name":"power","value":"59","detail":"must be an integer from 60 to 99"`,
			`"name":"mde","value":".5","detail":"must be a number from 1 to 100"`,
			`"name":"traffic","value":"0","detail":"must be an integer from 1 to 100"`,
			`"name":"share","value":"x","detail":"must be an integer from 1 to 99"`,
			`"name":"metric","value":"visits"`, `"name":"methodology","value":"none"`,
			`"name":"significanceLevel","value":"99"`, `"name":"visitorsPerDay","value":"-1"`,
			`"name":"colour","value":"red","detail":"unknown parameter`,
		}},
		{"?share=50&share=40", []string{`"name":"share","value":"50, 40"`, "the sum 100"}},
		{"?campaign=12&goal=3&mde=10", []string{
			`"name":"goal","value":"3","detail":"must be omitted with campaign`,
			`"name":"mde","value":"10","detail":"must be omitted with campaign`,
		}},
		{"?campaign=99", []string{`"name":"campaign","value":"99","detail":"must be the id of a campaign`}},
		{"?share=99", []string{`"name":"share","value":"99"`}},
		{"?mde=1e999", []string{`"name":"mde"`}},
		{"?goal=30", []string{"unknown_goal"}},
		{"?goal=3", []string{`"name":"visitorsPerDay"`, "is required: no campaign"}},
	} {
		response := s.Get(path + test.query).Send()
		response.CheckStatus(http.StatusBadRequest)
		for _, want := range test.wants {
			check.Contains(t, response.Text, want, "%s", test.query)
		}
	}
	s.Get("/v1/websites/9/plan").Send().CheckStatus(http.StatusNotFound)
}
