package api

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/effects"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/watch"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

	"github.com/gin-gonic/gin"
)

// website is a website without its ignored campaigns.
type website struct {
	catalogue.Website
	Ignored []string       `json:"ignored,omitempty"` // never set
	Status  *websiteStatus `json:"status,omitempty"`
}

// websiteStatus says what is due on a website. Campaigns and experiments are counted as the list groups them.
type websiteStatus struct {
	ToDecide      int            `json:"toDecide"`
	Attention     int            `json:"attention"` // a check has failed
	Running       int            `json:"running"`   // the others that run
	NotStarted    int            `json:"notStarted"`
	Done          int            `json:"done"`
	AtStake       *websiteAmount `json:"atStake"` // a month; nil: nothing, or not known
	Shipped       *websiteAmount `json:"shipped"` // a month; nil: nothing, or not known
	SilentSources []silentSource `json:"silentSources"`
	Undeclared    int            `json:"undeclared"`
	NextLooks     []lookDay      `json:"nextLooks"` // by day
	LastDecision  *lastDecision  `json:"lastDecision"`
	Reason        stats.Reason   `json:"reason,omitempty"` // why something is not known
}

// websiteAmount is a sum of expected values a month of one pool.
type websiteAmount struct {
	Currency string     `json:"currency,omitempty"`
	Expected float64    `json:"expected"`
	Interval [2]float64 `json:"interval"`
}

// silentSource is a source that was heard since the start of the process, and not for a day.
type silentSource struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// lookDay is a day with looks.
type lookDay struct {
	Day   string `json:"day"` // UTC
	Count int    `json:"count"`
}

// lastDecision is the latest decision of a look or of a day.
type lastDecision struct {
	At   time.Time `json:"at"`
	Name string    `json:"name"`
}

// silentAfter is how long a source sends nothing until it is silent.
const silentAfter = 24 * time.Hour

// listWebsites returns all websites that the token may read, on one page.
func (s *API) listWebsites(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "include")
	withStatus := p.OneOf("include", []string{"status"}) != ""
	if err := p.Err(); err != nil {
		return nil, err
	}
	owned, bound := s.accountResources(c)
	list := []website{}
	for _, w := range catalogue.ByID(owned.Websites) {
		if bound == 0 || bound == w.ID {
			list = append(list, website{Website: w})
		}
	}
	c.Header("X-Total-Count", strconv.Itoa(len(list)))
	if !withStatus {
		return list, nil
	}
	ctx := c.Request.Context()
	undeclared, err := s.countUndeclared(ctx, owned)
	if err != nil {
		return nil, err
	}
	for i := range list {
		of, err := s.readWebsiteStatus(ctx, owned, list[i].ID)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		of.Undeclared = undeclared[list[i].ID]
		list[i].Status = of
	}
	return list, nil
}

// countUndeclared returns the numbers of campaigns that arrived and are not declared, by website.
func (s *API) countUndeclared(ctx context.Context, owned *catalogue.AccountResources) (map[int64]int, error) {
	all, err := s.Engine.Discover(ctx, owned)
	count := map[int64]int{}
	for i := range all {
		count[all[i].WebsiteID]++
	}
	return count, source.StoreFailure(ctx, err)
}

// readWebsiteStatus returns the status of a website from what is kept. It computes no report.
func (s *API) readWebsiteStatus(
	ctx context.Context, owned *catalogue.AccountResources, id int64,
) (*websiteStatus, error) {
	now := time.Now()
	status := &websiteStatus{NextLooks: []lookDay{}, SilentSources: s.silentSources(owned.ID, id, now)}
	subjects := slices.DeleteFunc(owned.Subjects(), func(of schema.Subject) bool { return of.WebsiteID != id })
	slices.SortFunc(subjects, schema.Subject.Compare)
	days := map[string]int{}
	pools := map[worth.PoolKey]*stake{}
	for i, summary := range s.Summaries.LastSummaries(ctx, owned.ID, subjects) {
		of := subjects[i]
		item := newBulkItem(owned, of)
		listed := summary.ListedStatus(*item.Active)
		status.count(&item, listed)
		if summary == nil {
			status.Reason = listed.Reason
			continue
		}
		if next := summary.Status.NextLook; next != nil && *item.Active && next.End.After(now) {
			days[next.End.Add(-1).UTC().Format(time.DateOnly)]++
		}
		status.noteDecision(&item, listed.Decision)
		if err := s.addStake(ctx, pools, &item, summary); err != nil {
			return nil, err
		}
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		status.NextLooks = append(status.NextLooks, lookDay{day, days[day]})
	}
	return status, s.setAmounts(ctx, status, pools, owned.Websites[id].Currency)
}

// decidedStatuses are the decisions with which something is to be done.
var decidedStatuses = []result.DecisionStatus{
	result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference, result.DecisionNoWinner,
}

