package send

import (
	"context"
	"errors"
	"io"

	"lifthouse/loadgen/population"
	"lifthouse/schema"

	"github.com/parquet-go/parquet-go"
)

// parquetEvent is a row of a Parquet file in the server's own event format.
// Optional columns are null if their value is zero.
type parquetEvent struct {
	EventID      string `parquet:"eventId"`
	Time         int64  `parquet:"time,timestamp(millisecond)"`
	WebsiteID    int64  `parquet:"websiteId"`
	CampaignID   int64  `parquet:"campaignId,optional"`
	WidgetID     int64  `parquet:"widgetId,optional"`
	ExperimentID int64  `parquet:"experimentId,optional"`
	VariationID  int64  `parquet:"variationId"`
	Visitor      string `parquet:"visitor"`
	Kind         string `parquet:"event,dict"`
	GoalID       int64  `parquet:"goalId,optional"`
	Value        int64  `parquet:"value,decimal(4:18)"`
	Profit       int64  `parquet:"profit,decimal(4:18)"`
	ExtraValue   int64  `parquet:"extraValue,decimal(4:18)"`
	Device       string `parquet:"device,dict"`
	Browser      string `parquet:"browser,dict"`
	OS           string `parquet:"os,dict"`
	Country      string `parquet:"country,dict"`
	Region       string `parquet:"region,dict"`
	City         string `parquet:"city,dict"`
	Channel      string `parquet:"channel,dict"`
	Referrer     string `parquet:"referrer"`
	UTMSource    string `parquet:"utmSource,dict"`
	UTMMedium    string `parquet:"utmMedium,dict"`
	UTMCampaign  string `parquet:"utmCampaign,dict"`
	UTMContent   string `parquet:"utmContent,dict"`
	UTMTerm      string `parquet:"utmTerm"`
	FirstPage    string `parquet:"firstVisitPage"`
	VisitorType  string `parquet:"visitorType,dict"`
}

func parquetRows(events []population.Event) []parquetEvent {
	rows := make([]parquetEvent, len(events))
	for i := range events {
		e := &events[i]
		rows[i] = parquetEvent{
			EventID: e.ID(), Time: e.Time.UnixMilli(), WebsiteID: e.WebsiteID,
			ExperimentID: e.ExperimentID, VariationID: e.VariationID, Visitor: e.Visitor, Kind: string(e.Kind), GoalID: e.GoalID,
			Value: e.Value, Profit: e.Profit, ExtraValue: e.ExtraValue,
			Device: e.Device, Browser: e.Browser, OS: e.OS, Country: e.Country, Region: e.Region, City: e.City, Channel: e.Channel, Referrer: e.Referrer,
			UTMSource: e.UTMSource, UTMMedium: e.UTMMedium, UTMCampaign: e.UTMCampaign, UTMContent: e.UTMContent, UTMTerm: e.UTMTerm,
			FirstPage: e.FirstVisitPage, VisitorType: e.VisitorType,
		}
		if e.Subject == schema.SubjectCampaign {
			rows[i].CampaignID = e.SubjectID
		} else {
			rows[i].WidgetID = e.SubjectID
		}
	}
	return rows
}

// parquetGroupRows is the maximum number of rows in a row group.
const parquetGroupRows = 500_000

func writeParquet(ctx context.Context, s *population.Scenario, file io.Writer, report Report) (Progress, error) {
	var p Progress
	w := parquet.NewGenericWriter[parquetEvent](file, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(parquetGroupRows))
	err := population.GenerateEvents(ctx, s, parquetRows, func(batch population.Batch[[]parquetEvent]) error {
		p.addCounts(batch.Visitors, batch.Events, 0)
		report(p)
		_, err := w.Write(batch.Data)
		return err
	})
	return p, errors.Join(err, w.Close())
}
