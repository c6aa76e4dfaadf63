package loadgen

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// Progress is how far a run came.
type Progress struct {
	Visitors int
	Events   int   // sent, late ones and duplicates too
	Bytes    int64 // before compression; of lines only
}

func (p *Progress) add(visitors, events, bytes int) {
	p.Visitors += visitors
	p.Events += events
	p.Bytes += int64(bytes)
}

// Tell is called now and then by a run, one call after the other.
type Tell func(Progress)

// WriteLines writes all events as JSON lines.
func WriteLines(ctx context.Context, s *Scenario, w io.Writer, tell Tell) (Progress, error) {
	var p Progress
	err := Produce(ctx, s, EncodeNDJSON, func(part Part[[]byte]) error {
		p.add(part.Visitors, part.Events, len(part.Made))
		tell(p)
		_, err := w.Write(part.Made)
		return err
	})
	return p, err
}

// WriteFile writes all events to a file, or to standard output for the path -:
// Parquet or JSON lines, as the path ends; lines are compressed if it ends in
// .gz or .zst.
func WriteFile(ctx context.Context, s *Scenario, path string, out io.Writer, tell Tell) (Progress, error) {
	if path == "-" {
		return WriteLines(ctx, s, out, tell)
	}
	file, err := os.Create(path) //nolint:gosec // the user names the file
	if err != nil {
		return Progress{}, err
	}
	p, err := writeTo(ctx, s, path, file, tell)
	return p, errors.Join(err, file.Close())
}

func writeTo(ctx context.Context, s *Scenario, path string, file io.Writer, tell Tell) (Progress, error) {
	var inner io.WriteCloser
	switch {
	case strings.HasSuffix(path, ".parquet"):
		return writeParquet(ctx, s, file, tell)
	case strings.HasSuffix(path, ".gz"):
		inner = gzip.NewWriter(file)
	case strings.HasSuffix(path, ".zst"):
		encoder, err := zstd.NewWriter(file)
		if err != nil {
			return Progress{}, err
		}
		inner = encoder
	default:
		return WriteLines(ctx, s, file, tell)
	}
	p, err := WriteLines(ctx, s, inner, tell)
	return p, errors.Join(err, inner.Close())
}

// parquetEvent is an event in our own fields; what is not given is null.
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

func parquetRows(events []Event) []parquetEvent {
	rows := make([]parquetEvent, len(events))
	for i := range events {
		e := &events[i]
		rows[i] = parquetEvent{
			EventID: string(e.appendID(nil)), Time: e.Time.UnixMilli(), WebsiteID: e.WebsiteID,
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

// parquetGroup is how many rows a row group of a Parquet file has.
const parquetGroup = 500_000

func writeParquet(ctx context.Context, s *Scenario, file io.Writer, tell Tell) (Progress, error) {
	var p Progress
	w := parquet.NewGenericWriter[parquetEvent](file, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(parquetGroup))
	err := Produce(ctx, s, parquetRows, func(part Part[[]parquetEvent]) error {
		p.add(part.Visitors, part.Events, 0)
		tell(p)
		_, err := w.Write(part.Made)
		return err
	})
	return p, errors.Join(err, w.Close())
}

// storeBatch is how many rows go into a store with one insert.
const storeBatch = 200_000

// Store writes all events into a store.
func Store(ctx context.Context, s *Scenario, w *ingest.Writer, tell Tell) (Progress, ingest.Outcome, error) {
	var p Progress
	var all ingest.Outcome
	batch := make([]schema.Event, 0, storeBatch)
	write := func() error {
		outcome, err := w.Write(ctx, batch)
		all.Add(outcome)
		batch = batch[:0]
		tell(p)
		return err
	}
	err := Produce(ctx, s, storeRows, func(part Part[[]schema.Event]) error {
		if len(batch)+len(part.Made) > storeBatch {
			if err := write(); err != nil {
				return err
			}
		}
		batch = append(batch, part.Made...)
		p.add(part.Visitors, part.Events, 0)
		return nil
	})
	if err != nil {
		return p, all, err
	}
	return p, all, write()
}

func storeRows(events []Event) []schema.Event {
	rows := make([]schema.Event, len(events))
	for i := range events {
		rows[i] = events[i].Event
	}
	return rows
}

// Merge merges the parts of the events, as the store does on its own in time.
func Merge(ctx context.Context, conn driver.Conn) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE events FINAL SETTINGS optimize_skip_merged_partitions = 1")
}

// Calm returns when the store merges nothing more, which costs what is measured
// meanwhile.
func Calm(ctx context.Context, conn driver.Conn) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for calm := 0; calm < 3; {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return err
		}
		if calm++; merges > 0 {
			calm = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
