package catalogue_test

import (
	"strings"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
)

func TestReadConvertsNoScalars(t *testing.T) {
	for _, test := range []struct{ field, want string }{
		{"startDate: yesterday", `line 3, startDate: "yesterday": must be RFC 3339`},
		{"endDate: 2026-02-30", `line 3, endDate: "2026-02-30": must be RFC 3339`},
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
		{"mde: &p 8.5\n        power: *p", `line 4, power: "8.5": must be an integer`},
		{"power: !!int 80.5", "power: "},
		{"mde: 010.5", `mde: "010.5"`},
		{"active: 1", `active: "1": must be true or false`},
	} {
		_, err := catalogue.Read(strings.NewReader(campaignWith(test.field)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error = %v, want %q", test.field, err, test.want)
		}
	}
	for _, second := range []string{"---\naccounts: []\n", "---\n5\n"} {
		if _, err := catalogue.Read(strings.NewReader(campaignWith("mde: 5") + "\n" + second)); err == nil || !strings.Contains(err.Error(), "the file has several documents") {
			t.Errorf("a second document gives %v", err)
		}
	}
}

func campaignWith(fields string) string {
	return "accounts:\n- websites:\n  - campaigns: [{" + strings.ReplaceAll(fields, "\n", ",\n") + "}]"
}

func TestReadScalars(t *testing.T) {
	file, err := catalogue.Read(strings.NewReader(`%YAML 1.2
---
accounts:
  - websites:
      - campaigns:
          - name: "1.10"
            description: |
              010
            startDate: 2026-05-01
            endDate: &end "2026-05-01T12:00:00.5+02:00"
            createDate: *end
            power: ~
            mde: 7.5
...
`))
	if err != nil {
		t.Fatal(err)
	}
	c := file.Accounts[0].Websites[0].Campaigns[0]
	end := time.Date(2026, 5, 1, 10, 0, 0, 500_000_000, time.UTC)
	if c.Name != "1.10" || c.Description != "010\n" || c.Power != 80 || c.MDE != 7.5 {
		t.Errorf("campaign = %+v", c)
	}
	if !c.StartDate.Equal(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) || !c.EndDate.Equal(end) || !c.CreateDate.Equal(end) {
		t.Errorf("dates = %v, %v, %v", c.StartDate, c.EndDate, c.CreateDate)
	}
}
