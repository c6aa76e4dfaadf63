package watch

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/cache"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Summary is the report of the declared question of a campaign or an experiment, with its scorecard. It depends on the
// data and the definition of the subject only: what the treatments are worth, which depends on other campaigns, and the
// clock are added when it is shown.
type Summary struct {
	*render.LastingReport

	Plan        *plan.Plan      // in force; nil: there is nothing to compare
	Status      *result.Status  // for lists
	Figures     *result.Figures // that the JSON does not have
	WorthReason stats.Reason
	LastWorth   atomic.Pointer[[]byte] // JSON of what the treatments were worth at last; nil: not shown yet
}

// ListedStatus returns the status of a running or stopped subject in a list. A nil summary is not computed yet.
func (s *Summary) ListedStatus(running bool) *result.ListedStatus {
	if s == nil {
		return result.NewListedStatus(nil, running)
	}
	return result.NewListedStatus(s.Status, running)
}

// NewSummary returns the summary of the report of a plan in force.
func NewSummary(p *plan.Plan, report *result.Report) (*Summary, error) {
	lasting, err := render.NewLastingReport(report)
	if report.Scorecard == nil { // there is nothing to compare
		return &Summary{LastingReport: lasting, Figures: &result.Figures{}, Status: result.NewStatus(nil)}, err
	}
	return &Summary{
		LastingReport: lasting, Plan: p, Status: result.NewStatus(report), Figures: report.ScorecardFigures(),
		WorthReason: report.WorthReason,
	}, err
}

// Summaries keeps the summary of each subject, and computes new ones when they are asked for, or in the background.
type Summaries struct {
	engine    *engine.Engine
	catalogue *catalogue.Catalogue
	kept      *cache.Cache
	queue     chan SummaryKey

	mu       sync.Mutex // guards the following
	queued   map[SummaryKey]bool
	computed map[SummaryKey]chan struct{} // is closed when the computation that runs ends
}

// SummaryKey identifies the summary of a subject of an account.
type SummaryKey struct {
	AccountID int64
	Subject   schema.Subject
}

const (
	// summaryMemory bounds the memory of the summaries: about 5,000 subjects of 11 to 20 KiB each. Of more, those that
	// were least recently used are computed when they are asked for.
	summaryMemory = 96 << 20
	// planBytes is the approximate size of a summary without its report.
	planBytes = 4 << 10
	// maxQueued bounds the number of summaries that wait to be computed in the background.
	maxQueued = 20_000
)

// NewSummaries returns the summaries of the subjects of a store.
func NewSummaries(e *engine.Engine, c *catalogue.Catalogue) *Summaries {
	return &Summaries{
		engine: e, catalogue: c, kept: cache.New(summaryMemory), queue: make(chan SummaryKey, maxQueued),
		queued: map[SummaryKey]bool{}, computed: map[SummaryKey]chan struct{}{},
	}
}

// Usage returns the number of summaries, their size in bytes, and how many were evicted.
func (s *Summaries) Usage() (values int, bytes, evicted int64) { return s.kept.Usage() }

// SummaryVersion is the version of all that a summary depends on.
type SummaryVersion struct {
	catalogue, data, recorded uint64
	prior                     string
	damage                    moments.Damage
}

// SummaryVersionOf returns the version of the summary of a subject whose data have a version.
func SummaryVersionOf(
	owned *catalogue.AccountResources, subject schema.Subject, data *engine.Version,
) SummaryVersion {
	return SummaryVersion{owned.SubjectVersion(subject), data.Data, data.Recorded, data.Prior, data.Damage}
}

// LastSummary returns the last summary of a subject with its version; nil: it was never computed.
func (s *Summaries) LastSummary(key SummaryKey) (*Summary, SummaryVersion) {
	last, madeFrom := s.kept.LastValue(key)
	found, _ := last.(*Summary)
	version, _ := madeFrom.(SummaryVersion)
	return found, version
}

// LastSummaries returns the last summary of each subject at once; nil: it was never computed. If the data or the
// definition of a subject has changed, its summary is outdated. In both cases, FollowQueue computes a new one.
func (s *Summaries) LastSummaries(ctx context.Context, account int64, subjects []schema.Subject) []*Summary {
	owned := s.catalogue.Snapshot().AccountResources(account)
	found := make([]*Summary, len(subjects))
	for i, data := range s.engine.LastVersions(ctx, subjects) {
		key := SummaryKey{account, subjects[i]}
		last, madeFrom := s.LastSummary(key)
		found[i] = last
		current := SummaryVersionOf(owned, subjects[i], &data)
		current.prior = madeFrom.prior // finding the prior that it learns would take time
		if data.Known && (last == nil || madeFrom != current) {
			s.addToQueue(key)
		}
	}
	return found
}

// addToQueue makes FollowQueue compute a summary, unless too many wait.
func (s *Summaries) addToQueue(key SummaryKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued[key] {
		return
	}
	select {
	case s.queue <- key:
		s.queued[key] = true
	default:
	}
}

