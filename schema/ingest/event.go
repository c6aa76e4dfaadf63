package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// field is a field of an incoming event, except exposures.
type field int

const (
	fieldEventID field = iota
	fieldTime
	fieldWebsiteID
	fieldCampaignID
	fieldWidgetID
	fieldExperimentID
	fieldVariationID
	fieldVisitor
	fieldEvent
	fieldGoalID
	fieldValue
	fieldProfit
	fieldExtraValue
	fieldCurrency
	fieldCustomer
	fieldDevice
	fieldBrowser
	fieldOS
	fieldCountry
	fieldRegion
	fieldCity
	fieldChannel
	fieldReferrer
	fieldUTMSource
	fieldUTMMedium
	fieldUTMCampaign
	fieldUTMContent
	fieldUTMTerm
	fieldFirstVisitPage
	fieldVisitorType
	fieldRevision
	fieldCancelled
	fieldAttributes // of a file of columns, in JSON, as the next two
	fieldProperties
	fieldItems
	fieldCount
)

var fieldNames = [fieldCount]string{
	"eventId", "time", "websiteId", "campaignId", "widgetId", "experimentId", "variationId", "visitor", "event",
	"goalId", "value", "profit", "extraValue", "currency", "customer", "device", "browser", "os", "country", "region",
	"city", "channel", "referrer", "utmSource", "utmMedium", "utmCampaign", "utmContent", "utmTerm", "firstVisitPage",
	"visitorType", "revision", "cancelled", "attributes", "properties", "items",
}

// exposuresName is the name of the field that contains a list.
const exposuresName = "exposures"

var fieldsByName = func() map[string]field {
	byName := make(map[string]field, fieldCount)
	for f, name := range fieldNames {
		byName[name] = field(f)
	}
	return byName
}()

// fields are the values of an incoming event as text. An empty text means that the field is not set.
type fields struct {
	values    [fieldCount]string
	exposures []exposure    // the list of exposures, or nil
	details   *givenDetails // nil: none
	ofNobody  bool          // the mapping says that the event has no visitor
}

// exposure is an exposure of an incoming event.
type exposure struct{ campaignID, widgetID, experimentID, variationID string }

// maxText is the maximum size of every string of an event, in bytes.
const maxText = 512

// rules say which events are accepted.
type rules struct {
	times   Times
	website int64                      // the only accepted one; 0: those that owns reports
	owns    func(websiteID int64) bool // nil: all websites
	names   *Names                     // of the store; nil: names are not noted
	source  string                     // of the events
	// isLenient: the sender cannot be changed, so attributes that are too long are cut, and invalid or surplus own
	// attributes, properties and fields of lines are dropped instead of rejecting the event
	isLenient bool
	cut       int            // number of events with attributes that were cut
	dropped   map[string]int // numbers of labels that were dropped, by kind
}

// validate checks the fields of an event and appends one row per exposure. The error names each invalid field, its
// value and what is allowed. fallbackID is the id of an event without eventId; if it is empty, eventId is required.
func (r *rules) validate(rows []schema.Event, event *fields, fallbackID string) ([]schema.Event, error) {
	b := builder{given: event, times: r.times, isLenient: r.isLenient}
	row := b.buildEvent(fallbackID)
	if len(b.List) == 0 && event.values[fieldCustomer] != "" && r.canStore(row.WebsiteID) {
		var err error
		row.Customer, err = r.names.hashCustomer(row.WebsiteID, event.values[fieldCustomer])
		if err != nil {
			return rows, err
		}
	}
	built := b.appendRows(rows, &row)
	switch id := row.WebsiteID; {
	case len(b.List) > 0:
		return rows, errors.New(b.List.Join("; "))
	case r.website != 0 && id != r.website:
		return rows, fmt.Errorf("unknown_website: websiteId %d is not the website of the token", id)
	case r.owns != nil && !r.owns(id):
		return rows,
			fmt.Errorf("unknown_website: websiteId %d is not in the catalogue: apply a catalogue with it first", id)
	}
	var drop func(kind string)
	if r.isLenient {
		drop = b.countDropped
	}
	details := &built[len(rows)].Details // the rows of an event share them
	if err := errors.Join(
		r.names.noteRows(built[len(rows):], b.keys, r.source),
		r.names.noteLabels(row.WebsiteID, details, r.source, drop),
	); err != nil {
		return rows, err
	}
	if b.isCut {
		r.cut++
	}
	for kind, n := range b.dropped {
		if r.dropped == nil {
			r.dropped = map[string]int{}
		}
		r.dropped[kind] += n
	}
	return built, nil
}

