package catalogue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest/must"
)

func TestReadConvertsNoScalars(t *testing.T) {
	for _, test := range []struct{ field, want string }{
		{"startDate: yesterday", `line 3: accounts[0].websites[0].campaigns[0].startDate: "yesterday": must be RFC 3339`},
		{"endDate: 2026-02-30", `line 3: accounts[0].websites[0].campaigns[0].endDate: "2026-02-30": must be RFC 3339`},
		{"createDate: 01/05/2026", `createDate: "01/05/2026"`},
		{"startDate: 2026-05-01 12:00:00 +0200", `startDate: "2026-05-01 12:00:00 +0200"`},
		{"startDate: 2026", `startDate: "2026"`},
		{"targetId: 010", `targetId: "010": must be an integer`},
		{"targetId: 0x10", `targetId: "0x10"`},
		{`targetId: "010"`, `targetId: "010"`},
		{"targetId: 1_000", `targetId: "1_000"`},
		{"name: 0123", `name: "0123": must be a string: add quotes`},
		{"name: 1.10", `name: "1.10": must be a string: add quotes`},
		{`"name": 1.10`, `name: "1.10": must be a string: add quotes`},
		{"name: true", `name: "true"`},
		{"power: &p 80.5", `power: "80.5": must be an integer`},
		{"mde: &p 8.5\n        power: *p", `line 4: accounts[0].websites[0].campaigns[0].power: "*p": must be written out: aliases are not supported`},
		{"power: !!int 80", `power: "!!int": must be written without a tag`},
		{"<<: {power: 80}", `unknown field "<<"`},
		{"mde: 010.5", `mde: "010.5"`},
		{"active: 1", `active: "1": must be true or false`},
	} {
		_, err := catalogue.ReadYAML(strings.NewReader(campaignWith(test.field)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error = %v, want %q", test.field, err, test.want)
		}
	}
	for _, second := range []string{"---\naccounts: []\n", "---\n5\n"} {
		if _, err := catalogue.ReadYAML(strings.NewReader(campaignWith("mde: 5") + "\n" + second)); err == nil || !strings.Contains(err.Error(), "the file has several documents") {
			t.Errorf("a second document gives %v", err)
		}
	}
}

// TestReadRefusesOtherEncodings reads files with bytes that are not UTF-8: Latin-1, a surrogate, and UTF-16.
func TestReadRefusesOtherEncodings(t *testing.T) {
	for text, want := range map[string]string{
		"accounts:\n- {id: 1, name: caf\xe9}\n": "line 2: must be UTF-8: save the file as UTF-8", "accounts: # caf\xe9\n": "line 1: must be UTF-8",
		"accounts:\n\n- {name: \"\xed\xa0\x80\"}": "line 3: must be UTF-8", "\xff\xfea\x00:\x00 \x00[\x00": "line 1: must be UTF-8",
	} {
		if _, err := catalogue.ReadYAML(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	file, err := catalogue.ReadYAML(strings.NewReader("accounts: [{name: \"Été \uFFFD \U00100080\"}]"))
	if err != nil || file.Accounts[0].Name != "Été \uFFFD \U00100080" {
		t.Errorf("%+v, %v", file, err)
	}
}

func campaignWith(fields string) string {
	return "accounts:\n- websites:\n  - campaigns: [{" + strings.ReplaceAll(fields, "\n", ",\n") + "}]"
}

func TestReadScalars(t *testing.T) {
	file := must.Get(catalogue.ReadYAML(strings.NewReader(`---
accounts:
  - websites:
      - campaigns:
          - name: "1.10"
            description: |
              010
            startDate: 2026-05-01
            endDate: "2026-05-01T12:00:00.5+02:00"
            power: ~
            mde: 7.5
...
`)))(t)
	c := file.Accounts[0].Websites[0].Campaigns[0]
	end := time.Date(2026, 5, 1, 10, 0, 0, 500_000_000, time.UTC)
	if c.Name != "1.10" || c.Description != "010\n" || c.Power != 80 || c.MDE != 7.5 {
		t.Errorf("campaign = %+v", c)
	}
	if !c.StartDate.Equal(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) || !c.EndDate.Equal(end) {
		t.Errorf("dates = %v, %v", c.StartDate, c.EndDate)
	}
}

// TestAllFaultsOfAFileAreReportedAtOnce checks the lines, paths and suggestions of a file
// with faults of its syntax, types, values and references.
func TestAllFaultsOfAFileAreReportedAtOnce(t *testing.T) {
	c := open(t)
	file, err := catalogue.ReadYAML(strings.NewReader(`accounts:
  - id: 1
    nam: Shop
    websites:
      - id: 1
        domain: Shop
        goals: [{id: 3, name: Purchase}, {id: "4", name: Signup}]
        campaigns:
          - id: 12
            name: 5
            type: experimant
            methodology: bayes
            primaryGoalId: 33
            controlShare: 150
            control_share: 50
            power: 12
            power: 80
            tags: [a, 1, true]
            variations:
              - {id: 1, name: New, weight: 3}
              - {id: 1, name: ""}
          - 7
        widgets: {id: 7}
`))
	var faults faults.List
	if !errors.As(err, &faults) {
		t.Fatalf("error = %v, want faults", err)
	}
	_, err = c.ApplyFile(t.Context(), file, false)
	want := `line 3: accounts[0].nam: unknown field "nam"; did you mean name?
line 6: accounts[0].websites[0].domain: "Shop": must be a lower-case domain name such as shop.example.com
line 7: accounts[0].websites[0].goals[1].id: "4": must be an integer in decimal digits, without quotes or leading zeros
line 10: accounts[0].websites[0].campaigns[0].name: "5": must be a string: add quotes
line 11: accounts[0].websites[0].campaigns[0].type: "experimant": must be one of personalization, themePersonalization, productPersonalization, shippingPersonalization, urlSplitPersonalization, fullStackPersonalization, templatePersonalization, experiment, themeExperiment, productExperiment, shippingExperiment, urlSplitExperiment, fullStackExperiment, templateExperiment; did you mean experiment?
line 12: accounts[0].websites[0].campaigns[0].methodology: "bayes": must be one of frequentist, bayesian
line 14: accounts[0].websites[0].campaigns[0].controlShare: "150": must be from 0 to 100
line 15: accounts[0].websites[0].campaigns[0].control_share: unknown field "control_share"; did you mean controlShare?
line 16: accounts[0].websites[0].campaigns[0].power: "12": must be from 60 to 99
line 17: accounts[0].websites[0].campaigns[0].power: given twice; first in line 16
line 18: accounts[0].websites[0].campaigns[0].tags[1]: "1": must be a string: add quotes
line 18: accounts[0].websites[0].campaigns[0].tags[2]: "true": must be a string: add quotes
line 20: accounts[0].websites[0].campaigns[0].variations[0].weight: unknown field "weight"; must be one of id, name, order, share, targetId
line 21: accounts[0].websites[0].campaigns[0].variations[1].id: "1": is not unique
line 21: accounts[0].websites[0].campaigns[0].variations[1].name: "": must have 1 to 255 characters, has 0
line 22: accounts[0].websites[0].campaigns[1]: "7": must have fields: active, autoStop, controlShare, createDate, description, endDate, equivalenceMargin, goals, hypothesis, id, maturity, mde, methodology, minDays, multipleExposures, name, owner, plannedDays, plannedVisitors, power, primaryGoalId, primaryMetric, prior, significanceLevel, startDate, tags, targetId, targetMode, trafficAllocation, type, variations
line 23: accounts[0].websites[0].widgets: "": must be a list`
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("faults are\n%s\nwant\n%s", got, want)
	}
}
