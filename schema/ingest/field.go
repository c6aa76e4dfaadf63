package ingest

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
	fieldCount
)

var fieldNames = [fieldCount]string{
	"eventId", "time", "websiteId", "campaignId", "widgetId", "experimentId", "variationId", "visitor", "event",
	"goalId", "value", "profit", "extraValue", "device", "browser", "os", "country", "region", "city", "channel",
	"referrer", "utmSource", "utmMedium", "utmCampaign", "utmContent", "utmTerm", "firstVisitPage", "visitorType",
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

func fieldByName(name string) (field, bool) {
	f, known := fieldsByName[name]
	return f, known
}

// fields are the values of an incoming event as text. An empty text means that
// the field is not set.
type fields struct {
	values    [fieldCount]string
	exposures []exposure // the list of exposures, or nil
}

// exposure is an exposure of an incoming event.
type exposure struct{ campaignID, widgetID, experimentID, variationID string }

// isAmount reports whether the field is an amount of money.
func (f field) isAmount() bool { return f == fieldValue || f == fieldProfit || f == fieldExtraValue }
