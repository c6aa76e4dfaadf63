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
	done, touched int           // visitors of the running refresh: those that are folded, and all
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

// setProgress notes how many visitors the running refresh has folded, of how many.
func (b *backlog) setProgress(done, touched int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.touched = done, touched
}

// progress returns how many visitors the running refresh has folded, of how many.
func (b *backlog) progress() (done, touched int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done, b.touched
}
