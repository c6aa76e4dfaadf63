// Package cache keeps computed values together with the version of the data from which they were computed.
package cache

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache keeps the last value of each key, up to a total size. It evicts the least recently used values. A value of
// an earlier version stays: it may be served while the store does not answer.
type Cache struct {
	limit int64 // bytes

	mu      sync.Mutex // protects the following
	lru     *simplelru.LRU[any, entry]
	bytes   int64
	evicted int64
}

// entry is a value of a version.
type entry struct {
	version, value any
	bytes          int64
}

// overhead is the approximate memory of an entry without its value, in bytes.
const overhead = 256

// New returns a cache of at most limit bytes; 0: it keeps nothing.
func New(limit int64) *Cache {
	c := &Cache{limit: limit}
	lru, err := simplelru.NewLRU(1<<30, func(_ any, e entry) { c.bytes -= e.bytes })
	if err != nil {
		panic(err) // only for a size below 1
	}
	c.lru = lru
	return c
}

// LastValue returns the last value of a key with its version; nil: there is none.
func (c *Cache) LastValue(key any) (value, version any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, _ := c.lru.Get(key)
	return e.value, e.version
}

// StoreValue replaces the value of a key. bytes is its approximate size. A value larger than a quarter of the limit is
// not kept, because it would evict all others.
func (c *Cache) StoreValue(key, version, value any, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
	bytes += overhead
	if bytes <= c.limit/4 {
		c.lru.Add(key, entry{version, value, bytes})
		c.bytes += bytes
	}
	for c.bytes > c.limit {
		c.lru.RemoveOldest()
		c.evicted++
	}
}

// Usage returns the number of values, their size, and how many were evicted.
func (c *Cache) Usage() (values int, bytes, evicted int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len(), c.bytes, c.evicted
}

// ValueAt returns the value of a key at a version. It calls compute, which also returns the size of the value in bytes,
// unless the cache has it.
func ValueAt[V any](c *Cache, key, version any, compute func() (value V, bytes int64, err error)) (V, error) {
	if last, at := c.LastValue(key); at == version {
		if value, is := last.(V); is {
			return value, nil
		}
	}
	value, bytes, err := compute()
	if err == nil {
		c.StoreValue(key, version, value, bytes)
	}
	return value, err
}
