package rollup_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"lifthouse/schema/schematest"
)

// TestActivity checks who refreshed the rollups of a server, and a removal that has not ended.
func TestActivity(t *testing.T) {
	began := time.Now().Add(-time.Second)
	s := newProcess(t, 51, schematest.Server(t).Open(t))
	if a, err := s.engine.Rollups.Activity(t.Context()); err != nil || a.RefreshedBy != "" || a.Removals != 0 {
		t.Fatal(a, err)
	}
	s.more(50)
	s.refresh()
	end, err := s.engine.Rollups.BeginRemoval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	machine, _ := os.Hostname()
	me := fmt.Sprint(machine, ":", os.Getpid())
	a, err := s.engine.Rollups.Activity(t.Context())
	if err != nil || a.RefreshedBy != me || a.Refreshed.Before(began) || a.Removals != 1 || a.BegunBy != me || a.Began.Before(a.Refreshed) {
		t.Errorf("%+v, %v", a, err)
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := s.engine.Rollups.Activity(t.Context()); err != nil || a.Removals != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := newShop(t, 1).engine.Rollups.Activity(t.Context()); a != nil || err != nil {
		t.Errorf("an embedded store: %+v, %v", a, err)
	}
}
