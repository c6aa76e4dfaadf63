package app

import (
	"context"
	"log/slog"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Expired is a campaign or widget whose retention period is over, with its number of
// events.
type Expired struct {
	catalogue.Ended
	Events uint64
}

// ExpiredSubjects returns the subjects that ended at least the given number of days ago and still have events, or facts
// if a deletion was interrupted. It reads the catalogue first, because another server may just have restarted a
// subject.
func (s *Store) ExpiredSubjects(ctx context.Context, days int, now time.Time) ([]Expired, error) {
	if err := s.Catalogue.RefreshSnapshot(ctx); err != nil {
		return nil, err
	}
	var ended []Expired
	var subjects []schema.Subject
	for _, e := range s.Catalogue.Snapshot().EndedSubjects(now.AddDate(0, 0, -days)) {
		ended = append(ended, Expired{Ended: e})
		subjects = append(subjects, e.Subject)
	}
	if len(ended) == 0 {
		return nil, nil
	}
	counts, err := s.Writer.CountSubjects(ctx, subjects)
	if err != nil {
		return nil, err
	}
	folded := map[schema.Subject]bool{}
	for of := range s.Facts.StoredSubjects() {
		folded[of.WithoutExperiment()] = true
	}
	var found []Expired
	for _, e := range ended {
		if events, stored := counts[e.Subject]; stored || folded[e.Subject] {
			e.Events = events
			found = append(found, e)
		}
	}
	return found, nil
}

// EraseSubjects deletes the events of the subjects.
func (s *Store) EraseSubjects(ctx context.Context, found []Expired) error {
	subjects := make([]schema.Subject, len(found))
	for i := range found {
		subjects[i] = found[i].Subject
	}
	return s.Writer.DropSubjects(ctx, subjects)
}

const retentionInterval = 24 * time.Hour

// followRetention deletes the events of expired subjects, first at once and then
// every day, until the context ends.
func (s *Store) followRetention(ctx context.Context, days int) {
	tick := time.NewTicker(retentionInterval)
	defer tick.Stop()
	for {
		found, err := s.ExpiredSubjects(ctx, days, time.Now())
		if err == nil && len(found) > 0 {
			err = s.EraseSubjects(ctx, found)
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "delete events past their retention period failed", "err", err)
		}
		for _, e := range found {
			if err == nil {
				slog.InfoContext(ctx, "deleted events past their retention period", "subject", e.Subject, "id", e.ID, "website", e.WebsiteID, "ended", e.EndDate, "events", e.Events)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
