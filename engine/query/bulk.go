package query

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// BulkFields are the members of a report that a request for all results may ask for, in the order of the report.
var BulkFields = []string{
	"goal", "compareMetric", "methodology", "significanceLevel", "window", "conversionWindow", "looks", "nextLook",
	"followUp", "totals", "variations", "conclusion", "checks", "power", "decision", "scorecard", WorthField,
}

const (
	// WorthField is the field that depends on other subjects.
	WorthField = "worth"
	// wholeReport asks for all fields.
	wholeReport = "report"
)

// The kinds of subjects. A website has no results.
const (
	KindCampaign   = "campaign"
	KindExperiment = "experiment"
	KindWebsite    = "website"
)

// Bulk is a request for the results of all campaigns and experiments. An empty member selects all.
type Bulk struct {
	WebsiteID                          int64
	Kind, Active, Decision, Owner, Tag string
	Fields                             []string // in the order of the report
	Since                              time.Time
	Limit                              int
	After                              string         // key of the last item of the page before
	AfterSubject                       schema.Subject // of After, without its website
}

// Asks reports whether the request asks for a field.
func (b *Bulk) Asks(field string) bool { return slices.Contains(b.Fields, field) }

// paramAfter is the parameter of the key of an item.
const paramAfter = "after"

// ParseBulk parses the query string of a request for all results at a time. decisions are the valid decisions. The
// error is an InvalidError with all faults.
func ParseBulk(rawQuery string, decisions []string, now time.Time) (Bulk, error) {
	p := ReadParameters(rawQuery, paramWebsite, "kind", "active", "decision", "owner", "tag", "field", paramSince,
		"limit", paramAfter)
	const most, usual = 1000, 500
	b := Bulk{
		WebsiteID: p.ID(paramWebsite),
		Kind:      p.OneOf("kind", []string{KindCampaign, KindExperiment}),
		Active:    p.OneOf("active", []string{"true", "false"}),
		Decision:  p.OneOf("decision", decisions),
		Owner:     p.text("owner"),
		Tag:       p.text("tag"),
		Fields:    p.parseFields(),
		Since:     p.parseSince(now),
		Limit:     p.ParseInteger("limit", 1, most, usual),
	}
	b.After, b.AfterSubject = p.parseAfter()
	if p.values.Has(paramSince) {
		for _, name := range []string{"active", "decision", "owner", "tag"} {
			if p.values.Has(name) {
				p.addFault(name, p.values.Get(name),
					"cannot be combined with since: what no longer matches would be missed")
			}
		}
	}
	return b, p.Err()
}

// text returns a text that must not be empty; empty: it is not given.
func (p *Parameters) text(name string) string {
	text, given := p.SingleValue(name)
	if given && text == "" {
		p.addFault(name, text, "must not be empty")
	}
	return text
}

// parseFields returns the fields that are asked for, in the order of the report.
func (p *Parameters) parseFields() []string {
	const name = "field"
	var asked []string
	for _, field := range p.values[name] {
		switch {
		case !p.checkValue(name, field):
		case field == wholeReport:
			asked = append(asked, BulkFields...)
		case slices.Contains(BulkFields, field):
			asked = append(asked, field)
		default:
			p.addFault(name, field, "unknown field; "+faults.SuggestName(field, append([]string{wholeReport},
				BulkFields...)))
		}
	}
	var sorted []string
	for _, field := range BulkFields {
		if slices.Contains(asked, field) {
			sorted = append(sorted, field)
		}
	}
	return sorted
}

// parseSince returns the time since which results must have changed; zero: any time.
func (p *Parameters) parseSince(now time.Time) time.Time {
	const name = paramSince
	text, given := p.SingleValue(name)
	if !given {
		return time.Time{}
	}
	// A plus sign that is not percent-encoded arrives as a space.
	at, err := ParseSince(strings.Replace(text, " ", "+", 1), now)
	if err != nil {
		p.addFault(name, text, err.Error())
	}
	return at
}

// ParseSince parses the time since which something must have changed.
func ParseSince(text string, now time.Time) (time.Time, error) {
	at, err := schema.ParseTime(text)
	switch {
	case err != nil || !schema.IsStorable(at):
		return at, errors.New("must be RFC 3339 with an offset (2026-05-01T00:00:00Z), in a year from 1970 to 2199, " +
			"such as the header X-As-Of of an earlier response")
	case at.After(now):
		return at, fmt.Errorf("must not be in the future; it is %s", FormatInstant(now))
	}
	return at, nil
}

// itemKey matches the key of an item.
var itemKey = regexp.MustCompile(`^(?:campaign/(\d{1,18})|experiment/(\d{1,18})/(\d{1,18}))$`)

// parseAfter returns the key of an item, and its subject without the website.
func (p *Parameters) parseAfter() (key string, of schema.Subject) {
	key, given := p.SingleValue(paramAfter)
	if !given {
		return "", of
	}
	found := itemKey.FindStringSubmatch(key)
	if found == nil {
		p.addFault(paramAfter, key, "must be the key of an item, such as campaign/12 or experiment/7/2")
		return "", of
	}
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64) // at most 18 digits
		return n
	}
	if found[1] != "" {
		return key, schema.Subject{Kind: schema.SubjectCampaign, ID: number(found[1])}
	}
	return key, schema.Subject{
		Kind: schema.SubjectWidget, ID: number(found[2]), ExperimentID: number(found[3]),
	}
}

// ItemKey returns the key of the item of a subject.
func ItemKey(of schema.Subject) string {
	if of.Kind == schema.SubjectCampaign {
		return fmt.Sprintf("%s/%d", KindCampaign, of.ID)
	}
	return fmt.Sprintf("%s/%d/%d", KindExperiment, of.ID, of.ExperimentID)
}

// UnknownItem returns the error for a key of no item.
func UnknownItem(key string) error {
	const detail = "no campaign or experiment has this key"
	return InvalidParameters(faults.Fault{Name: paramAfter, Value: key, Detail: detail})
}
