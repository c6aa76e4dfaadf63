package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
)

// maxDescribed is the maximum number of cached descriptions, about 3 KB each.
const maxDescribed = 100

// described caches the descriptions of tables. The driver describes the table before each
// INSERT. This takes the engine 2 ms of CPU time, as much as a small INSERT.
type described struct {
	mu      sync.Mutex
	changes uint64            // statements that may have changed a table
	answers map[string][]byte // by key
}

var (
	describes = regexp.MustCompile(`(?is)^\s*DESCRIBE\s+TABLE\b`)
	// harmless matches statements that change no table. Any other statement may change tables.
	harmless = regexp.MustCompile(`(?is)^[\s(]*(SELECT|WITH|FROM|INSERT|DESCRIBE|DESC|SHOW|EXPLAIN|KILL|EXISTS|CHECK|OPTIMIZE|SET|USE)\b`)
)

// keyOf returns the cache key of a statement that describes a table, or false for other
// statements. The key omits the time limit, which varies but does not affect the answer.
func (d *described) keyOf(q *request) (string, bool) {
	if len(q.sql) > 1000 || q.rows != nil || !describes.MatchString(q.sql) {
		return "", false
	}
	key := fmt.Sprintf("%q %q %q %q", q.database, q.sql, q.format, q.parameters)
	for _, name := range slices.Sorted(maps.Keys(q.settings)) {
		if name != "max_execution_time" {
			key += fmt.Sprintf(" %q %q", name, q.settings[name])
		}
	}
	return key, true
}

// cachedAnswer returns the cached answer and the number of changes so far.
func (d *described) cachedAnswer(key string) ([]byte, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answers[key], d.changes
}

// storeAnswer keeps an answer unless a table may have changed since cachedAnswer returned the number of
// changes.
func (d *described) storeAnswer(key string, answer []byte, changes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes != changes {
		return
	}
	if d.answers == nil || len(d.answers) >= maxDescribed {
		d.answers = map[string][]byte{}
	}
	d.answers[key] = answer
}

// runAndInvalidate calls run, and drops all cached answers if the statement may change a table. It drops them
// before run, because later statements must not get an old answer. It drops them again after run, because
// another statement may have stored an answer while run was active.
func (d *described) runAndInvalidate(sql string, run func() error) error {
	if harmless.MatchString(skipComments(sql)) {
		return run()
	}
	d.dropAnswers()
	defer d.dropAnswers()
	return run()
}

func (d *described) dropAnswers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.answers = nil
}

// describeTable responds with the description of a table.
func (t *transport) describeTable(r *http.Request, q *request, key string) (*http.Response, error) {
	kept, changes := t.engine.described.cachedAnswer(key)
	if kept != nil {
		return newResponse(r, http.StatusOK, io.NopCloser(bytes.NewReader(kept))), nil
	}
	resp, err := t.respondToRequest(r, q)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if len(answer) > 0 {
		t.engine.described.storeAnswer(key, answer, changes)
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}
