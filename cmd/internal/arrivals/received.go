package arrivals

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// Received counts the events that were accepted for a website in the last hour, day and week, including copies. An
// event with several exposures counts once for each exposure.
type Received struct {
	WebsiteID  int64                  `json:"websiteId"`
	Accepted   ingest.Windows         `json:"accepted"`
	Late       ingest.Windows         `json:"late"`       // accepted more than an hour after they happened
	Undeclared ingest.Windows         `json:"undeclared"` // accepted, but with a name that the catalogue does not declare
	Names      []catalogue.Undeclared `json:"names"`      // undeclared names of the last week
}

// ReceivedOf returns the counts of each website, ordered by id. keyOf returns the key of an id in events.
func ReceivedOf(
	stored []ingest.StoredRows, known *catalogue.Snapshot, keyOf func(schema.NamedID) string,
) []*Received {
	byWebsite := map[int64]*Received{}
	of := func(website int64) *Received {
		if byWebsite[website] == nil {
			byWebsite[website] = &Received{WebsiteID: website, Names: []catalogue.Undeclared{}}
		}
		return byWebsite[website]
	}
	named := map[int64]*catalogue.EventNames{}
	for i := range stored {
		s := &stored[i]
		r := of(s.WebsiteID)
		r.Accepted.AddCounts(s.Accepted)
		r.Late.AddCounts(s.Late)
		own := catalogue.NewEventNames(keyOf)
		own.AddRows(&s.Event, 1)
		if len(known.UndeclaredNames(own)) > 0 {
			r.Undeclared.AddCounts(s.Accepted)
		}
		if named[s.WebsiteID] == nil {
			named[s.WebsiteID] = catalogue.NewEventNames(keyOf)
		}
		named[s.WebsiteID].AddRows(&s.Event, int(s.Accepted.Week)) //nolint:gosec // a number of rows
	}
	for website, of := range named {
		byWebsite[website].Names = known.UndeclaredNames(of)
	}
	return slices.SortedFunc(maps.Values(byWebsite),
		func(a, b *Received) int { return cmp.Compare(a.WebsiteID, b.WebsiteID) })
}

// shownNames is the maximum number of undeclared names that WriteText prints.
const shownNames = 10

// WriteText prints the counts of a website as text.
func (r *Received) WriteText(out io.Writer) {
	website := fmt.Sprintf("Website %d", r.WebsiteID)
	row := func(name string, w ingest.Windows) {
		_, _ = fmt.Fprintf(out, "  %-50s %10d %10d %10d\n", name, w.Hour, w.Day, w.Week)
	}
	_, _ = fmt.Fprintf(out, "%-52s %10s %10s %10s\n", website, "hour", "day", "week")
	row("accepted", r.Accepted)
	row("  late: more than an hour after they happened", r.Late)
	row("  undeclared: a name is not in the catalogue", r.Undeclared)
	for _, u := range r.Names[:min(len(r.Names), shownNames)] {
		_, _ = fmt.Fprintf(out, "  %d in the last week: %s\n", u.Events, u.Detail)
	}
}
