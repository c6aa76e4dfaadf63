package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
)

// DiffersError reports that a rollup and the events give different results.
type DiffersError struct {
	Subject           plan.Subject
	Rollup, Reference string
}

// Error returns the subject and the remedy.
func (e *DiffersError) Error() string {
	return fmt.Sprintf("%s: the rollup differs from the events; this is a bug; rebuild it with lifthouse rollup --rebuild", e.Subject)
}

// Verify compares reports of the subject from the rollup with reports from the
// events. It returns the number of compared reports, and why others were not
// compared: new events keep arriving, or rollups cannot be read. On a cluster, the
// reports of every replica are compared that can be reached. The error is a
// DiffersError if a report differs.
func (e *Engine) Verify(ctx context.Context, subject plan.Subject) (compared int, skipped []string, err error) {
	account, known := e.catalogue.Snapshot().AccountOfWebsite(subject.WebsiteID)
	if !known {
		return 0, []string{"the website is not in the catalogue"}, nil
	}
	r := subject.Request(account)
	byDay := r
	byDay.Interval = query.Daily
	requests := []query.Request{r, byDay}
	if r.Operation == query.CampaignResults {
		r.Dimension = query.ByDevice
		requests = append(requests, r)
	}
	fromInstant, goalValue := r, r // no cube has these
	fromInstant.Filters.From = plan.OpenFrom.Add(time.Millisecond)
	goalValue.Filters.GoalValue = big.NewRat(1, 1)
	requests = append(requests, fromInstant, goalValue)
	replicas := e.Rollups.EachReplica()
	if len(replicas) == 0 {
		return 0, []string{"no rollups can be read"}, nil
	}
	for _, r := range requests {
		all := true
		for _, of := range replicas {
			why, err := e.verifyOne(ctx, r, of)
			if err != nil {
				return compared, skipped, err
			}
			all = all && why == ""
			if why != "" && !slices.Contains(skipped, why) {
				skipped = append(skipped, why)
			}
		}
		if all {
			compared++
		}
	}
	return compared, skipped, nil
}

// verifyOne compares a report from some rollups. It returns why it could not compare.
func (e *Engine) verifyOne(ctx context.Context, r query.Request, of *rollup.Set) (why string, err error) {
	const tries = 3
	plan, err := e.Plan(r)
	if err != nil {
		return "", err
	}
	for range tries {
		if err := errors.Join(e.Totals.Refresh(ctx), of.Reload(ctx)); err != nil {
			return "", source.StoreFailure(ctx, err)
		}
		x, s, err := e.prepareFrom(ctx, plan, of)
		if err != nil {
			return "", err
		}
		why = "the report was counted from the events"
		s.noted = func(reason string) { why = reason }
		switch chosen, reason := choose(x, &s, e.store.Limits); {
		case !isKept(chosen.Name()):
			why = reason
			continue
		case s.rollup.Lacks:
			why = "the rollup lacks events"
			continue
		}
		got, from, err := e.decidedReport(ctx, x, s)
		if err != nil {
			return "", err
		}
		if !isKept(from) {
			continue
		}
		reference, _, err := e.decidedReport(ctx, x, s.withoutRollup())
		if err != nil {
			return "", err
		}
		if err := e.Totals.Refresh(ctx); err != nil { // the events are read after their freshness
			return "", source.StoreFailure(ctx, err)
		}
		if stored, _ := e.Totals.Last(plan.Subject); stored.Events != x.Stored.Events || !stored.Ingested.Equal(x.Stored.Ingested) {
			why = "new events arrive"
			continue
		}
		return "", differs(plan.Subject, got, reference)
	}
	return why, nil
}

// isKept reports whether a source reads what the rollup refresh keeps.
func isKept(name string) bool { return name == source.NameRollup || name == source.NameVisitors }

func differs(subject plan.Subject, rollups, reference *result.Report) error {
	rollups.GeneratedAt, reference.GeneratedAt = time.Time{}, time.Time{}
	rollups.DataThrough, reference.DataThrough = nil, nil // on a server, that of the events may be of a copy that was removed
	got, err := json.Marshal(rollups)
	if err != nil {
		return err
	}
	want, err := json.Marshal(reference)
	if err != nil || bytes.Equal(got, want) {
		return err
	}
	return &DiffersError{subject, string(got), string(want)}
}
