package main

import (
	"testing"

	"lifthouse/loadgen/demo"
	"lifthouse/schema/catalogue"
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
	if !demosOnly(nil) || !demosOnly(owned(demo.Name)) {
		t.Error("refuses its own")
	}
	if demosOnly(owned("My shop")) || demosOnly(owned(demo.Name, "My shop")) {
		t.Error("takes another's")
	}
}
