package rollup

import "time"

// Lag returns the longest time that events of a subject have been waiting for a
// refresh. Events that wait because nobody watches their subject do not count.
func (x *Index) Lag() time.Duration {
	var most time.Duration
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !x.refreshes.Load() {
		return 0
	}
	for subject, since := range x.waiting {
		if d := x.candidate(subject); d == nil || !x.waitsUnwatched(d) {
			most = max(most, time.Since(since))
		}
	}
	return most
}

// Refused returns the number of refreshes that were refused because events were being deleted.
func (x *Index) Refused() uint64 { return x.refused.Load() }

// Lost returns the number of refreshes without effect because another process did the same.
func (x *Index) Lost() uint64 { return x.lost.Load() }

// Unusable returns the number of refreshes that were refused because of a RestoredError.
func (x *Index) Unusable() uint64 { return x.unusable.Load() }