// FollowQueue computes the requested summaries until the context ends.
func (s *Summaries) FollowQueue(ctx context.Context) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				select {
				case key := <-s.queue:
					var gone *query.NotFoundError
					if err := s.computeQueued(ctx, key); err != nil && ctx.Err() == nil && !errors.As(err, &gone) {
						slog.WarnContext(ctx, "compute summary failed", "subject", key.Subject, "err", err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// computeQueued computes and keeps the summary of a queued subject. If the store does not answer, it keeps none, and
// the next list request tries again.
func (s *Summaries) computeQueued(ctx context.Context, key SummaryKey) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.mu.Lock()
	delete(s.queued, key) // a later change is queued again
	s.mu.Unlock()
	return s.renewSummary(ctx, key)
}

// renewSummary computes and keeps the current summary of a subject. A summary that was computed without a look that is
// recorded by now is computed again.
func (s *Summaries) renewSummary(ctx context.Context, key SummaryKey) error {
	for {
		owned := s.catalogue.Snapshot().AccountResources(key.AccountID)
		versions, _, err := s.engine.ReadVersions(ctx, owned, []schema.Subject{key.Subject})
		if err != nil {
			return err
		}
		if _, err := s.FindSummary(ctx, owned, key, versions[0]); err != nil {
			return err
		}
		last := s.engine.LastVersions(ctx, []schema.Subject{key.Subject})[0]
		if !last.Known || last.Recorded == versions[0].Recorded {
			return nil
		}
	}
}

// FindSummary returns the summary of a subject at a version of its data, or of newer data. It computes it unless it is
// kept, or waits for another computation of it.
func (s *Summaries) FindSummary(
	ctx context.Context, owned *catalogue.AccountResources, key SummaryKey, data engine.Version,
) (*Summary, error) {
	version := SummaryVersionOf(owned, key.Subject, &data)
	for {
		if last, madeFrom := s.LastSummary(key); last != nil && madeFrom == version {
			return last, nil
		}
		s.mu.Lock()
		running, isRunning := s.computed[key]
		if !isRunning {
			s.computed[key] = make(chan struct{})
		}
		s.mu.Unlock()
		if !isRunning {
			return s.computeSummary(ctx, owned, key, data)
		}
		select {
		case <-running: // perhaps at another version
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// computeSummary computes and keeps the summary of a subject. No other computation of it may run.
func (s *Summaries) computeSummary(
	ctx context.Context, owned *catalogue.AccountResources, key SummaryKey, data engine.Version,
) (*Summary, error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.computed[key])
		delete(s.computed, key)
	}()
	request := plan.ResultsRequest(key.AccountID, key.Subject)
	request.Scorecard = true
	p, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	p, err = s.engine.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	data.Waiting = moments.Waiting{} // it is about the data of the version, whatever waits
	report, err := s.engine.ComputeReportAt(ctx, p, data)
	if err != nil {
		return nil, err
	}
	found, err := NewSummary(p, report)
	if err != nil {
		return nil, err
	}
	size := planBytes + int64(found.Size()+found.Figures.Size())
	s.kept.StoreValue(key, SummaryVersionOf(owned, key.Subject, &data), found, size)
	return found, nil
}

// Bulk is a request for the summaries of several subjects of an account at versions of their data.
type Bulk struct {
	Owned    *catalogue.AccountResources
	Subjects []schema.Subject
	Versions []engine.Version
	// Admit returns when summaries may be computed, and leave ends that. It is not called if all are kept.
	Admit func(context.Context) (leave func(), err error)
	// BeforeWait is called before each wait for a summary that is not ready; nil: nothing is.
	BeforeWait func()
}

// AwaitSummaries returns the summaries of a request in order, each as soon as it and the ones before are ready. It
// computes those that are not kept on all cores. What was computed stays if the context ends, so that a repeated
// request goes on from there. An error ends the sequence.
func (s *Summaries) AwaitSummaries(ctx context.Context, b Bulk) iter.Seq2[*Summary, error] {
	return func(yield func(*Summary, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		found := make([]*Summary, len(b.Subjects))
		var missing []int
		for i, subject := range b.Subjects {
			last, madeFrom := s.LastSummary(SummaryKey{b.Owned.ID, subject})
			if last != nil && madeFrom == SummaryVersionOf(b.Owned, subject, &b.Versions[i]) {
				found[i] = last
				continue
			}
			missing = append(missing, i)
		}
		ready, workers := s.computeMissing(ctx, b, missing, found)
		defer workers.Wait()
		defer cancel()
		for i := range found {
			if at, isMissing := slices.BinarySearch(missing, i); isMissing {
				if err := awaitOne(ctx, ready[at], b.BeforeWait); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(found[i], nil) {
				return
			}
		}
	}
}

// awaitOne waits until a summary is ready. beforeWait is called if it is not; nil: nothing is.
func awaitOne(ctx context.Context, ready <-chan error, beforeWait func()) error {
	select {
	case err := <-ready:
		return err
	default:
	}
	if beforeWait != nil {
		beforeWait()
	}
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// computeMissing computes the summaries of some subjects of a request in the background, in order. Each sends its
// error, or nil, when it is in found.
func (s *Summaries) computeMissing(
	ctx context.Context, b Bulk, missing []int, found []*Summary,
) (ready []chan error, workers *sync.WaitGroup) {
	workers = &sync.WaitGroup{}
	for range missing {
		ready = append(ready, make(chan error, 1))
	}
	if len(missing) == 0 {
		return ready, workers
	}
	workers.Go(func() {
		leave, err := b.Admit(ctx)
		if err != nil {
			for _, one := range ready {
				one <- err
			}
			return
		}
		defer leave()
		var next atomic.Int64
		var all sync.WaitGroup
		for range min(len(missing), runtime.GOMAXPROCS(0)) {
			all.Go(func() {
				for at := next.Add(1) - 1; int(at) < len(missing) && ctx.Err() == nil; at = next.Add(1) - 1 {
					i := missing[at]
					var err error
					found[i], err = s.FindSummary(ctx, b.Owned, SummaryKey{b.Owned.ID, b.Subjects[i]}, b.Versions[i])
					ready[at] <- err
				}
			})
		}
		all.Wait()
	})
	return ready, workers
}
