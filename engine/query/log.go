package query

import (
	"cmp"
	"regexp"
	"sort"
	"time"

	"lifthouse/schema"
)

// Log is a request for the log. An empty member selects all.
type Log struct {
	WebsiteID int64
	schema.SubjectIDs
	Entry string
	Since time.Time
	Limit int
	After LogKey // of the last entry of the page before; zero: the first page
}

// LogKey is the key of an entry: its time and its id. The latest entry is the first one.
type LogKey struct {
	At time.Time
	ID string
}

// logKey matches a key in a request.
var logKey = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z)/([a-z_]{0,8}[0-9a-f]{1,32})$`)

// Compare orders keys as the entries of the log.
func (k LogKey) Compare(o LogKey) int { return cmp.Or(o.At.Compare(k.At), cmp.Compare(k.ID, o.ID)) }

// String returns the key as it is in requests.
func (k LogKey) String() string { return k.At.UTC().Format(time.RFC3339Nano) + "/" + k.ID }

// ParseLog parses the query string of a request for the log. kinds are the valid kinds of entries. The error is an
// InvalidError with all faults.
func ParseLog(rawQuery string, kinds []string, now time.Time) (*Log, error) {
	p := ReadParameters(rawQuery, paramWebsite, fieldCampaign, fieldWidget, fieldExperiment, "entry", paramSince,
		"limit", paramAfter)
	const most, usual = 1000, 100
	l := p.ReadLog(kinds, now, most, usual)
	return l, p.Err()
}

// ReadLog reads a request for at most most entries of the log, and the usual number if it does not say how many.
func (p *Parameters) ReadLog(kinds []string, now time.Time, most, usual int) *Log {
	l := &Log{
		WebsiteID: p.ID(paramWebsite),
		SubjectIDs: schema.SubjectIDs{
			CampaignID: p.ID(fieldCampaign), WidgetID: p.ID(fieldWidget), ExperimentID: p.ID(fieldExperiment),
		},
		Entry: p.OneOf("entry", kinds),
		Since: p.parseSince(now),
		Limit: p.ParseInteger("limit", 1, most, usual),
		After: p.parseLogKey(),
	}
	if field, _, detail := l.Conflict(); field != "" {
		p.addFault(field, p.values.Get(field), detail)
	}
	return l
}

// parseLogKey returns the key of an entry.
func (p *Parameters) parseLogKey() (key LogKey) {
	text, given := p.SingleValue(paramAfter)
	if !given {
		return key
	}
	found := logKey.FindStringSubmatch(text)
	var err error
	if found != nil {
		key.At, err = time.Parse(time.RFC3339Nano, found[1])
		key.ID = found[2]
	}
	if found == nil || err != nil {
		p.addFault(paramAfter, text, "must be the key of an entry, its time and its id, such as "+
			"2026-11-18T09:00:00.123Z/note_5f3a…: take it from the header Link")
	}
	return key
}

// SelectsSubject reports whether a request selects the entries about a subject. What is about a whole website is also
// about each of its campaigns.
func (l *Log) SelectsSubject(of schema.Subject) bool {
	switch {
	case of.Kind == schema.SubjectNone || l.CampaignID == 0 && l.WidgetID == 0:
		return true
	case of.Kind == schema.SubjectCampaign:
		return of.ID == l.CampaignID
	}
	isOfExperiment := l.ExperimentID == 0 || l.ExperimentID == of.ExperimentID
	return of.ID == l.WidgetID && isOfExperiment
}

// LogPage is the part of the selected entries that a page has.
type LogPage struct{ From, To int }

// Page returns the page of a request among a number of entries in order, and the key after which the next one begins;
// empty: there is none.
func (l *Log) Page(entries int, keyOf func(int) LogKey) (page LogPage, next string) {
	if !l.After.At.IsZero() {
		page.From = sort.Search(entries, func(i int) bool { return keyOf(i).Compare(l.After) > 0 })
	}
	page.To = min(page.From+l.Limit, entries)
	if page.To < entries {
		next = keyOf(page.To - 1).String()
	}
	return page, next
}