// count adds a campaign or an experiment to its group.
func (w *websiteStatus) count(item *bulkItem, listed *result.ListedStatus) {
	decision := result.DecisionStatus("")
	if listed.Decision != nil {
		decision = listed.Decision.Status
	}
	switch {
	case !*item.Active && item.StartDate != nil:
		w.Done++
	case !*item.Active:
		w.NotStarted++
	case listed.NeedsAttention():
		w.Attention++
	case slices.Contains(decidedStatuses, decision):
		w.ToDecide++
	default:
		w.Running++
	}
}

// noteDecision keeps the latest decision.
func (w *websiteStatus) noteDecision(item *bulkItem, decision *result.Decision) {
	if decision == nil || decision.DecidedAt == nil {
		return
	}
	if w.LastDecision == nil || decision.DecidedAt.After(w.LastDecision.At) {
		w.LastDecision = &lastDecision{At: decision.DecidedAt.UTC(), Name: item.Name}
	}
}

// silentSources returns the sources of a website that are silent; nil: none was heard since the start of the process.
func (s *API) silentSources(account, id int64, now time.Time) []silentSource {
	var found []silentSource
	for _, token := range s.Catalogue.Snapshot().AccountTokens(account) {
		last := s.CountsOf(&token).LastRequest
		if token.WebsiteID != id || last == nil {
			continue
		}
		if found == nil {
			found = []silentSource{}
		}
		if now.Sub(*last) > silentAfter {
			found = append(found, silentSource{token.Name, last.UTC()})
		}
	}
	return found
}

// stake is what the variations of a pool are worth whose decision is ship and which nobody has shipped.
type stake struct {
	variations   int
	expected     float64
	below, above float64 // squares of the distances to the ends of the intervals
}

// addStake adds what the variation of a decision is worth to its pool.
func (s *API) addStake(
	ctx context.Context, pools map[worth.PoolKey]*stake, item *bulkItem, summary *watch.Summary,
) error {
	if summary.Plan == nil {
		return nil
	}
	key := worth.PoolOf(summary.Plan)
	if pools[key] == nil {
		pools[key] = &stake{}
	}
	decision := summary.Status.Decision
	isCarriedOut := item.Outcome != nil && item.Outcome.Outcome == catalogue.Shipped
	isShip := decision != nil && decision.Status == result.DecisionShip && decision.VariationID != nil
	if !isShip || isCarriedOut {
		return nil
	}
	found, isKept, err := s.Engine.LastWorth(ctx, summary.Plan, summary.WorthReason)
	if err != nil || !isKept || found == nil {
		return err
	}
	for i := range found.Items {
		of := &found.Items[i]
		if of.VariationID == *decision.VariationID && of.Expected != nil && of.Expected.ValuePerMonth != nil {
			pools[key].add(of.Expected.ValuePerMonth)
		}
	}
	return nil
}

// add adds an estimate. Means are added, and variances.
func (s *stake) add(e *effects.Estimate) {
	s.variations++
	s.expected += e.Value
	s.below += (e.Value - e.Interval[0]) * (e.Value - e.Interval[0])
	s.above += (e.Interval[1] - e.Value) * (e.Interval[1] - e.Value)
}

// setAmounts sets the amounts of the pool with most variations at stake, or else of the one with most worth shipped:
// amounts of different pools are not added.
func (s *API) setAmounts(
	ctx context.Context, status *websiteStatus, pools map[worth.PoolKey]*stake, currency string,
) error {
	keys := slices.SortedFunc(maps.Keys(pools), func(a, b worth.PoolKey) int {
		return cmp.Or(cmp.Compare(pools[b].variations, pools[a].variations), cmp.Compare(pools[b].expected,
			pools[a].expected), cmp.Compare(a.GoalID, b.GoalID), cmp.Compare(a.Metric, b.Metric))
	})
	for i, key := range keys {
		of := pools[key]
		if i == 0 && of.variations > 0 {
			status.AtStake = &websiteAmount{currency, of.expected, [2]float64{
				of.expected - math.Sqrt(of.below), of.expected + math.Sqrt(of.above),
			}}
		}
		total, err := s.Engine.LastTotal(ctx, key)
		if err != nil {
			return err
		}
		if total == nil {
			status.Reason = cmp.Or(status.Reason, result.ReasonNotComputed)
			s.computePool(ctx, key)
			continue
		}
		if sum := total.ValuePerMonth; sum != nil && (status.Shipped == nil || sum.Expected > status.Shipped.Expected) {
			status.Shipped = &websiteAmount{currency, sum.Expected, sum.Interval}
		}
	}
	return nil
}

// computePool computes a pool in the background, for the next request.
func (s *API) computePool(ctx context.Context, key worth.PoolKey) {
	if _, runs := s.pools.LoadOrStore(key, true); runs {
		return
	}
	go func() {
		defer s.pools.Delete(key)
		_, err := results.RunAdmitted(context.WithoutCancel(ctx), s.results,
			func(ctx context.Context) (*worth.Pool, error) { return s.Engine.ReadPool(ctx, key) })
		if err != nil {
			slog.WarnContext(ctx, "the worth of a website was not computed", "website", key.WebsiteID, "err", err)
		}
	}()
}
