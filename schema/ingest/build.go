package ingest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lifthouse/schema"
)

// maxText bounds every string of an event, in bytes.
const maxText = 512

// builder makes rows of one event's fields and notes all that is wrong with
// them.
type builder struct {
	in     *fields
	times  Times
	faults []string
}

// build appends one row for each exposure of the event. The error names each
// field that is wrong, its value and what is allowed.
func build(rows []schema.Event, in *fields, fallbackID string, times Times) ([]schema.Event, error) {
	b := builder{in: in, times: times}
	event := b.event(fallbackID)
	built := b.rows(rows, &event)
	if len(b.faults) > 0 {
		return rows, fmt.Errorf("%s", strings.Join(b.faults, "; "))
	}
	return built, nil
}

func (b *builder) fault(name, value, detail string) {
	if value == "" {
		b.faults = append(b.faults, fmt.Sprintf("%s: missing: %s", name, detail))
		return
	}
	b.faults = append(b.faults, fmt.Sprintf("%s: %q: %s", name, clipped(value), detail))
}

// clipped is as much of a text as a message may repeat.
func clipped(text string) string {
	if len(text) > 64 {
		return strings.ToValidUTF8(text[:64], "�") + "…"
	}
	return text
}

func (b *builder) event(fallbackID string) schema.Event {
	id := b.text(fieldEventID)
	if id == "" {
		id = fallbackID
	}
	visitor := b.text(fieldVisitor)
	if visitor == "" {
		b.fault("visitor", "", "want the visitor's id")
	}
	return schema.Event{
		EventID:    schema.Hash(id),
		Time:       b.time(),
		WebsiteID:  b.id("websiteId", b.in.values[fieldWebsiteID], 1),
		VisitorID:  schema.Hash(visitor),
		Kind:       b.kind(),
		GoalID:     b.goal(),
		Value:      b.money(fieldValue),
		Profit:     b.money(fieldProfit),
		ExtraValue: b.money(fieldExtraValue),
		Attributes: b.attributes(),
	}
}

func (b *builder) text(f field) string {
	value := b.in.values[f]
	if len(value) > maxText {
		b.fault(fieldNames[f], value, fmt.Sprintf("want at most %d bytes, have %d", maxText, len(value)))
	}
	if !utf8.ValidString(value) {
		b.fault(fieldNames[f], strings.ToValidUTF8(value, "�"), "want UTF-8")
	}
	return value
}

func (b *builder) id(name, value string, least int64) int64 {
	id, err := strconv.ParseInt(value, 10, 64)
	if err != nil || id < least {
		b.fault(name, value, fmt.Sprintf("want an integer from %d", least))
	}
	return id
}

func (b *builder) time() time.Time {
	value := b.in.values[fieldTime]
	t, err := parseTime(value)
	if err != nil {
		b.fault("time", value, "want RFC 3339 (2026-05-01T12:00:00Z) or Unix milliseconds")
		return earliest
	}
	if fault := b.times.fault(t); fault != "" {
		b.fault("time", value, fault)
	}
	return t
}

func parseTime(value string) (time.Time, error) {
	if strings.LastIndexByte(value, '-') <= 0 { // RFC 3339 has one in its date
		if ms, err := strconv.ParseInt(value, 10, 64); err == nil {
			return time.UnixMilli(ms).UTC(), nil
		}
	}
	t, err := schema.ParseTime(value)
	return t.UTC().Truncate(time.Millisecond), err
}

func (b *builder) kind() schema.Kind {
	kind := schema.Kind(b.in.values[fieldEvent])
	switch kind {
	case schema.KindView, schema.KindClick, schema.KindSubmit, schema.KindCompletion,
		schema.KindConversion, schema.KindContact, schema.KindGoal:
	default:
		b.fault("event", string(kind), "want view, click, submit, completion, conversion, contact or goal")
	}
	return kind
}

func (b *builder) goal() int64 {
	value := b.in.values[fieldGoalID]
	if b.in.values[fieldEvent] == string(schema.KindGoal) {
		return b.id("goalId", value, 1)
	}
	if value != "" {
		b.fault("goalId", value, "only an event \"goal\" has one")
	}
	return 0
}

