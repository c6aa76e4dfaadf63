package ingest

// field is one field of an event as it arrives.
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

// exposuresName is the one field that holds a list.
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

// fields are the values of an event as they arrived; empty means not given.
type fields struct {
	values    [fieldCount]string
	exposures []exposure // where the event names several
}

// exposure is what a visitor saw, as it arrived.
type exposure struct{ campaignID, widgetID, experimentID, variationID string }
