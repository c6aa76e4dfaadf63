package source

import (
	"sync"

	"lifthouse/engine/visit"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxCaps is the maximum number of limits that are kept, a few dozen bytes each.
const maxCaps = 1000

// caps keeps the limits of percentiles, which are the same for all filters, cells and
// points of a report while its events do not change.
type caps struct {
	mu     sync.Mutex
	limits *simplelru.LRU[string, *visit.Cap]
}

// KeptCap returns the limit that was kept under a key, or nil.
func (s *Store) KeptCap(key string) *visit.Cap {
	s.caps.mu.Lock()
	defer s.caps.mu.Unlock()
	if s.caps.limits == nil {
		return nil
	}
	limit, _ := s.caps.limits.Get(key)
	return limit
}

// KeepCap keeps a limit under a key, which must change with the events.
func (s *Store) KeepCap(key string, limit *visit.Cap) {
	s.caps.mu.Lock()
	defer s.caps.mu.Unlock()
	if s.caps.limits == nil {
		limits, err := simplelru.NewLRU[string, *visit.Cap](maxCaps, nil)
		if err != nil {
			panic(err) // only for a size below 1
		}
		s.caps.limits = limits
	}
	s.caps.limits.Add(key, limit)
}
