package rollup

import (
	"sync"
	"time"

	"lifthouse/engine/plan"
)

// A refresh costs some 40 ms of CPU, however few events it adds. So a few events of a subject
// are added soon only while its reports are watched. Otherwise they wait for more events, or
// for something that reads them, which adds them first.

// watchedFor is the time for which a subject is watched after a report. Pages that poll ask
// more often.
const watchedFor = time.Minute

// watched has the time of the last report of each subject.
type watched struct {
	mu sync.Mutex
	at map[plan.Subject]time.Time
}

// note records a report of the subject.
func (w *watched) note(subject plan.Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = map[plan.Subject]time.Time{}
	}
	w.at[subject] = time.Now()
}

// is reports whether the subject is watched.
func (w *watched) is(subject plan.Subject) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.at[subject]) < watchedFor
}

// postpones reports whether a few events of subjects that nobody watches wait. Where other
// processes write to the store, only a recent refresh shows that there are no more.
func (x *Index) postpones() bool { return x.shared == nil && x.refreshes.Load() }

// Postponed reports whether a few events of the subject have waited for at least the given
// time because nobody watches it.
func (x *Index) Postponed(subject plan.Subject, atLeast time.Duration) bool {
	if !x.postpones() || x.HasAll(subject) {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	since, waits := x.waiting[subject]
	if !waits || time.Since(since) < atLeast {
		return false
	}
	d := x.candidate(subject)
	return d != nil && x.waitsUnwatched(d)
}

// waitsUnwatched reports whether a backlog waits because nobody watches its subject.
func (x *Index) waitsUnwatched(d *backlog) bool {
	return x.postpones() && d.isSmall() && !x.watched.is(d.subject)
}

// lacksUnwatched reports whether the rollup of a subject that nobody watches lacks at most a few
// events.
func (x *Index) lacksUnwatched(subject plan.Subject, is *State) bool {
	if !x.postpones() || x.watched.is(subject) {
		return false
	}
	stored, _ := x.totals.Last(subject)
	return stored.Events <= is.Events+fewEvents
}
