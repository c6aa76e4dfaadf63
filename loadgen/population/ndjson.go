package population

import (
	"strconv"
	"time"

	"lifthouse/schema"
)

// encodeNDJSON encodes events as JSON lines in the server's own event format.
// Texts are not escaped: no generated text contains a character that JSON
// escapes.
func encodeNDJSON(events []Event) []byte {
	lines := make([]byte, 0, 450*len(events))
	for i := range events {
		lines = appendLine(lines, &events[i])
	}
	return lines
}

func appendLine(b []byte, e *Event) []byte {
	b = append(b, `{"eventId":"`...)
	b = e.appendID(b)
	b = append(b, `","time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","websiteId":`...)
	b = strconv.AppendInt(b, e.WebsiteID, 10)
	b = appendText(b, "visitor", e.Visitor)
	b = appendText(b, "event", string(e.Kind))
	if e.Subject == schema.SubjectWidget {
		b = appendInteger(b, "widgetId", e.SubjectID)
		b = appendInteger(b, "experimentId", e.ExperimentID)
	} else {
		b = appendInteger(b, "campaignId", e.SubjectID)
	}
	b = appendInteger(b, "variationId", e.VariationID)
	if e.Kind == schema.KindGoal {
		b = appendInteger(b, "goalId", e.GoalID)
	}
	b = appendAmount(b, "value", e.Value)
	b = appendAmount(b, "profit", e.Profit)
	b = appendAmount(b, "extraValue", e.ExtraValue)
	b = appendAttributes(b, &e.Attributes)
	return append(b, "}\n"...)
}

func appendAttributes(b []byte, a *schema.Attributes) []byte {
	b = appendText(b, "device", a.Device)
	b = appendText(b, "browser", a.Browser)
	b = appendText(b, "os", a.OS)
	b = appendText(b, "country", a.Country)
	b = appendText(b, "region", a.Region)
	b = appendText(b, "city", a.City)
	b = appendText(b, "channel", a.Channel)
	b = appendText(b, "referrer", a.Referrer)
	b = appendText(b, "utmSource", a.UTMSource)
	b = appendText(b, "utmMedium", a.UTMMedium)
	b = appendText(b, "utmCampaign", a.UTMCampaign)
	b = appendText(b, "utmContent", a.UTMContent)
	b = appendText(b, "utmTerm", a.UTMTerm)
	b = appendText(b, "firstVisitPage", a.FirstVisitPage)
	return appendText(b, "visitorType", a.VisitorType)
}

// appendText appends a field unless the text is empty.
func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(append(b, text...), '"')
}

func appendInteger(b []byte, name string, n int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

// appendAmount appends an amount in the sender's currency unit, with two
// decimals, unless the amount is 0.
func appendAmount(b []byte, name string, amount int64) []byte {
	if amount == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	if amount < 0 {
		b, amount = append(b, '-'), -amount
	}
	b = strconv.AppendInt(b, amount/schema.MoneyScale, 10)
	hundredths := amount % schema.MoneyScale / (schema.MoneyScale / 100)
	return append(b, '.', byte('0'+hundredths/10), byte('0'+hundredths%10))
}
