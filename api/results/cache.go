package results

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entry is the last successful body of a query.
type entry struct {
	body    []byte
	version Version
	at      time.Time
}

// cache keeps the last successful body of each query, up to a total size; least
// recently used entries are evicted. It also keeps outdated bodies, which are
// served when the store is away.
type cache struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[string, entry]
	bytes   int64
	limit   int64
	metrics *Metrics
}

// overhead is the approximate memory of an entry without its key and body, in
// bytes.
const overhead = 256

func newCache(limit int64, m *Metrics) *cache {
	a := &cache{limit: limit, metrics: m}
	lru, err := simplelru.NewLRU(1<<30, func(key string, k entry) { a.bytes -= sizeOf(key, k) })
	if err != nil {
		panic(err) // only for a size below 1
	}
	a.lru = lru
	return a
}

func sizeOf(key string, k entry) int64 { return int64(len(key)+len(k.body)) + overhead }

// get returns the last successful body.
func (a *cache) get(key string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lru.Get(key)
}

// add replaces the body of a query, and evicts least recently used entries.
func (a *cache) add(key string, k entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lru.Remove(key)
	if size := sizeOf(key, k); size <= a.limit/4 { // a large body must not evict all others
		a.lru.Add(key, k)
		a.bytes += size
	}
	for a.bytes > a.limit {
		a.lru.RemoveOldest()
		a.metrics.evictions.Inc()
	}
	a.metrics.bytes.Set(float64(a.bytes))
	a.metrics.bodies.Set(float64(a.lru.Len()))
}