func (b *builder) money(f field) int64 {
	value := b.in.values[f]
	if value == "" {
		return 0
	}
	amount, ok := parseMoney(value)
	if !ok {
		b.fault(fieldNames[f], value, fmt.Sprintf("want an amount of at most %d, as a decimal number such as 12.5", schema.MaxMoney))
	}
	return amount
}

func (b *builder) attributes() schema.Attributes {
	a := schema.Attributes{
		Device:         strings.ToLower(b.text(fieldDevice)),
		Browser:        strings.ToLower(b.text(fieldBrowser)),
		OS:             strings.ToLower(b.text(fieldOS)),
		Country:        strings.ToUpper(b.text(fieldCountry)),
		Region:         b.text(fieldRegion),
		City:           b.text(fieldCity),
		Channel:        b.text(fieldChannel),
		Referrer:       b.text(fieldReferrer),
		UTMSource:      b.text(fieldUTMSource),
		UTMMedium:      b.text(fieldUTMMedium),
		UTMCampaign:    b.text(fieldUTMCampaign),
		UTMContent:     b.text(fieldUTMContent),
		UTMTerm:        b.text(fieldUTMTerm),
		FirstVisitPage: b.text(fieldFirstVisitPage),
		VisitorType:    b.in.values[fieldVisitorType],
	}
	if c := a.Country; c != "" && (len(c) != 2 || c[0] < 'A' || c[0] > 'Z' || c[1] < 'A' || c[1] > 'Z') {
		b.fault("country", b.in.values[fieldCountry], "want two letters, as in ISO 3166")
	}
	if a.VisitorType != "" && a.VisitorType != "new" && a.VisitorType != "returning" {
		b.fault("visitorType", a.VisitorType, "want new or returning")
	}
	return a
}

// exposed appends the event, once for each subject that its visitor saw.
func (b *builder) rows(rows []schema.Event, event *schema.Event) []schema.Event {
	v := &b.in.values
	single := exposure{v[fieldCampaignID], v[fieldWidgetID], v[fieldExperimentID], v[fieldVariationID]}
	switch {
	case b.in.exposures != nil && single != exposure{}:
		b.fault(exposuresName, fmt.Sprintf("%d of them", len(b.in.exposures)), "give these, or campaignId, widgetId and variationId, not both")
		return rows
	case b.in.exposures != nil:
		return b.addExposures(rows, event)
	case single != exposure{}:
		rows = append(rows, *event)
		b.exposure("", single, &rows[len(rows)-1])
		return rows
	case event.Kind == schema.KindGoal:
		event.Subject = schema.SubjectNone // it counts for all that its visitor saw
		return append(rows, *event)
	}
	b.fault("campaignId", "", "want the campaignId or widgetId, and the variationId, that the visitor saw; only goals need none")
	return rows
}

func (b *builder) addExposures(rows []schema.Event, event *schema.Event) []schema.Event {
	seen := make(map[subject]bool, len(b.in.exposures))
	for i, e := range b.in.exposures {
		prefix := fmt.Sprintf("exposures[%d].", i)
		rows = append(rows, *event)
		row := &rows[len(rows)-1]
		b.exposure(prefix, e, row)
		if seen[subjectOf(row)] {
			b.fault(prefix+"campaignId", e.campaignID+e.widgetID, "given twice in one event")
		}
		seen[subjectOf(row)] = true
	}
	return rows
}

// exposure sets what the event belongs to.
func (b *builder) exposure(prefix string, e exposure, event *schema.Event) {
	event.VariationID = b.id(prefix+"variationId", e.variationID, 0)
	switch {
	case (e.campaignID == "") == (e.widgetID == ""):
		b.fault(prefix+"campaignId", e.campaignID, "want either a campaignId or a widgetId")
	case e.campaignID != "":
		event.Subject = schema.SubjectCampaign
		event.SubjectID = b.id(prefix+"campaignId", e.campaignID, 1)
		if e.experimentID != "" {
			b.fault(prefix+"experimentId", e.experimentID, "only a widget has experiments")
		}
	default:
		event.Subject = schema.SubjectWidget
		event.SubjectID = b.id(prefix+"widgetId", e.widgetID, 1)
		if e.experimentID != "" {
			event.ExperimentID = b.id(prefix+"experimentId", e.experimentID, 0)
		}
	}
}
