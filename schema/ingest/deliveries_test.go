package ingest_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func TestDeliveriesBindKeys(t *testing.T) {
	conn := schematest.Open(t)
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	for i, c := range []struct {
		website int64
		key     string
		body    [sha256.Size]byte
		want    error
	}{
		{1, "k", a, nil},
		{1, "k", a, nil},
		{1, "k", b, ingest.ErrKeyReused},
		{2, "k", b, nil},
		{1, "K'\\\t{x:String}", b, nil},
		{1, "K'\\\t{x:String}", a, ingest.ErrKeyReused},
	} {
		d := ingest.NewDeliveries(conn) // like after a restart
		if err := d.Bind(t.Context(), c.website, c.key, c.body); !errors.Is(err, c.want) {
			t.Errorf("case %d: %v, want %v", i, err, c.want)
		}
	}
}

func TestConcurrentBodiesWithOneKey(t *testing.T) {
	d := ingest.NewDeliveries(schematest.Open(t))
	var taken atomic.Int64
	var senders sync.WaitGroup
	for i := range 20 {
		senders.Go(func() {
			switch err := d.Bind(t.Context(), 1, "k", sha256.Sum256(fmt.Append(nil, i))); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, ingest.ErrKeyReused):
				t.Error(err)
			}
		})
	}
	senders.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d bodies were accepted with one key", taken.Load())
	}
}
