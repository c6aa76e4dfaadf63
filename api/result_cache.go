package api

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// version identifies the data of a response. An unknown version equals no
// other.
type version struct {
	catalogue, data uint64
	known           bool
}

func (v version) same(as version) bool { return v.known && v == as }

// entry is the last successful response to a query.
type entry struct {
	body    []byte
	version version
	at      time.Time
}

// resultCache keeps the last successful response to each query, up to a total
// size; least recently used entries are evicted. It also keeps outdated
// responses, which are served when the store is away.
type resultCache struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[string, entry]
	bytes   int64
	limit   int64
	metrics *metrics
}

// overhead is the approximate memory of an entry without its key and body, in
// bytes.
const overhead = 256

func newResultCache(limit int64, m *metrics) *resultCache {
	a := &resultCache{limit: limit, metrics: m}
	lru, err := simplelru.NewLRU(1<<30, func(key string, k entry) { a.bytes -= sizeOf(key, k) })
	if err != nil {
		panic(err) // only for a size below 1
	}
	a.lru = lru
	return a
}

func sizeOf(key string, k entry) int64 { return int64(len(key)+len(k.body)) + overhead }

// get returns the last successful response.
func (a *resultCache) get(key string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lru.Get(key)
}

// add replaces the response of a query, and evicts least recently used entries.
func (a *resultCache) add(key string, k entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lru.Remove(key)
	if size := sizeOf(key, k); size <= a.limit/4 { // a large response must not evict all others
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
