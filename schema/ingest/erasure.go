package ingest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Erased counts the stored data of visitors.
type Erased struct {
	Events   uint64 // number of rows
	Subjects uint64 // number of campaigns, widgets and experiments that have these events
}

// CountVisitors counts the stored data of visitors, whose ids are given as they were sent. If websites is empty, it
// includes all websites.
func (w *Writer) CountVisitors(ctx context.Context, visitors []string, websites []int64) (Erased, error) {
	erased, _, err := w.eventsOf(ctx, visitors, websites)
	return erased, err
}

// eventsOf counts the stored data of visitors, and returns the websites that have events of them.
func (w *Writer) eventsOf(ctx context.Context, visitors []string, websites []int64) (Erased, []int64, error) {
	var erased Erased
	var found []int64
	err := schema.EachRow(ctx, w.conn, statements["visitor_events"], func(row driver.Rows) error {
		var s schema.Subject
		var n uint64
		err := row.Scan(&s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID, &n)
		erased.Subjects++
		erased.Events += n
		found = append(found, s.WebsiteID)
		return err
	}, namedVisitors(visitors, websites)...)
	return erased, found, schema.WrapError(err, "look up visitors")
}

// ForgetVisitors deletes all data of the visitors. When it returns, their rows are removed from disk. Writes wait until
// then. It deletes the events first, so no refresh can add facts again. To finish an interrupted deletion, call
// ForgetVisitors again.
func (w *Writer) ForgetVisitors(ctx context.Context, visitors []string, websites []int64) (erased Erased, err error) {
	err = w.PauseWrites(ctx, func() error {
		ctx := context.WithoutCancel(ctx)
		defer w.facts.HoldScrubs()()
		var found []int64
		erased, found, err = w.eventsOf(ctx, visitors, websites)
		if err != nil {
			return err
		}
		of := namedVisitors(visitors, websites)
		err = w.conn.Exec(ctx, statements["forget_inbox"], of...)
		if err == nil {
			err = w.conn.Exec(ctx, statements["forget_rejects"],
				clickhouse.Named("visitors", visitorSpellings(visitors)), clickhouse.Named("website_ids", websites))
		}
		if err == nil {
			err = schema.DeleteEvents(ctx, w.conn, statements["forget"], of...)
		}
		if err != nil {
			return fmt.Errorf("erase visitors: %w", err)
		}
		// The facts, including those that a running refresh still computes from the deleted events.
		facts, err := schema.QueryRows(ctx, w.conn, statements["visitor_facts"], scanVisitor, of...)
		if err != nil {
			return fmt.Errorf("look up the facts of visitors: %w", err)
		}
		for _, website := range found {
			for _, visitor := range visitors {
				facts = append(facts, schema.Visitor{WebsiteID: website, ID: schema.HashID(visitor)})
			}
		}
		related, err := w.forgetOrders(ctx, visitors, websites)
		if err != nil {
			return err
		}
		return w.eraseFacts(ctx, facts, related)
	})
	return erased, err
}

// visitorSpellings returns the ids as they were sent and as JSON may encode them.
func visitorSpellings(visitors []string) []string {
	var all []string
	for _, visitor := range visitors {
		var escaped bytes.Buffer
		encoder := json.NewEncoder(&escaped)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(visitor); err != nil || visitor == "" {
			continue
		}
		quoted := strings.TrimSpace(escaped.String())
		all = append(all, visitor, quoted[1:len(quoted)-1])
	}
	return all
}

func namedVisitors(visitors []string, websites []int64) []any {
	hashes := make([]uint64, len(visitors))
	for i, visitor := range visitors {
		hashes[i] = schema.HashID(visitor)
	}
	return []any{clickhouse.Named("visitor_ids", hashes), clickhouse.Named("website_ids", websites)}
}

// StoredEvents are the stored events of a subject.
type StoredEvents struct {
	Events   uint64    // number of rows
	Accepted time.Time // when the latest was accepted
}

// CountSubjects returns the stored events of each subject. Subjects without stored events are not in the map.
func (w *Writer) CountSubjects(ctx context.Context,
	subjects []schema.Subject,
) (map[schema.Subject]StoredEvents, error) {
	counts := map[schema.Subject]StoredEvents{}
	err := schema.EachRow(ctx, w.conn, statements["subjects"], func(row driver.Rows) error {
		var s schema.Subject
		var stored StoredEvents
		err := row.Scan(&s.WebsiteID, (*string)(&s.Kind), &s.ID, &stored.Events, &stored.Accepted)
		counts[s] = stored
		return err
	}, namedSubjects(subjects)...)
	return counts, schema.WrapError(err, "count events of subjects")
}

// DropSubjects deletes all events of the subjects, and then their facts. Unattributed goals remain, because they belong
// to the website. Writes wait until DropSubjects returns. To finish an interrupted deletion, call it again.
func (w *Writer) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	return w.PauseWrites(ctx, func() error {
		ctx := context.WithoutCancel(ctx)
		defer w.facts.HoldScrubs()()
		scan := func(row driver.Rows, s *schema.Subject) error {
			return row.Scan(&s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID)
		}
		all, err := schema.QueryRows(ctx, w.conn, statements["experiments"], scan, namedSubjects(subjects)...)
		if err != nil {
			return fmt.Errorf("list the experiments of subjects: %w", err)
		}
		all = append(all, subjects...) // even if the events were deleted before
		if err := schema.DeleteEvents(ctx, w.conn, statements["drop_events"], namedSubjects(subjects)...); err != nil {
			return fmt.Errorf("drop subjects: %w", err)
		}
		return w.facts.DropSubjects(ctx, all)
	})
}

