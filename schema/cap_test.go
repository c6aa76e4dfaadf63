package schema_test

import (
	"encoding/json"
	"testing"

	"lifthouse/schema"
)

func TestParseCap(t *testing.T) {
	for text, want := range map[string]schema.Cap{
		"p99": {Percentile: 99}, "p50": {Percentile: 50}, "p99.9": {Percentile: 99.9}, "p95.0": {Percentile: 95},
		"500": {Units: 5_000_000}, "0.0001": {Units: 1}, "12.5": {Units: 125_000}, "1000000000": {Units: schema.MaxMoney * schema.MoneyScale},
	} {
		got, err := schema.ParseCap(text)
		if err != nil || got != want {
			t.Errorf("ParseCap(%q) = %+v, %v", text, got, err)
		}
		body, err := json.Marshal(got)
		var again schema.Cap
		if err != nil || json.Unmarshal(body, &again) != nil || again != got {
			t.Errorf("%q is %s in JSON, and then %+v, %v", text, body, again, err)
		}
	}
	for _, text := range []string{"", "p", "p49.9", "p100", "p99.95", "p-99", "P99", "99p", "0", "0.0", "-1", "+5", "5.", ".5", "1e3", "0x10", "1/2", "0.00001", "1000000000.0001", "9999999999999", "NaN", " 5"} {
		if got, err := schema.ParseCap(text); err == nil {
			t.Errorf("ParseCap(%q) = %+v", text, got)
		}
	}
}