// canStore reports whether events of a website are accepted.
func (r *rules) canStore(website int64) bool {
	return (r.website == 0 || website == r.website) && (r.owns == nil || r.owns(website))
}

// builder builds rows from the fields of an event and collects the errors.
type builder struct {
	given     *fields
	times     Times
	websiteID int64
	keys      map[schema.NamedID]string // keys of the event, by the ids computed from them

	isLenient bool // see rules
	isCut     bool
	dropped   map[string]int
	faults.Collector
}

func (b *builder) addFault(name, value, detail string) {
	if value == "" {
		b.AddField(name, "missing: %s", detail)
		return
	}
	b.Add(name, clipText(value), detail)
}

// clipText returns the beginning of a text for an error message.
func clipText(text string) string { return faults.Clip(text, 64) }

// buildEvent builds the row of an event, without its exposure. fallbackID is the id of an event without eventId.
func (b *builder) buildEvent(fallbackID string) schema.Event {
	v := &b.given.values
	if v[fieldEvent] == string(schema.KindCustomer) {
		return b.buildPast()
	}
	id := b.textField(fieldEventID)
	if id == "" && fallbackID == "" {
		b.addFault("eventId", "",
			"must be an id that is the same in every retry, unless the request has the header Idempotency-Key")
	}
	visitor := b.visitorField()
	b.websiteID = b.parseID("websiteId", v[fieldWebsiteID], 1)
	e := schema.Event{
		EventID: schema.HashID(cmp.Or(id, fallbackID)), WebsiteID: b.websiteID, VisitorID: visitor,
		Kind: schema.Kind(v[fieldEvent]),
	}
	b.checkCustomer()
	b.setRevision(&e)
	b.setCancelled(&e)
	e.Time = b.timeField()
	if !slices.Contains(schema.Kinds, e.Kind) {
		b.addFault("event", v[fieldEvent],
			"must be view, click, submit, completion, conversion, contact, goal or customer")
	}
	switch goal := v[fieldGoalID]; {
	case e.Kind == schema.KindGoal:
		e.GoalID = b.parseName("goalId", goal, schema.NameGoal, 0)
	case goal != "":
		b.addFault("goalId", goal, "is only allowed for the event \"goal\"")
	}
	e.Value = b.moneyField(fieldValue)
	e.Profit = b.moneyField(fieldProfit)
	e.ExtraValue = b.moneyField(fieldExtraValue)
	e.Currency = b.currencyField()
	b.setAttributes(&e.Attributes)
	b.setDetails(&e)
	return e
}

// setRevision sets the revision of a goal.
func (b *builder) setRevision(e *schema.Event) {
	number := b.given.values[fieldRevision]
	if number == "" {
		return
	}
	if e.Kind != schema.KindGoal {
		b.addFault("revision", number, "only goals have revisions")
		return
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		detail := "must be an integer from 0, such as a counter or Unix milliseconds"
		if _, err := parseTime(number); err == nil {
			detail = "must be an integer from 0: write Unix milliseconds"
		}
		b.addFault("revision", number, detail)
	}
	e.Revision = uint64(max(n, 0)) //nolint:gosec // not negative
}

// setCancelled sets whether a goal is cancelled.
func (b *builder) setCancelled(e *schema.Event) {
	switch state := b.given.values[fieldCancelled]; {
	case state == "", state == "false":
	case e.Kind != schema.KindGoal:
		b.addFault("cancelled", state, "only goals can be cancelled")
	case state != "true":
		b.addFault("cancelled", state, "must be true or false")
	default:
		e.Cancelled = true
	}
}

