package main

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/loadgen/demo"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestDemoLeavesOtherStoresAlone also checks stores without a mark file.
func TestDemoLeavesOtherStoresAlone(t *testing.T) {
	owned := func(names ...string) []*catalogue.AccountResources {
		var accounts []*catalogue.AccountResources
		for _, name := range names {
			accounts = append(accounts, &catalogue.AccountResources{Account: catalogue.Account{Name: name}})
		}
		return accounts
	}
	check.That(t, demosOnly(nil) && demosOnly(owned(demo.Name)), "refuses its own")
	check.That(t, !demosOnly(owned("My shop")) && !demosOnly(owned(demo.Name, "My shop")), "takes another's")
}

// TestDemoHasVisitorsOnEachDay checks that no day up to yesterday lacks visitors, and that no event is in the future.
func TestDemoHasVisitorsOnEachDay(t *testing.T) {
	h := newHouse(t)
	p := &program{stdout: capture(t).write, running: h.store}
	must.OK(t, p.makeDemo(t.Context(), h.store))
	var r result.Report
	must.OK(t, json.Unmarshal([]byte(h.must("report", "campaign", strconv.Itoa(demo.Campaign), "--interval=day", "--json")), &r))
	check.That(t, !r.NewestEvent.After(r.GeneratedAt), "the newest event is of %s", r.NewestEvent)
	visitors, through := int64(0), r.GeneratedAt.Truncate(24*time.Hour) // the end of yesterday
	for _, point := range r.Series {
		sum := int64(0)
		for _, v := range point.Variations {
			sum += v.Visitors
		}
		check.That(t, sum != visitors || point.Time.After(through), "no visitors on the day before %s", point.Time)
		visitors = sum
	}
	check.That(t, len(r.Series) >= demo.Days && !r.Series[len(r.Series)-1].Time.Before(through), "%d days, to %s", len(r.Series), r.Series[len(r.Series)-1].Time)
}
