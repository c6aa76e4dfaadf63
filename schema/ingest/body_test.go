package ingest_test

import (
	"testing"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest/check"
)

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"eventId":"e","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":1}`))
	f.Add([]byte(`[{},[],"",null,{"exposures":[{}]}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := readBody(ingest.Body{WebsiteID: 1, Key: "k"}, string(body))
		if err != nil {
			return
		}
		for _, line := range lines {
			check.That(t, (line.Reason == "") == (len(line.Events) > 0), "line %d: %d rows, fault %v", line.Line, len(line.Events), line.Reason)
			for i := range line.Events {
				check.Equal(t, line.Events[i].WebsiteID, 1, "line %d: website", line.Line)
			}
		}
	})
}