// timeField returns the time of the event, or a storable time if it is not valid.
func (b *builder) timeField() time.Time {
	text := b.given.values[fieldTime]
	happened, err := parseTime(text)
	if err != nil {
		b.addFault("time", text, err.Error())
		return schema.FirstTime
	}
	if fault := b.times.timeFault(happened); fault != "" {
		b.addFault("time", text, fault)
	}
	return happened
}

// setAttributes sets the attributes of the visitor and of the visit.
func (b *builder) setAttributes(a *schema.Attributes) {
	for i, text := range []*string{
		&a.Device, &a.Browser, &a.OS, &a.Country, &a.Region, &a.City, &a.Channel, &a.Referrer, &a.UTMSource,
		&a.UTMMedium, &a.UTMCampaign, &a.UTMContent, &a.UTMTerm, &a.FirstVisitPage,
	} {
		*text = b.labelField(fieldDevice + field(i))
	}
	a.Device = strings.ToLower(a.Device)
	a.Browser = strings.ToLower(a.Browser)
	a.OS = strings.ToLower(a.OS)
	a.Country = strings.ToUpper(a.Country)
	if a.Country != "" && !isCountryCode(a.Country) {
		b.addFault("country", b.given.values[fieldCountry], "must be two letters, as in ISO 3166")
	}
	a.VisitorType = b.given.values[fieldVisitorType]
	if !slices.Contains([]string{"", "new", "returning"}, a.VisitorType) {
		b.addFault("visitorType", a.VisitorType, "must be new or returning")
	}
}

// isCountryCode reports whether a text has the form of a code of ISO 3166: two capital letters.
func isCountryCode(code string) bool {
	isCapital := func(letter byte) bool { return letter >= 'A' && letter <= 'Z' }
	return len(code) == 2 && isCapital(code[0]) && isCapital(code[1])
}

// labelField returns an attribute, which is cut if it is too long and the rules allow it.
func (b *builder) labelField(f field) string {
	label := b.given.values[f]
	if !b.isLenient || len(label) <= maxText || !utf8.ValidString(label) {
		return b.textField(f)
	}
	b.isCut = true
	b.given.values[f] = strings.TrimSuffix(faults.Clip(label, maxText), "…")
	return b.textField(f)
}

func (b *builder) textField(f field) string {
	value := b.given.values[f]
	if len(value) > maxText {
		b.addFault(fieldNames[f], value, fmt.Sprintf("must have at most %d bytes, has %d", maxText, len(value)))
	}
	if !utf8.ValidString(value) {
		b.addFault(fieldNames[f], strings.ToValidUTF8(value, "�"), "must be UTF-8")
	}
	if strings.IndexByte(value, 0) >= 0 { // a zero byte separates the attributes of a first view
		b.addFault(fieldNames[f], value, "must not have the character U+0000")
	}
	return value
}

func (b *builder) parseID(name, value string, least int64) int64 {
	id, err := strconv.ParseInt(value, 10, 64)
	if err != nil || id < least {
		b.addFault(name, value, fmt.Sprintf("must be an integer from %d", least))
	}
	return id
}

// parseName parses an id or a key. campaignID is that of a variation, or 0.
func (b *builder) parseName(name, value string, kind schema.NameKind, campaignID int64) int64 {
	id, key, err := schema.IDOf(b.websiteID, kind, value)
	if err != nil {
		b.addFault(name, value, err.Error())
	}
	if key != "" {
		if b.keys == nil {
			b.keys = map[schema.NamedID]string{}
		}
		b.keys[schema.NamedID{WebsiteID: b.websiteID, Kind: kind, CampaignID: campaignID, ID: id}] = key
	}
	return id
}

