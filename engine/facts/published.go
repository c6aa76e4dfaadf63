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
	mu       sync.RWMutex            // guards the following
	shown    Position                // the last one that is stored
	rebuilt  bool                    // the facts were deleted and are folded again; what is shown is that of before
	fresh    time.Time               // when the last refresh succeeded
	lost     visitorSet              // who were found to have lost events
	unread   visitorSet              // some of whose events cannot be read
	wrong    map[schema.Subject]bool // whose cells are not the sums of their visitors
	counters map[schema.Subject]SubjectCounters
	builder  *Refresher                // that builds the next generation of the facts; nil: none does
	settled  map[schema.Subject]uint64 // attempt that last may have changed sums of a day before its own (UTC)
}

func newPublished() *published {
	return &published{
		lost: newVisitorSet(), unread: newVisitorSet(), wrong: map[schema.Subject]bool{},
		settled: map[schema.Subject]uint64{},
	}
}

// visitorSet is a set of visitors that knows how many of them each website has, which each report and each item of a
// list asks for.
type visitorSet struct {
	all       map[schema.Visitor]bool
	ofWebsite map[int64]int
}

func newVisitorSet() visitorSet {
	return visitorSet{all: map[schema.Visitor]bool{}, ofWebsite: map[int64]int{}}
}

// set makes a visitor a member or not, and reports whether that is new.
func (s *visitorSet) set(v schema.Visitor, isMember bool) (isNew bool) {
	if s.all[v] == isMember {
		return false
	}
	if isMember {
		s.all[v] = true
		s.ofWebsite[v.WebsiteID]++
		return true
	}
	delete(s.all, v)
	s.ofWebsite[v.WebsiteID]--
	return true
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
	return len(p.lost.all)
}

// allLost returns the visitors who were found to have lost events.
func (p *published) allLost() map[schema.Visitor]bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return maps.Clone(p.lost.all)
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
		if isNew := p.lost.set(v, lost[v]); isNew && lost[v] {
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
	d.Lost = p.lost.ofWebsite[of.WebsiteID]
	d.Unreadable = p.unread.ofWebsite[of.WebsiteID]
	return d
}

// damageCounts are the numbers of visitors and subjects whose data are lost or damaged.
type damageCounts struct{ lost, unreadable, wrong int }

// countDamage returns the numbers of visitors who lost events, of those whose events cannot be read, and of subjects
// with wrong cells.
func (p *published) countDamage() damageCounts {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return damageCounts{lost: len(p.lost.all), unreadable: len(p.unread.all), wrong: len(p.wrong)}
}

// setUnreadable notes whether the events of visitors can be read. It returns whether that is new of one of them.
func (p *published) setUnreadable(visitors []schema.Visitor, isUnreadable bool) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range visitors {
		isNew = p.unread.set(v, isUnreadable) || isNew
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
