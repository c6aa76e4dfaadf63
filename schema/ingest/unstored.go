package ingest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema"
)

// countsInterval is the minimum time between two writes of counts. A server that is
// killed loses the counts since the last write.
const countsInterval = 10 * time.Second

// unstored is a key of the table unstored.
type unstored struct {
	minute  int64 // Unix seconds
	website int64
	way     Way
	verdict string // rejected, duplicate or conflict
	cause   string // of a rejected line
}

// count counts a rejected line.
func (r *Journal) count(reject *Reject) {
	at := reject.Time
	if at.IsZero() {
		at = time.Now()
	}
	r.counts[unstored{minute: at.Truncate(time.Minute).Unix(), website: reject.WebsiteID, way: reject.Way, verdict: "rejected", cause: causeOf(reject.Reason)}]++
}

// countedWords are the reasons of rejected lines that name no field, by a part of their
// texts.
var countedWords = []struct{ part, cause string }{
	{"unknown_website", "unknown website"},
	{"(max-event-skew)", "time in the future"},
	{"(max-event-age)", "time too long ago"},
	{"not JSON", "not JSON"},
	{"longer than", "too long"},
	{"unknown field", "unknown field"},
}

// causeOf returns the cause of a reason in few words: the name of the first invalid
// field, or one of countedWords. It is one of a limited number of texts.
func causeOf(reason string) string {
	for _, known := range countedWords {
		if strings.Contains(reason, known.part) {
			return known.cause
		}
	}
	name, _, _ := strings.Cut(reason, ":")
	name, _, _ = strings.Cut(name, "[") // exposures[0].campaignId
	name, _, _ = strings.Cut(name, ".")
	if _, known := fieldByName(name); known || name == "exposures" {
		return name
	}
	return "other"
}

func (r *Journal) writeCounts(ctx context.Context, counts map[unstored]uint64) error {
	type row struct {
		unstored
		lines uint64
	}
	rows := make([]row, 0, len(counts))
	for key, lines := range counts {
		rows = append(rows, row{key, lines})
	}
	err := schema.InsertRows(ctx, r.conn, "INSERT INTO unstored (minute, website_id, way, verdict, cause, lines)", rows, func(c *row) []any {
		return []any{time.Unix(c.minute, 0).UTC(), c.website, string(c.way), c.verdict, c.cause, c.lines}
	})
	if err != nil {
		return fmt.Errorf("store counts of rejected lines and duplicates: %w", err)
	}
	return nil
}