// namedSubjects returns the parameters of campaigns and widgets. A widget includes its experiments.
func namedSubjects(subjects []schema.Subject) []any {
	websites, kinds, ids := make([]int64, len(subjects)), make([]string, len(subjects)), make([]int64, len(subjects))
	for i, s := range subjects {
		websites[i] = s.WebsiteID
		kinds[i] = string(s.Kind)
		ids[i] = s.ID
	}
	return []any{
		clickhouse.Named("website_ids", websites), clickhouse.Named("subjects", kinds),
		clickhouse.Named("subject_ids", ids),
	}
}

// DropNames deletes the events of campaigns, variations and goals that the catalogue does not declare, and then their
// names. Writes wait until DropNames returns. To finish an interrupted deletion, call it again.
func (w *Writer) DropNames(ctx context.Context, names []schema.NamedID) error {
	return w.PauseWrites(ctx, func() error {
		ctx := context.WithoutCancel(ctx)
		defer w.facts.HoldScrubs()()
		of := namedNames(names)
		visitors, err := schema.QueryRows(ctx, w.conn, statements["named_visitors"],
			scanVisitor, of...)
		if err != nil {
			return fmt.Errorf("list the visitors of names: %w", err)
		}
		if err := schema.DeleteEvents(ctx, w.conn, statements["drop_named_events"], of...); err != nil {
			return fmt.Errorf("drop the events of names: %w", err)
		}
		if err := w.conn.Exec(ctx, statements["drop_named_orders"], of...); err != nil {
			return fmt.Errorf("drop the orders of names: %w", err)
		}
		if err := w.facts.RefoldVisitors(ctx, visitors); err != nil {
			return err
		}
		return w.RemoveNames(ctx, names)
	})
}

// RemoveNames deletes the names of campaigns, variations and goals, and of the variations of these campaigns. Their
// events must be deleted.
func (w *Writer) RemoveNames(ctx context.Context, names []schema.NamedID) error {
	if known := w.names.Load(); known != nil {
		known.removeNames(names)
	}
	return schema.WrapError(w.conn.Exec(ctx, statements["drop_names"], namedNames(names)...), "drop names")
}

// namedNames returns the parameters of names.
func namedNames(names []schema.NamedID) []any {
	var params []any
	for _, kind := range []schema.NameKind{schema.NameCampaign, schema.NameVariation, schema.NameGoal} {
		websites, campaigns, ids := []int64{}, []int64{}, []int64{}
		for _, name := range names {
			if name.Kind == kind {
				websites = append(websites, name.WebsiteID)
				ids = append(ids, name.ID)
				campaigns = append(campaigns, name.CampaignID)
			}
		}
		params = append(params, clickhouse.Named(string(kind)+"_websites", websites),
			clickhouse.Named(string(kind)+"_ids", ids))
		if kind == schema.NameVariation {
			params = append(params, clickhouse.Named("variation_campaigns", campaigns))
		}
	}
	return params
}

// Writes wait for the deletion of forgotten names' events, so it takes at most a part of the time, however many names
// arrive.
const (
	leastPause = time.Second
	partOfTime = 10
)

// ForgetNames lets names be forgotten when there are too many that the catalogue does not declare, and deletes their
// events, until the context ends. If shared is set, other servers may also forget names.
func (w *Writer) ForgetNames(ctx context.Context, shared bool) {
	var names *Names
	schema.Repeat(ctx, time.Minute, "forget names", func(ctx context.Context) (err error) {
		if names == nil {
			names, err = w.Names(ctx)
			if err != nil {
				return err
			}
			names.startForgetting()
		} else if shared {
			if err := names.refreshNames(ctx); err != nil {
				return err
			}
		}
		minute := time.After(time.Minute)
		for {
			started := time.Now()
			if err := w.dropForgotten(ctx, names); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(max(leastPause, partOfTime*time.Since(started))):
			}
			select {
			case <-ctx.Done():
				return nil
			case <-minute:
				return nil
			case <-names.full:
			}
		}
	})
}

// dropForgotten deletes the events of some forgotten names.
func (w *Writer) dropForgotten(ctx context.Context, names *Names) error {
	taken := names.takeForgotten()
	if len(taken) == 0 {
		return nil
	}
	slog.WarnContext(ctx, "names that the catalogue does not declare are forgotten, the rarest first",
		"names", len(taken), "limit", MaxWebsiteNames)
	ids := make([]schema.NamedID, len(taken))
	for i := range taken {
		ids[i] = taken[i].NamedID
	}
	defer names.endDrop(ids)
	err := w.DropNames(ctx, ids)
	if err != nil {
		names.restoreForgotten(taken)
	}
	return err
}
