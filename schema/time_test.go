package schema_test

import (
	"testing"
	"time"

	"lifthouse/schema"
)

func TestParseTimeIsStrict(t *testing.T) {
	want := time.Date(2025, 3, 2, 0, 0, 0, 500_000_000, time.UTC)
	for _, text := range []string{"2025-03-02T00:00:00.5Z", "2025-03-02t00:00:00.5z", "2025-03-02t02:00:00.50+02:00", "2025-03-02T00:00:00.5z"} {
		if got, err := schema.ParseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "2025-03-02", "2025-03-02 00:00:00Z", "2025-03-02T00:00:00", "2025-03-02t00:00:00.5",
		"2025-03-02T0:00:00Z", "2025-03-02T00:00:00,5Z", "2025-03-02T00:00:00+24:00", "2025-03-02T00:00:00+02:60", "2025-03-02T00:00:00+02", "2025-02-30T00:00:00Z", "2025-03-02T00:00:00.Z",
	} {
		if got, err := schema.ParseTime(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
