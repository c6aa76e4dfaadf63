package engine

import (
	"context"
	"fmt"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/worth"

	"github.com/cespare/xxhash/v2"
)

// addWorth adds what the treatments of a plan in force at the first view are worth to its report. a has the results of the
// looks.
func (e *Engine) addWorth(ctx context.Context, p *plan.Plan, a *looks.Analysis, report *result.Report) error {
	if !canDecide(p) {
		return nil
	}
	pool, err := e.ReadPool(ctx, worth.PoolOf(p))
	if err != nil {
		return err
	}
	snapshot, website := e.catalogue.Snapshot(), p.Subject.WebsiteID
	account, _ := snapshot.AccountOfWebsite(website)
	report.AddWorth(p, a, pool.WorthOf(p.Subject), snapshot.AccountResources(account).Websites[website].Currency)
	return nil
}

// ReadPool returns a pool: all campaigns and experiments of its kind, by their rows in the ledger, or, if these are of
// imported data, computed from the events.
func (e *Engine) ReadPool(ctx context.Context, key worth.PoolKey) (*worth.Pool, error) {
	account, _ := e.catalogue.Snapshot().AccountOfWebsite(key.WebsiteID)
	owned := e.catalogue.Snapshot().AccountResources(account)
	var campaigns []worth.Campaign
	made := []any{owned.Version} // identifies what the pool is made of
	for _, subject := range owned.Subjects() {
		if subject.WebsiteID != key.WebsiteID {
			continue
		}
		p, err := plan.New(plan.ResultsRequest(account, subject), owned)
		if err != nil {
			return nil, err
		}
		recorded, err := e.Ledger.SubjectRecords(ctx, subject)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		if p = e.asOfStart(p, recorded); !canDecide(p) || worth.PoolOf(p) != key {
			continue
		}
		state, version, err := e.readState(ctx, p, recorded)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, worth.Campaign{Plan: p, State: state})
		made = append(made, subject, looks.DeclarationOf(p.DeclaredPlan()).Hash, p.Allocation, p.Rules.MDE, version)
		for _, row := range state {
			made = append(made, row.Kind, row.Number, row.RecordedAt.UnixMilli())
		}
	}
	type fit struct{ worth.PoolKey }
	of := Version{Known: true, Data: xxhash.Sum64String(fmt.Sprint(made...))}
	return valueAt(e, fit{key}, of, func() (*worth.Pool, int64, error) {
		return worth.NewPool(campaigns), int64(len(campaigns)) * campaignBytes, nil
	})
}

// campaignBytes is the approximate size of a campaign in a pool.
const campaignBytes = 1 << 10

// asOfStart returns the plan in force when the first view of a subject was accepted. If its events are deleted, the
// ledger says when it began.
func (e *Engine) asOfStart(p *plan.Plan, recorded []looks.Record) *plan.Plan {
	if _, viewed := e.firstView(p.Subject); !viewed && len(recorded) > 0 {
		return p.AsOf(recorded[0].FirstDay, recorded[0].FirstDay)
	}
	return e.AsOfFirstView(p)
}

// readState returns the state of a campaign: that of the ledger, or, if it has none, that of the events of a version.
func (e *Engine) readState(
	ctx context.Context, p *plan.Plan, recorded []looks.Record,
) (rows []looks.Row, version uint64, err error) {
	declared := p.DeclaredPlan()
	declaration := looks.DeclarationOf(declared)
	for _, r := range recorded {
		if r.Declaration == declaration && r.GoalID == declared.GoalID && r.Metric == declared.Metric {
			rows = append(rows, r.Row)
		}
	}
	if _, viewed := e.firstView(p.Subject); len(rows) > 0 || !viewed {
		return worth.LatestState(rows), 0, nil
	}
	at, err := e.ReadVersion(ctx, p.Subject)
	if err != nil {
		return nil, 0, err
	}
	found, err := e.judgeAt(ctx, p, at)
	if err != nil {
		return nil, 0, err
	}
	for _, of := range found.Looks.Primary.Rows {
		rows = append(rows, of...)
	}
	rows = worth.LatestState(append(rows, found.Looks.Ends...))
	for i := range rows {
		rows[i].MismatchP = found.Looks.MismatchP // of any full day
	}
	return rows, at.Data, nil
}

// worthVersion returns a number that changes with what a website's campaigns are worth: with the ledger, and with the data
// of imported campaigns.
func (e *Engine) worthVersion(ctx context.Context, website int64) (uint64, error) {
	account, _ := e.catalogue.Snapshot().AccountOfWebsite(website)
	owned := e.catalogue.Snapshot().AccountResources(account)
	version, err := e.Ledger.Version(ctx)
	if err != nil {
		return 0, source.StoreFailure(ctx, err)
	}
	for _, subject := range owned.Subjects() {
		if first, viewed := e.firstView(subject); subject.WebsiteID == website && viewed && first.Imported {
			version ^= e.facts.SubjectCounters(subject).Version
		}
	}
	return version, nil
}
