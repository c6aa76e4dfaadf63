package facts

import (
	"sync"
	"time"
)

// backlog knows which accepted events wait to be folded, and how the refreshes that fold them proceed. All its methods
// may be called concurrently.
type backlog struct {
	mu sync.Mutex // guards the following
	// last acceptance times of the noted and of the folded events, in milliseconds since 1970
	noted, folded int64
	running       int           // number of refreshes that have begun and not ended; one at a time proceeds
	began         time.Time     // when the first of them began
	refreshes     int           // number of those that have ended
	failed        error         // of the last one
	isLate        bool          // a report did not wait any longer, and its events are not folded yet
	changed       chan struct{} // closed when a refresh ends
	foldingAll    Progress      // of the running fold of all visitors
}

func newBacklog() *backlog { return &backlog{changed: make(chan struct{})} }

// note notes that events were accepted at a time.
func (b *backlog) note(accepted int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted = accepted
}

// isSlow reports whether the running refresh takes longer than a report waits. The caller must hold mu.
func (b *backlog) isSlow(longest time.Duration) bool {
	return b.running > 0 && time.Since(b.began) > longest
}

// backlogAt is what the backlog had when a report asked for the facts.
type backlogAt struct {
	noted     int64
	refreshes int
	waits     bool // events wait, or a refresh takes longer than a report waits
}

// start returns the backlog of the moment.
func (b *backlog) start(longest time.Duration) backlogAt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return backlogAt{b.noted, b.refreshes, b.noted > b.folded || b.isSlow(longest)}
}

// backlogState says whether a report may begin.
type backlogState struct {
	isFolded bool            // the events that were noted when the report asked are folded
	failed   error           // of the last refresh; nil: it has not failed since then
	isLate   bool            // the report must not wait any longer
	changed  <-chan struct{} // closed when a refresh ends
}

// check returns the state for a report that asked at a moment. isConverted says that the facts have the declared
// currencies.
func (b *backlog) check(since backlogAt, isConverted bool, longest time.Duration) backlogState {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := backlogState{isFolded: b.folded >= since.noted && isConverted, changed: b.changed}
	isNewFailure := b.isLate || now.isFolded || b.refreshes > since.refreshes
	if isNewFailure {
		now.failed = b.failed
	}
	isTooLate := b.isLate && !now.isFolded
	now.isLate = isTooLate || b.isSlow(longest)
	b.isLate = now.isLate && !now.isFolded
	return now
}

// expire notes that a report that asked at a moment does not wait any longer.
func (b *backlog) expire(since backlogAt, isConverted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isLate = b.folded < since.noted || !isConverted
}

// begin notes that a refresh begins. It returns the acceptance time up to which events are noted.
func (b *backlog) begin() (noted int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == 0 {
		b.began = time.Now()
	}
	b.running++
	return b.noted
}

// abandon notes that a refresh has ended because its context has.
func (b *backlog) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
}

// end notes that a refresh has ended. Without an error, it has folded all events up to noted.
func (b *backlog) end(noted int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	b.failed = err
	if err == nil {
		b.folded = max(b.folded, noted)
		b.isLate = b.isLate && b.folded < b.noted
	}
	b.refreshes++
	close(b.changed)
	b.changed = make(chan struct{})
}

// setProgress notes how many events the running fold of all visitors has folded, of how many.
func (b *backlog) setProgress(done, all int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.foldingAll.All == 0 {
		b.foldingAll = Progress{Began: time.Now(), From: done}
	}
	b.foldingAll.Done = min(done, all)
	b.foldingAll.All = all
}

// endProgress notes that no fold of all visitors runs any more.
func (b *backlog) endProgress() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.foldingAll = Progress{}
}

// Progress says how far a fold of all events is. The zero Progress means that none runs.
type Progress struct {
	Done, All int64     // events, copies included
	Began     time.Time // when this process began
	From      int64     // Done when it began
	IsRebuild bool      // the facts are rebuilt; reports read the present ones until that is complete
}

// Share returns the share of the events that are folded; 1: no fold of all events runs.
func (p Progress) Share() float64 {
	if p.All == 0 {
		return 1
	}
	return float64(p.Done) / float64(p.All)
}

// Left returns how long the rest will take at the rate so far. It returns false until the rate is known.
func (p Progress) Left() (time.Duration, bool) {
	if p.Done <= p.From {
		return 0, false
	}
	return time.Duration(float64(time.Since(p.Began)) * float64(p.All-p.Done) / float64(p.Done-p.From)), true
}

// progress returns how far the running fold of all visitors is.
func (b *backlog) progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.foldingAll
}
