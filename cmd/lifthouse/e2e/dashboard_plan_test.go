package e2e

import (
	"fmt"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardPlansAnExperiment compares the page of plans with the API, and changes what is planned. A Bayesian
// campaign that has not started shows what each prior costs.
func TestTheDashboardPlansAnExperiment(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.open("/")
	v.until(`document.querySelector(".tabs a:nth-child(5)")`)
	loaded := func() (all []string) {
		for _, request := range v.requests() {
			if strings.HasSuffix(request.URL, "/dashboard/plan.js") {
				all = append(all, request.URL)
			}
		}
		return all
	}
	check.Equal(t, len(loaded()), 0, "requests for the code of the plan before it opens")
	v.click(".tabs a:nth-child(5)")
	v.planIsTheAPIs("")
	check.Equal(t, len(loaded()), 1, "requests for the code of the plan")
	v.look("plan")

	v.choose(`[name=mde]`, "10")
	v.until(`location.search.includes("mde=10")`)
	v.choose(`[name=methodology]`, "bayesian")
	v.until(`location.search.includes("methodology=bayesian")`)
	v.until(`document.querySelector(".conclusion").innerText.includes("the weak prior")`)
	v.planIsTheAPIs("?mde=10&methodology=bayesian")
	v.choose(`[name=share]`, "50, 40")
	v.shows("must be 2 to 20 numbers in percent with the sum 100")
	v.look("plan-refused")

	v.declare("          - {id: 70, name: Later, type: experiment, primaryGoalId: 3, significanceLevel: 95, " +
		"controlShare: 50, methodology: bayesian, variations: [{id: 1, name: B, share: 50}]}\n")
	v.open("/?campaign=70")
	v.until(`document.querySelectorAll("[aria-labelledby=planned] li").length === 2`)
	var planned result.Outlook
	v.server.get("/v1/websites/1/plan?campaign=70", v.token, &planned)
	must.Equal(t, len(planned.Priors), 2, "priors")
	for i := range planned.Priors {
		shown := evaluated[string](v, fmt.Sprintf(
			`document.querySelectorAll("[aria-labelledby=planned] li")[%d].innerText.replaceAll("\u00a0", " ")`, i))
		check.Equal(t, shown, planned.Priors[i].Text, "prior %d", i)
	}
	v.look("not-started")
}

// planIsTheAPIs compares the page of plans with the API.
func (v *viewer) planIsTheAPIs(parameters string) {
	v.Helper()
	var plan result.Outlook
	v.server.get("/v1/websites/1/plan"+parameters, v.token, &plan)
	v.until(fmt.Sprintf(`document.querySelectorAll("[aria-labelledby=lengths] tbody tr").length === %d && !document.querySelector("[aria-busy=true]")`,
		len(plan.Weeks)))
	said := `[...document.querySelectorAll(".conclusion p")].map((p) => p.innerText.replaceAll("\u00a0", " ")).join("\n")`
	check.Equal(v, evaluated[string](v, said), strings.Join(plan.Sentences, "\n"), "sentences on the page")
	for i := range plan.Weeks {
		w := &plan.Weeks[i]
		v.rowIs(fmt.Sprintf("[aria-labelledby=lengths] tbody tr:nth-child(%d)", i+1), *w.MDE,
			*w.WorthPerWeek, w.WinRate.Observed, w.WinRate.Expected, float64(w.Visitors))
	}
}
