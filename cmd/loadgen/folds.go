package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/facts"
	"lifthouse/loadgen/measure"
	"lifthouse/schema"
)

const foldsHelp = `Folds measures the long work on the facts of a store without facts: the first fold, the same one
interrupted at 10, 30 and 90 percent of the events, a rebuild, a comparison with the events, an erasure of
1,000 visitors, and an event a second. The ratios are those to the first fold of the same store.

It exits with 1 if a figure is above its limit. The store must be new, such as of loadgen standard.`

func (p *program) foldsCommand() *cobra.Command {
	var store, jsonFile string
	cmd := &cobra.Command{
		Use:   "folds",
		Short: "Measure the first fold, rebuild and comparison of the facts of a store",
		Long:  foldsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkEmbedded(store); err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), store, func(s *app.Store) error {
				return p.measureFolds(cmd.Context(), s, jsonFile)
			})
		},
	}
	cmd.Flags().StringVar(&store, "store", "", "address of a store without facts, such as embedded:./standard (required)")
	cmd.Flags().StringVar(&jsonFile, "json", "", "write the figures to this JSON file")
	return cmd
}

// foldFigure is a measured figure; Limit is 0 if it has none.
type foldFigure struct {
	Work        string  `json:"work"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	WallSeconds float64 `json:"wallSeconds"`
	Figure      float64 `json:"figure"`
	Unit        string  `json:"unit"`
	Limit       float64 `json:"limit,omitempty"`
}

func (f *foldFigure) isMissed() bool { return f.Limit > 0 && f.Figure > f.Limit }

// The limits of the figures. A first fold of a million events takes as long as these machines need: the ratios of the
// others to it are the same on all.
const (
	limitMicroseconds = 8.2 // CPU time of an event in the first fold: 90 s for 11 million
	limitResumed      = 1.1
	limitRebuild      = 1.2
	limitVerify       = 1.2
	limitForget       = 10   // seconds for 1,000 visitors
	limitTrickle      = 0.05 // of a core, with an event a second
)

func (p *program) measureFolds(ctx context.Context, s *app.Store, jsonFile string) error {
	m := &foldMeasurement{program: p, store: s, shard: s.Facts[0]}
	if err := s.Conn.QueryRow(ctx, "SELECT count() FROM events").Scan(&m.events); err != nil {
		return err
	}
	if m.shard.ShownPosition().Refresh > 0 || m.events == 0 {
		return errors.New("the store must have events and no facts: create one with loadgen standard")
	}
	for _, step := range []func(context.Context) error{
		m.measureFirst, m.measureTrickle, m.measureStream, m.measureVerify, m.measureRebuild, m.measureForget, m.measureResumed,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := writeFoldFigures(p.out, m.events, m.figures); err != nil {
		return err
	}
	if jsonFile != "" {
		if err := writeJSON(jsonFile, m.figures); err != nil {
			return err
		}
	}
	for i := range m.figures {
		if m.figures[i].isMissed() {
			return fmt.Errorf("%s: %.3g %s is above the limit of %g", m.figures[i].Work, m.figures[i].Figure,
				m.figures[i].Unit, m.figures[i].Limit)
		}
	}
	return nil
}

// foldMeasurement measures the work on the facts of a store, step by step.
type foldMeasurement struct {
	*program
	store   *app.Store
	shard   *facts.Refresher
	events  uint64
	first   measure.Cost
	trickle measure.Cost // of an event a second
	figures []foldFigure
}

// add adds a figure with the cost of the work.
func (m *foldMeasurement) add(work string, cost measure.Cost, figure float64, unit string, limit float64) {
	m.figures = append(m.figures, foldFigure{
		Work: work, CPUSeconds: cost.CPUMS / 1000, WallSeconds: cost.WallMS / 1000, Figure: figure, Unit: unit,
		Limit: limit,
	})
	m.printDiagnostic("%s: %.1f s of CPU time, %.1f s", work, cost.CPUMS/1000, cost.WallMS/1000)
}

// addRatio adds the ratio of the CPU time to that of the first fold.
func (m *foldMeasurement) addRatio(work string, cost measure.Cost, limit float64) {
	m.add(work, cost, cost.CPUMS/m.first.CPUMS, "× first fold", limit)
}

func (m *foldMeasurement) measureFirst(ctx context.Context) (err error) {
	if err := measure.WaitForMerges(ctx, m.store.Conn); err != nil {
		return err
	}
	m.first, err = measure.RunTimed(func() error { return m.store.Facts.RefreshFacts(ctx) })
	m.add("first fold", m.first, m.first.CPUMS*1000/float64(m.events), "µs of CPU/event", limitMicroseconds)
	return err
}

// measureArriving stores the events of each second of a time while the facts follow them.
func (m *foldMeasurement) measureArriving(
	ctx context.Context, seconds int, eventsOf func(second int, now time.Time) []schema.Event,
) (measure.Cost, error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		m.shard.FollowEvents(following)
		close(ended)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	cost, err := measure.RunTimed(func() error {
		for second := range seconds {
			<-tick.C
			now := time.Now().UTC().Truncate(time.Millisecond)
			if err := m.store.Writer.WriteEvents(ctx, eventsOf(second, now)); err != nil {
				return err
			}
		}
		return nil
	})
	stop()
	<-ended
	return cost, err
}

// viewAt returns a view of a new visitor of a campaign.
func viewAt(now time.Time, visitor, id uint64) schema.Event {
	return schema.Event{
		WebsiteID: 1, VisitorID: visitor, EventID: id, Time: now, Kind: schema.KindView,
		Subject: schema.SubjectCampaign, SubjectID: 1, VariationID: 1,
	}
}

// measureTrickle stores an event a second directly after the fold, for a minute.
func (m *foldMeasurement) measureTrickle(ctx context.Context) (err error) {
	const seconds = 60
	m.trickle, err = m.measureArriving(ctx, seconds, func(second int, now time.Time) []schema.Event {
		return []schema.Event{viewAt(now, uint64(second), uint64(now.UnixMilli()))}
	})
	m.add("an event a second, after the fold", m.trickle, m.trickle.CPUMS/m.trickle.WallMS, "of a core", limitTrickle)
	return err
}

// someVisitors reads views of some stored visitors of campaigns.
const someVisitors = `
SELECT website_id, visitor_id, subject_id, variation_id
FROM events
WHERE event = 'view' AND subject = 'campaign'
ORDER BY cityHash64(visitor_id)
LIMIT 30000`

// measureStream stores 2,000 events a second for half a minute, half of them views of new visitors, and half goals of
// visitors who are stored, whose events are all read again.
func (m *foldMeasurement) measureStream(ctx context.Context) error {
	const (
		seconds = 30
		rate    = 2_000
	)
	known, err := schema.QueryRows(ctx, m.store.Conn, someVisitors, func(row driver.Rows, e *schema.Event) error {
		return row.Scan(&e.WebsiteID, &e.VisitorID, &e.SubjectID, &e.VariationID)
	})
	if err != nil {
		return err
	}
	cost, err := m.measureArriving(ctx, seconds, func(second int, now time.Time) []schema.Event {
		events := make([]schema.Event, rate)
		for i := range events {
			n := second*rate + i
			e := known[n%len(known)]
			e.Subject = schema.SubjectCampaign
			e.Kind = schema.KindView
			e.Time = now
			e.EventID = uint64(n) << 20
			if isNew := i%2 == 0; isNew {
				e.VisitorID = uint64(n) << 30
			} else {
				e.Kind = schema.KindGoal
				e.GoalID = 1
				e.Value = 10 * schema.MoneyScale
			}
			events[i] = e
		}
		return events
	})
	atRest := m.trickle.CPUMS / m.trickle.WallMS * cost.WallMS
	m.add("2,000 events a second, more than one a second", cost, (cost.CPUMS-atRest)*1000/(seconds*rate),
		"µs of CPU/event", 0)
	return err
}

func (m *foldMeasurement) measureVerify(ctx context.Context) error {
	var found facts.Scrubbed
	cost, err := measure.RunTimed(func() (err error) {
		found, err = m.shard.VerifyFacts(ctx, func(float64) {})
		return err
	})
	m.addRatio("comparison with the events", cost, limitVerify)
	if n := found.Wrong + len(found.Lost) + len(found.Cells); err == nil && n > 0 {
		return fmt.Errorf("the facts are not those of the events: %+v", found)
	}
	return err
}

func (m *foldMeasurement) measureRebuild(ctx context.Context) error {
	cost, err := measure.RunTimed(func() error {
		_, err := m.shard.RebuildFacts(ctx)
		return err
	})
	m.addRatio("rebuild", cost, limitRebuild)
	return err
}

func (m *foldMeasurement) measureForget(ctx context.Context) error {
	const visitors = 1_000
	var ids []string
	for i := range visitors {
		ids = append(ids, "forgotten-"+strconv.Itoa(i))
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	var events []schema.Event
	for i, id := range ids {
		events = append(events, viewAt(now, schema.HashID(id), uint64(i)))
	}
	if err := m.store.Writer.WriteEvents(ctx, events); err != nil {
		return err
	}
	if err := m.store.Facts.RefreshFacts(ctx); err != nil {
		return err
	}
	cost, err := measure.RunTimed(func() error {
		_, err := m.store.Writer.ForgetVisitors(ctx, ids, nil)
		return err
	})
	m.add("erasure of 1,000 visitors", cost, cost.WallMS/1000, "s", limitForget)
	return err
}

// errInterrupted is the cause of the end of a fold that is interrupted on purpose.
var errInterrupted = errors.New("interrupted on purpose")

// measureResumed deletes the facts and folds the events again, interrupted three times. A new process goes on each time.
func (m *foldMeasurement) measureResumed(ctx context.Context) error {
	if err := m.store.Conn.Exec(ctx, "TRUNCATE TABLE facts SYNC"); err != nil {
		return err
	}
	cost, err := measure.RunTimed(func() error {
		for _, share := range []float64{0.1, 0.3, 0.9} {
			if err := m.foldUntil(ctx, share); !errors.Is(err, errInterrupted) {
				return fmt.Errorf("not interrupted at %g: %w", share, err)
			}
		}
		_, err := facts.NewRefresher(m.store.Conn, true).RefreshFacts(ctx)
		return err
	})
	m.addRatio("first fold, stopped at 10, 30 and 90 %", cost, limitResumed)
	return err
}

// foldUntil folds events in a new refresher until a share of them is folded.
func (m *foldMeasurement) foldUntil(ctx context.Context, share float64) error {
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	r := facts.NewRefresher(m.store.Conn, true)
	ended := make(chan error, 1)
	go func() {
		_, err := r.RefreshFacts(ctx)
		ended <- err
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
			if now := r.FoldProgress(); now.All > 0 && now.Share() >= share {
				interrupt(errInterrupted)
			}
		}
	}
}

// writeFoldFigures writes the figures as a table in Markdown.
func writeFoldFigures(out io.Writer, events uint64, figures []foldFigure) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	_, _ = fmt.Fprintf(table, "| %d events\t| CPU s\t| wall s\t| figure\t| limit\t|\n", events)
	_, _ = fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|")
	for i := range figures {
		f := &figures[i]
		met := "met"
		if f.isMissed() {
			met = "missed"
		}
		limit := "–"
		if f.Limit > 0 {
			limit = fmt.Sprintf("%g, %s", f.Limit, met)
		}
		_, _ = fmt.Fprintf(table, "| %s\t| %.1f\t| %.1f\t| %.3g %s\t| %s\t|\n", f.Work, f.CPUSeconds, f.WallSeconds,
			f.Figure, f.Unit, limit)
	}
	return table.Flush()
}
