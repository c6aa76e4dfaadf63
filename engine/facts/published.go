package facts

import (
	"maps"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"
)

// published is the state of the facts that readers take. All its methods may be called concurrently.
type published struct {
	mu       sync.RWMutex // guards the following
	shown    Position     // the last one that is stored
	rebuilt  bool         // the facts were deleted and are folded again: shown and counters are those of before
	fresh    time.Time    // when the last refresh succeeded
	lost     map[schema.Visitor]bool
	wrong    map[schema.Subject]bool // whose cells are not the sums of their visitors
	unread   map[schema.Visitor]bool // some of whose events cannot be read
	counters map[schema.Subject]SubjectCounters
	builder  *Refresher                // that builds the next generation of the facts; nil: none does
	settled  map[schema.Subject]uint64 // attempt that last may have changed sums of a day before its own (UTC)
}

func newPublished() *published {
	return &published{
		lost: map[schema.Visitor]bool{}, wrong: map[schema.Subject]bool{}, unread: map[schema.Visitor]bool{},
		settled: map[schema.Subject]uint64{},
	}
}

// countersOf returns the counters of a subject.
func (p *published) countersOf(subject schema.Subject) SubjectCounters {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.counters[subject]
}

// allCounters returns the counters of all subjects.
func (p *published) allCounters() map[schema.Subject]SubjectCounters {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return maps.Clone(p.counters)
}

// position returns the last position, and whether the facts are being rebuilt since.
func (p *published) position() (shown Position, rebuilt bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.shown, p.rebuilt
}

// lostVisitors returns the number of visitors who were found to have lost events.
func (p *published) lostVisitors() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.lost)
}

// allLost returns the visitors who were found to have lost events.
func (p *published) allLost() map[schema.Visitor]bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return maps.Clone(p.lost)
}

// setBuilder notes which refresher builds the next generation of the facts; nil: none does.
func (p *published) setBuilder(builder *Refresher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.builder = builder
}

// runningBuilder returns the refresher that builds the next generation of the facts; nil: none does.
func (p *published) runningBuilder() *Refresher {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.builder
}

// settledVersion returns a number that changes when sums of a subject on a day before the current one (UTC) may.
func (p *published) settledVersion(of schema.Subject) uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.settled[of]
}

// lag returns the time since the last refresh that succeeded; 0: there was none yet.
func (p *published) lag() time.Duration {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.fresh.IsZero() {
		return 0
	}
	return time.Since(p.fresh)
}

// setFresh notes that a refresh has just succeeded.
func (p *published) setFresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh = time.Now()
}

// setRebuilt notes that the facts are deleted. What is shown stays.
func (p *published) setRebuilt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rebuilt = true
}

// setLost updates the set of visitors who lost events, for the visitors in of. It returns those in lost that were not
// known.
func (p *published) setLost(of, lost map[schema.Visitor]bool) (found []schema.Visitor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range of {
		switch {
		case !lost[v]:
			delete(p.lost, v)
		case !p.lost[v]:
			p.lost[v] = true
			found = append(found, v)
		}
	}
	return found
}

// setWrongCells updates the set of subjects with wrong cells, for the subjects in of. It returns those in wrong that
// were not known.
func (p *published) setWrongCells(of, wrong []schema.Subject) (found []schema.Subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, subject := range of {
		if isWrong := slices.Contains(wrong, subject); isWrong && !p.wrong[subject] {
			found = append(found, subject)
			p.wrong[subject] = true
		} else if !isWrong {
			delete(p.wrong, subject)
		}
	}
	return found
}

// damageOf returns which data of a subject and its website are lost or damaged.
func (p *published) damageOf(of schema.Subject) (d moments.Damage) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	d.WrongSums = p.wrong[of]
	for v := range p.lost {
		if v.WebsiteID == of.WebsiteID {
			d.Lost++
		}
	}
	for v := range p.unread {
		if v.WebsiteID == of.WebsiteID {
			d.Unreadable++
		}
	}
	return d
}

// allDamage returns the numbers of visitors who lost events, of those whose events cannot be read, and of subjects with
// wrong cells.
func (p *published) allDamage() (lost, unreadable, wrong int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.lost), len(p.unread), len(p.wrong)
}

// setUnreadable notes whether the events of visitors can be read. It returns whether that is new of one of them.
func (p *published) setUnreadable(visitors []schema.Visitor, isUnreadable bool) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unread) == 0 && !isUnreadable {
		return false
	}
	for _, v := range visitors {
		isNew = isNew || p.unread[v] != isUnreadable
		if isUnreadable {
			p.unread[v] = true
		} else {
			delete(p.unread, v)
		}
	}
	return isNew
}

// publish makes a stored position and counters visible. changed has the subjects whose counters changed, each with the
// first day whose sums may have. all means that no other subject has facts.
func (p *published) publish(
	at Position, changed map[schema.Subject]int64, counters map[schema.Subject]SubjectCounters, all bool,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rebuilt = false
	p.shown = at
	today := max(fold.DayOf(time.Now().UnixMilli()), fold.DayOf(at.Through))
	for subject, first := range changed {
		if _, has := p.settled[subject]; first < today || !has {
			p.settled[subject] = at.Attempt
		}
	}
	if all {
		p.counters = counters
		return
	}
	for subject := range changed {
		of, has := counters[subject]
		if !has { // a subject without facts takes no memory
			delete(p.counters, subject)
			delete(p.settled, subject)
			continue
		}
		p.counters[subject] = of
	}
}
