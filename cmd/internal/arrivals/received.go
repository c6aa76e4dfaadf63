package arrivals

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// Received counts what arrived of a website in the last hour, day and week. An event with
// several exposures counts once for each.
type Received struct {
	WebsiteID  int64                     `json:"websiteId"` // 0: lines without a valid website
	Accepted   ingest.Windows            `json:"accepted"`
	Late       ingest.Windows            `json:"late"`       // accepted more than an hour after they happened
	Undeclared ingest.Windows            `json:"undeclared"` // accepted, with a name that the catalogue does not declare
	Duplicates ingest.Windows            `json:"duplicates"`
	Conflicts  ingest.Windows            `json:"conflicts"` // duplicates with other content
	Rejected   ingest.Windows            `json:"rejected"`
	Causes     map[string]ingest.Windows `json:"causes"` // of rejected lines
	Names      []catalogue.Undeclared    `json:"names"`  // undeclared ones of the last week
}

// ReceivedOf returns the counts of each website, ordered by id.
func ReceivedOf(stored []ingest.StoredRows, unstored []ingest.UnstoredLines, known *catalogue.Snapshot) []*Received {
	byWebsite := map[int64]*Received{}
	of := func(website int64) *Received {
		if byWebsite[website] == nil {
			byWebsite[website] = &Received{WebsiteID: website, Causes: map[string]ingest.Windows{}, Names: []catalogue.Undeclared{}}
		}
		return byWebsite[website]
	}
	named := map[int64]*catalogue.Named{}
	for i := range stored {
		s := &stored[i]
		r := of(s.WebsiteID)
		r.Accepted.Add(s.Accepted)
		r.Late.Add(s.Late)
		own := catalogue.NewNamed()
		own.AddRows(&s.Event, 1)
		if len(known.Undeclared(own)) > 0 {
			r.Undeclared.Add(s.Accepted)
		}
		if named[s.WebsiteID] == nil {
			named[s.WebsiteID] = catalogue.NewNamed()
		}
		named[s.WebsiteID].AddRows(&s.Event, int(s.Accepted.Week)) //nolint:gosec // a number of rows
	}
	for website, of := range named {
		byWebsite[website].Names = known.Undeclared(of)
	}
	for _, u := range unstored {
		r := of(u.WebsiteID)
		switch u.Verdict {
		case "conflict":
			r.Conflicts.Add(u.Lines)
			r.Duplicates.Add(u.Lines)
		case "duplicate":
			r.Duplicates.Add(u.Lines)
		default:
			r.Rejected.Add(u.Lines)
			sum := r.Causes[u.Cause]
			sum.Add(u.Lines)
			r.Causes[u.Cause] = sum
		}
	}
	return slices.SortedFunc(maps.Values(byWebsite), func(a, b *Received) int { return cmp.Compare(a.WebsiteID, b.WebsiteID) })
}

// shownNames is the maximum number of undeclared names that Write prints.
const shownNames = 10

// Write prints the counts of a website as text.
func (r *Received) Write(to io.Writer) {
	website := fmt.Sprintf("Website %d", r.WebsiteID)
	if r.WebsiteID == 0 {
		website = "Without a valid website"
	}
	row := func(name string, w ingest.Windows) {
		_, _ = fmt.Fprintf(to, "  %-50s %10d %10d %10d\n", name, w.Hour, w.Day, w.Week)
	}
	_, _ = fmt.Fprintf(to, "%-52s %10s %10s %10s\n", website, "hour", "day", "week")
	all := r.Accepted
	all.Add(r.Duplicates)
	all.Add(r.Rejected)
	row("received", all)
	row("accepted", r.Accepted)
	row("  late: more than an hour after they happened", r.Late)
	row("  undeclared: a name is not in the catalogue", r.Undeclared)
	row("duplicates", r.Duplicates)
	row("  conflicts: other content under the same eventId", r.Conflicts)
	row("rejected", r.Rejected)
	for _, cause := range slices.SortedFunc(maps.Keys(r.Causes), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Causes[b].Week, r.Causes[a].Week), cmp.Compare(a, b))
	}) {
		row("  "+cause, r.Causes[cause])
	}
	for _, u := range r.Names[:min(len(r.Names), shownNames)] {
		_, _ = fmt.Fprintf(to, "  %d in the last week: %s\n", u.Events, u.Detail)
	}
}