// parseTime parses RFC 3339 or Unix milliseconds. The error says what is allowed.
func parseTime(value string) (time.Time, error) {
	if ms, err := strconv.ParseInt(value, 10, 64); err == nil {
		if ms < leastMilliseconds {
			return time.Time{}, errors.New("must be at least 31536000000 (1971-01-01): integers are Unix " +
				"milliseconds, unless a mapping has the format unix or unixMicroseconds")
		}
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := schema.ParseTime(value)
	if err != nil {
		return t, errors.New("must be RFC 3339 (2026-05-01T12:00:00Z) or Unix milliseconds")
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

func (b *builder) moneyField(f field) int64 {
	value := b.given.values[f]
	if value == "" {
		return 0
	}
	amount, ok := parseMoney(value)
	if !ok {
		detail := fmt.Sprintf("must be a decimal number such as 12.5, with an absolute value of at most %d",
			schema.MaxMoney)
		b.addFault(fieldNames[f], value, detail+numberHint(value))
	}
	return amount
}

// currencyField returns the currency of the amounts.
func (b *builder) currencyField() string {
	code := strings.ToUpper(b.given.values[fieldCurrency])
	if code != "" && !schema.IsCurrency(code) {
		b.addFault(fieldNames[fieldCurrency], b.given.values[fieldCurrency], "must be a code of ISO 4217 such as EUR")
		return ""
	}
	return code
}

// appendRows appends the event once per exposure, or once if it is an unattributed goal.
func (b *builder) appendRows(rows []schema.Event, event *schema.Event) []schema.Event {
	v := &b.given.values
	single := exposure{v[fieldCampaignID], v[fieldWidgetID], v[fieldExperimentID], v[fieldVariationID]}
	switch {
	case event.Kind == schema.KindCustomer:
		return append(rows, *event)
	case b.given.exposures != nil && single != exposure{}:
		b.addFault(exposuresName, fmt.Sprintf("%d elements", len(b.given.exposures)),
			"must not be combined with campaignId, widgetId, experimentId or variationId")
		return rows
	case b.given.exposures != nil:
		seen := make(map[schema.Subject]bool, len(b.given.exposures))
		for i, e := range b.given.exposures {
			prefix := fmt.Sprintf("exposures[%d].", i)
			rows = append(rows, *event)
			row := &rows[len(rows)-1]
			b.setExposure(prefix, e, row)
			if seen[row.SubjectOf()] {
				b.addFault(prefix+"campaignId", e.campaignID+e.widgetID, "the event has two exposures of this subject")
			}
			seen[row.SubjectOf()] = true
		}
		return rows
	case single != exposure{}:
		rows = append(rows, *event)
		b.setExposure("", single, &rows[len(rows)-1])
		return rows
	case event.Kind == schema.KindGoal:
		event.Subject = schema.SubjectNone // attributed to all subjects that the visitor saw
		return append(rows, *event)
	}
	b.addFault("campaignId", "", "must be the campaignId or widgetId, and the variationId, that the visitor saw; only "+
		"goals may omit them")
	return rows
}

// setExposure validates an exposure and sets the subject and the variation of the row.
func (b *builder) setExposure(prefix string, e exposure, event *schema.Event) {
	if e.widgetID == "" && e.campaignID != "" {
		event.Subject = schema.SubjectCampaign
		event.SubjectID = b.parseName(prefix+"campaignId", e.campaignID, schema.NameCampaign, 0)
		event.VariationID = b.parseName(prefix+"variationId", e.variationID, schema.NameVariation, event.SubjectID)
		if e.experimentID != "" {
			b.addFault(prefix+"experimentId", e.experimentID, "is only allowed with widgetId")
		}
		return
	}
	event.VariationID = b.parseID(prefix+"variationId", e.variationID, 0)
	if e.widgetID == "" || e.campaignID != "" {
		b.addFault(prefix+"campaignId", e.campaignID, "either campaignId or widgetId must be set")
		return
	}
	event.Subject = schema.SubjectWidget
	event.SubjectID = b.parseID(prefix+"widgetId", e.widgetID, 1)
	if e.experimentID != "" {
		event.ExperimentID = b.parseID(prefix+"experimentId", e.experimentID, 0)
	}
}

// moneyDecimals is the number of decimals of a stored amount, log10(schema.MoneyScale).
const moneyDecimals = 4

// parseMoney reads a decimal number ("12.5", "-3", "1.2e3", "18.990000000000002") and returns it in units of
// 1/schema.MoneyScale, rounded half away from zero. It works on the decimal digits, so the result is exact. It returns
// false if the text is not a decimal number or its absolute value exceeds schema.MaxMoney.
func parseMoney(text string) (int64, bool) {
	mantissa, exponentText, scientific := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if scientific {
		var err error
		exponent, err = strconv.Atoi(exponentText)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		exponent = max(-maxExponent, min(exponent, maxExponent))
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, decimals, _ := strings.Cut(mantissa, ".")
	if whole+decimals == "" || strings.Trim(whole+decimals, "0123456789") != "" {
		return 0, false
	}
	digits := strings.TrimLeft(whole+decimals, "0")
	if digits == "" {
		return 0, true
	}
	// The amount is 0.digits times 10^kept, so the first kept digits are whole units.
	kept := len(digits) - len(decimals) + exponent + moneyDecimals
	amount, isAllowed := roundDigits(digits, kept)
	if negative {
		amount = -amount
	}
	return amount, isAllowed
}

// roundDigits returns the number that the first kept digits write, rounded half up by the digits after them. It returns
// false if the unrounded number exceeds schema.MaxMoney. kept may be negative, or more than there are digits.
func roundDigits(digits string, kept int) (int64, bool) {
	switch {
	case kept < 0:
		return 0, true
	case kept > maxMoneyDigits:
		return 0, false
	case kept > len(digits):
		digits += strings.Repeat("0", kept-len(digits))
	}
	amount := int64(0)
	for _, digit := range digits[:kept] {
		amount = 10*amount + int64(digit-'0')
	}
	rest := digits[kept:]
	const limit = schema.MaxMoney * schema.MoneyScale
	if amount > limit || amount == limit && strings.Trim(rest, "0") != "" {
		return 0, false
	}
	if rest != "" && rest[0] >= '5' {
		amount++
	}
	return amount, true
}

// maxMoneyDigits is the number of digits of schema.MaxMoney in units of 1/schema.MoneyScale.
const maxMoneyDigits = len("1000000000") + moneyDecimals

// maxExponent exceeds the number of digits of any text that is read, so larger exponents have the same effect.
const maxExponent = 1 << 40

// leastMilliseconds is the smallest integer that is read as Unix milliseconds, the first instant of 1971. Smaller
// integers are probably Unix seconds.
const leastMilliseconds = 365 * 24 * 60 * 60 * 1000

// Times is the range of accepted event times. The zero value accepts all times from 1970 to 2199.
type Times struct {
	MaxAge  time.Duration    // maximum time before now; 0: no maximum
	MaxSkew time.Duration    // maximum time after now
	Now     func() time.Time // the clock; nil: MaxAge and MaxSkew do not apply
}

// DefaultTimes accepts all past times, and times up to 24 hours ahead, which covers clock skew and time zone errors.
var DefaultTimes = Times{MaxSkew: 24 * time.Hour, Now: time.Now}

// timeFault returns what is allowed instead of the time, or an empty string if the time is accepted.
func (t Times) timeFault(happened time.Time) string {
	if !schema.IsStorable(happened) {
		return "must be in a year from 1970 to 2199"
	}
	if t.Now == nil {
		return ""
	}
	now := t.Now().UTC().Truncate(time.Millisecond)
	if happened.After(now.Add(t.MaxSkew)) {
		return fmt.Sprintf("must be at most %v after now, which is %s (max-event-skew)", t.MaxSkew,
			now.Format(time.RFC3339))
	}
	if t.MaxAge > 0 && happened.Before(now.Add(-t.MaxAge)) {
		return fmt.Sprintf("must be at most %v before now, which is %s (max-event-age)", t.MaxAge,
			now.Format(time.RFC3339))
	}
	return ""
}
