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
	names := map[int64]map[catalogue.Undeclared]seen{}
	for i := range stored {
		s := &stored[i]
		r := of(s.WebsiteID)
		r.Accepted.Add(s.Accepted)
		r.Late.Add(s.Late)
		undeclared := undeclaredOf(s, known)
		if len(undeclared) > 0 {
			r.Undeclared.Add(s.Accepted)
		}
		for _, u := range undeclared {
			if names[s.WebsiteID] == nil {
				names[s.WebsiteID] = map[catalogue.Undeclared]seen{}
			}
			nearest := u.Nearest
			u.Events, u.Nearest = 0, nil // the rest is equal for the same name
			before := names[s.WebsiteID][u]
			names[s.WebsiteID][u] = seen{before.events + int(s.Accepted.Week), nearest} //nolint:gosec // a number of rows
		}
	}
	for website, found := range names {
		of(website).Names = mostFrequent(found)
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

// undeclaredOf returns the undeclared names of rows.
func undeclaredOf(s *ingest.StoredRows, known *catalogue.Snapshot) []catalogue.Undeclared {
	named := catalogue.NewNamed()
	row := s.Event
	if row.GoalID != 0 {
		row.Kind = schema.KindGoal
	}
	named.Add([]schema.Event{row})
	return known.Undeclared(named)
}

// seen is how often an undeclared name occurred, and which declared one is nearest.
type seen struct {
	events  int
	nearest *int64
}

func mostFrequent(found map[catalogue.Undeclared]seen) []catalogue.Undeclared {
	all := make([]catalogue.Undeclared, 0, len(found))
	for u, s := range found {
		u.Events, u.Nearest = s.events, s.nearest
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b catalogue.Undeclared) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Detail, b.Detail))
	})
	return all
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
