package api

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// version is of all that an answer depends on. Not known is equal to nothing.
type version struct {
	catalogue, data uint64
	known           bool
}

func (v version) same(as version) bool { return v.known && v == as }

// kept is the last good answer to a question.
type entry struct {
	body    []byte
	version version
	at      time.Time
}

// answers keeps the last good answer to each question, the most recently used
// of them, within a bound of bytes. An answer that is out of date is kept too:
// it is better than none when the store is away.
type resultCache struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[string, entry]
	bytes   int64
	limit   int64
	metrics *metrics
}

// overhead is about what an entry takes beside its key and body.
const overhead = 256

func newResultCache(limit int64, m *metrics) *resultCache {
	a := &resultCache{limit: limit, metrics: m}
	lru, err := simplelru.NewLRU(1<<30, func(key string, k entry) { a.bytes -= sizeOf(key, k) })
	if err != nil {
		panic(err) // for a size below 1 only
	}
	a.lru = lru
	return a
}

func sizeOf(key string, k entry) int64 { return int64(len(key)+len(k.body)) + overhead }

// get returns the last good answer.
func (a *resultCache) get(key string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lru.Get(key)
}

// add keeps an answer in place of the one before, and drops those that were
// asked for longest ago.
func (a *resultCache) add(key string, k entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lru.Remove(key)
	if size := sizeOf(key, k); size <= a.limit/4 { // one answer does not drive out the rest
		a.lru.Add(key, k)
		a.bytes += size
	}
	for a.bytes > a.limit {
		a.lru.RemoveOldest()
		a.metrics.evictions.Inc()
	}
	a.metrics.keptBytes.Set(float64(a.bytes))
	a.metrics.keptAnswers.Set(float64(a.lru.Len()))
}
