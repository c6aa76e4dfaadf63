package facts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Visitor is a visitor of a report, as a row of a Parquet file. The sums over the rows of a variation are the numbers
// of the report.
type Visitor struct {
	ID           uint64    `parquet:"visitor"`
	VariationID  int64     `parquet:"variationId,dict"`
	FirstView    time.Time `parquet:"firstView,timestamp(millisecond)"`
	MultiExposed bool      `parquet:"multiExposed"`

	Device         string `parquet:"device,dict"` // of the first view, as all attributes, in the order of fold.Attributes
	Country        string `parquet:"country,dict"`
	Channel        string `parquet:"channel,dict"`
	Browser        string `parquet:"browser,dict"`
	OS             string `parquet:"os,dict"`
	VisitorType    string `parquet:"visitorType,dict"`
	Referrer       string `parquet:"referrer,dict"`
	UTMSource      string `parquet:"utmSource,dict"`
	UTMMedium      string `parquet:"utmMedium,dict"`
	UTMCampaign    string `parquet:"utmCampaign,dict"`
	City           string `parquet:"city,dict"`
	Region         string `parquet:"region,dict"`
	UTMContent     string `parquet:"utmContent,dict"`
	UTMTerm        string `parquet:"utmTerm,dict"`
	FirstVisitPage string `parquet:"firstVisitPage,dict"`

	Views        uint64 `parquet:"views"` // from the first view until the end of the window, like all events
	Clicks       uint64 `parquet:"clicks"`
	Submits      uint64 `parquet:"submits"`
	Completions  uint64 `parquet:"completions"`
	Conversions  uint64 `parquet:"conversions"`
	Contacts     uint64 `parquet:"contacts"`
	GoalsReached uint64 `parquet:"goalsReached"`

	Value          float64 `parquet:"value"` // with the cap of the report
	Profit         float64 `parquet:"profit"`
	ExtraValue     float64 `parquet:"extraValue"`
	UncappedValue  float64 `parquet:"uncappedValue"`
	UncappedProfit float64 `parquet:"uncappedProfit"`
}

// EachVisitor calls each for the visitors of the report that count, in no particular order. All visitors of a server
// are read from the same facts. It has no time limit, because each may wait for a client that downloads a file.
func (r Reader) EachVisitor(ctx context.Context, q plan.Question, each func(*Visitor) error) error {
	var x answer
	err := r.newAnswer(q).atOnePosition(ctx, func(now answer) (err error) {
		x, err = now.withLimits(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, part := range x.serverParts() {
		part.store.Limits.Time = 0
		part.stored.Newest = schema.EndOfTime // of events that may arrive now
		scan := func(row driver.Rows) error { return scanReportVisitor(row, each) }
		if err := (&counting{part: part}).runStatement(ctx, "each_visitor.sql", scan, x.countedVariations()); err != nil {
			return err
		}
	}
	return nil
}

func scanReportVisitor(row driver.Rows, each func(*Visitor) error) error {
	var v Visitor
	var variation, attributes string
	var first int64
	var value, profit, extra, countedValue, countedProfit int64
	err := row.Scan(&v.ID, &variation, &first, &attributes,
		&v.Views, &v.Clicks, &v.Submits, &v.Completions, &v.Conversions, &v.Contacts, &v.GoalsReached,
		&value, &profit, &extra, &countedValue, &countedProfit)
	if err != nil {
		return err
	}
	if v.Views == 0 { // a replica lacks the visitor's row
		return &source.StoreError{Fault: source.Busy}
	}
	variation, v.MultiExposed = strings.CutSuffix(variation, fold.MultiExposed)
	if v.VariationID, err = strconv.ParseInt(variation, 10, 64); err != nil {
		return fmt.Errorf("facts: variation %q: %w", variation, err)
	}
	v.FirstView = time.UnixMilli(first).UTC()
	values := strings.Split(attributes, string(fold.Separator))
	for i, to := range []*string{
		&v.Device, &v.Country, &v.Channel, &v.Browser, &v.OS, &v.VisitorType, &v.Referrer,
		&v.UTMSource, &v.UTMMedium, &v.UTMCampaign, &v.City, &v.Region, &v.UTMContent, &v.UTMTerm, &v.FirstVisitPage,
	} {
		*to = values[i]
	}
	amount := func(units int64) float64 { return float64(units) / schema.MoneyScale }
	v.Value, v.Profit, v.ExtraValue = amount(countedValue), amount(countedProfit), amount(extra)
	v.UncappedValue, v.UncappedProfit = amount(value), amount(profit)
	return each(&v)
}
