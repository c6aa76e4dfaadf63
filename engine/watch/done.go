package watch

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"lifthouse/engine"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"
)

// What a recorder did on a day is stored, so a start judges nothing again. It is done again on the same day only if its
// basis has changed: for example, a definition or a recorded look.

// readDone reads what was done by all processes, and the looks that they recorded.
func (r *Recorder) readDone(ctx context.Context) error {
	if err := r.engine.Ledger.ReadNewRecords(ctx); err != nil {
		return err
	}
	return r.engine.ReadDaily(ctx)
}

// isDone reports whether something was done for a subject on the day of a time.
func (r *Recorder) isDone(kind daily.Kind, subject schema.Subject, basis uint64, now time.Time) bool {
	return r.engine.Daily.IsDone(daily.Key{Kind: kind, Subject: subject}, basis, now)
}

// notedRows is the number of rows that are stored together: each INSERT takes as much time as a small report. A process
// that is killed loses at most these, and they are done again.
const notedRows = 50

// noteDone notes that something was done for a subject.
func (r *Recorder) noteDone(ctx context.Context, kind daily.Kind, subject schema.Subject, basis uint64, now time.Time) {
	waiting := r.engine.Daily.NoteDone(daily.Row{
		Key: daily.Key{Kind: kind, Subject: subject}, Day: daily.DayOf(now), Basis: basis,
	})
	if waiting >= notedRows {
		r.writeDone(ctx)
	}
}

// writeDone stores what was noted. If that fails, it logs the error, and the next call tries again.
func (r *Recorder) writeDone(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, schema.ServerTimeout)
	defer cancel()
	if err := r.engine.Daily.WriteNoted(ctx); err != nil {
		slog.WarnContext(ctx, "record what was done today failed", "err", err)
	}
}

// basisVersion is the version of the following. With a higher one, everything is done again once.
const basisVersion = 1

// basisOfCheck returns what a check for harm is based on, beside the data.
func basisOfCheck(found *engine.Judgement) uint64 {
	of := schema.NewIdentity("check", basisVersion)
	of.Add("definition", strconv.FormatUint(found.Definition(), 10))
	return of.Hash()
}

// basisOfSplit returns what the test of an imported split is based on.
func basisOfSplit(found *engine.Judgement) uint64 {
	of := schema.NewIdentity("split", basisVersion)
	of.Add("definition", strconv.FormatUint(found.Definition(), 10))
	of.Add("events", strconv.FormatUint(found.Events, 10))
	return of.Hash()
}

// basisOfDecision returns what a decision is based on, beside the data: the definition, and the recorded looks and the
// interactions of the subject.
func (r *Recorder) basisOfDecision(
	ctx context.Context, owned *catalogue.AccountResources, found *engine.Judgement,
) uint64 {
	subject := found.Plan.Subject
	of := schema.NewIdentity("decision", basisVersion)
	of.Add("definition", strconv.FormatUint(found.Definition(), 10))
	if campaign, isCampaign := owned.Campaigns[subject.ID]; isCampaign && subject.Kind == schema.SubjectCampaign {
		of.Add("autoStop", campaign.AutoStop)
	}
	recorded := r.engine.LastVersions(ctx, []schema.Subject{subject})[0].Recorded
	of.Add("recorded", strconv.FormatUint(recorded, 10))
	return of.Hash()
}
