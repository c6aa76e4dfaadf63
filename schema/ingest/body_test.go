package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema/ingest"
)

func TestBodyEach(t *testing.T) {
	event := func(more string) string {
		return `{"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":1,"variationId":0` + more + `}`
	}
	const id = `,"eventId":"e"`
	for _, c := range []struct{ name, key, body, want string }{
		{"lines", "", event(id) + "\n\n" + event(id) + "\r\n", "1: 1 rows; 3: 1 rows; "},
		{"a byte order mark", "", "\ufeff" + event(id), "1: 1 rows; "},
		{"an array", "", " [" + event(id) + ",\n" + event(id) + "]", "1: 1 rows; 2: 1 rows; "},
		{"several exposures", "", strings.Replace(event(id), `"campaignId":1,"variationId":0`, `"exposures":[{"campaignId":1,"variationId":0},{"widgetId":1,"variationId":0}]`, 1), "1: 2 rows; "},
		{"no id", "", event(""), "1: eventId: missing: must be an id that is the same in every retry, unless the request has the header Idempotency-Key; "},
		{"no id and another fault", "", strings.Replace(event(""), `"v"`, `""`, 1), "1: eventId: missing: must be an id that is the same in every retry, unless the request has the header Idempotency-Key; visitor: missing: "},
		{"no id under a key", "k", event(""), "1: 1 rows; "},
		{"another's website", "", strings.Replace(event(id), `"websiteId":1`, `"websiteId":2`, 1), "1: unknown_website: websiteId 2 is not the website of the token; "},
		{"a wrong line among others", "", event(id) + "\nnonsense\n" + event(id), "1: 1 rows; 2: not JSON: "},
		{"a wrong place of an array", "", "[" + event(id) + ",7]", "1: 1 rows; 2: must be a JSON object; "},
		{"a key twice", "", event(id + id), "1: eventId: given twice; "},
		{"a huge number", "", strings.Replace(event(id), `"websiteId":1`, `"websiteId":1e400`, 1), `1: websiteId: "1e400": must be an integer from 1; `},
		{"not UTF-8", "", strings.Replace(event(id), `"v"`, "\"\xff\"", 1), `1: visitor: "�": must be UTF-8`},
		{"a long line", "", event(`,"city":"` + strings.Repeat("x", 1<<20) + `"`), "1: longer than 1048576 bytes: the body must have one JSON event per line; "},
		{"nothing", "", " \n", "no event: the body must have one JSON object per line, or an array of objects"},
		{"an empty array", "", "[]", "no event: the body must have one JSON object per line, or an array of objects"},
		{"an unclosed array", "", "[" + event(id), "not JSON: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			lines, err := readBody(ingest.Body{WebsiteID: 1, Key: c.key}, c.body)
			var unread *ingest.BodyError
			if errors.As(err, &unread) {
				got = unread.Error()
			} else if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if line.Reason != "" {
					got += fmt.Sprintf("%d: %v; ", line.Line, line.Reason)
				} else {
					got += fmt.Sprintf("%d: %d rows; ", line.Line, len(line.Events))
				}
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"eventId":"e","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":1}`))
	f.Add([]byte(`[{},[],"",null,{"exposures":[{}]}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := readBody(ingest.Body{WebsiteID: 1, Key: "k"}, string(body))
		if err != nil {
			return
		}
		for _, line := range lines {
			if (line.Reason == "") != (len(line.Events) > 0) {
				t.Errorf("line %d: %d rows, fault %v", line.Line, len(line.Events), line.Reason)
			}
			for i := range line.Events {
				if line.Events[i].WebsiteID != 1 {
					t.Errorf("line %d: website %d", line.Line, line.Events[i].WebsiteID)
				}
			}
		}
	})
}
