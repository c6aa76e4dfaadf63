package population

import (
	"context"
	"io"
	"strconv"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// Progress counts what has been generated and handed over so far.
type Progress struct {
	Visitors int
	Events   int // including late and duplicate events
}

// WriteNDJSON writes all events as JSON lines. It calls report repeatedly; calls do not overlap.
func WriteNDJSON(ctx context.Context, s *Scenario, w io.Writer, report func(Progress)) (Progress, error) {
	var p Progress
	err := GenerateEvents(ctx, s, encodeNDJSON, func(batch Batch[[]byte]) error {
		p = Progress{p.Visitors + batch.Visitors, p.Events + batch.Events}
		report(p)
		_, err := w.Write(batch.Data)
		return err
	})
	return p, err
}

// insertRows is the maximum number of rows per insert.
const insertRows = 200_000

// InsertScenario writes all events to a store. It calls report repeatedly; calls do not overlap.
func InsertScenario(ctx context.Context, s *Scenario, w *ingest.Writer, report func(Progress)) (Progress, error) {
	var p Progress
	rows := make([]schema.Event, 0, insertRows)
	names, err := w.Names(ctx)
	if err != nil {
		return p, err
	}
	write := func() error {
		if err := names.NoteEvents(rows, "loadgen"); err != nil {
			return err
		}
		err := w.WriteEvents(ctx, rows)
		rows = rows[:0]
		report(p)
		return err
	}
	err = GenerateEvents(ctx, s, storedEvents, func(batch Batch[[]schema.Event]) error {
		if len(rows)+len(batch.Data) > insertRows {
			if err := write(); err != nil {
				return err
			}
		}
		rows = append(rows, batch.Data...)
		p = Progress{p.Visitors + batch.Visitors, p.Events + batch.Events}
		return nil
	})
	if err != nil {
		return p, err
	}
	return p, write()
}

func storedEvents(events []Event) []schema.Event {
	rows := make([]schema.Event, len(events))
	for i := range events {
		rows[i] = events[i].Event
	}
	return rows
}

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
	b = appendDetails(b, &e.Details)
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
		b = append(b, '-')
		amount = -amount
	}
	b = strconv.AppendInt(b, amount/schema.MoneyScale, 10)
	hundredths := amount % schema.MoneyScale / (schema.MoneyScale / 100)
	return append(b, '.', byte('0'+hundredths/10), byte('0'+hundredths%10))
}
