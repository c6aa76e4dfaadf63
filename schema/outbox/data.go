package outbox

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Data is the body of a message. Text is one sentence that needs no other field.
type Data struct {
	AccountID int64 `json:"accountId"`
	WebsiteID int64 `json:"websiteId,omitzero"`
	catalogue.PageSubject
	Name string `json:"name,omitempty"` // of the campaign, or of the widget and its experiment
	Text string `json:"text"`

	Decision json.RawMessage `json:"decision,omitempty"` // as in reports: status, variationId, decidedAt, reasons, text
	Sentence string          `json:"sentence,omitempty"` // the conclusion, with the interval that carries it
	Metric   string          `json:"metric,omitempty"`
	Lift     json.RawMessage `json:"lift,omitempty"`     // value and interval of the variation of the decision
	PerMonth json.RawMessage `json:"perMonth,omitempty"` // what the variation is worth a month, with its interval
	Worth    string          `json:"worth,omitempty"`    // the same in words

	Check string `json:"check,omitempty"` // sampleRatio, multipleExposures or silence
	By    string `json:"by,omitempty"`    // who started or stopped the campaign

	URL string `json:"url,omitempty"` // of the page; set when the message is sent
}

// Value returns the data as JSON.
func (d Data) Value() (driver.Value, error) {
	text, err := json.Marshal(d)
	return string(text), err
}

// Scan decodes the output of Value.
func (d *Data) Scan(text any) error { return json.Unmarshal(fmt.Append(nil, text), d) }

// NewMessage returns a message about a subject. It sets the ids of the data.
func NewMessage(id string, account int64, event string, of schema.Subject, state string, now time.Time, data Data) Message {
	data.AccountID, data.WebsiteID = account, of.WebsiteID
	switch of.Kind {
	case schema.SubjectCampaign:
		data.CampaignID = of.ID
	case schema.SubjectWidget:
		data.WidgetID, data.ExperimentID = of.ID, of.ExperimentID
	case schema.SubjectNone: // a test message
	}
	return Message{ID: id, AccountID: account, Event: event, Subject: of, State: state, RecordedAt: now.UTC().Truncate(time.Millisecond), Data: data}
}
