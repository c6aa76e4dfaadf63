package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func TestVersionChangesWithTheSubjectsDataAlone(t *testing.T) {
	conn := schematest.Open(t)
	e := New(conn, nil, source.DefaultLimits)
	writer := ingest.NewWriter(conn)
	one, two := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}, plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 13}
	write := func(id uint64, campaign int64) {
		t.Helper()
		event := schema.Event{EventID: id, Time: time.Unix(1_700_000_000, 0), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: campaign, VisitorID: id, Kind: schema.KindView}
		if _, err := writer.Write(t.Context(), []schema.Event{event}); err != nil {
			t.Fatal(err)
		}
	}
	version := func(of plan.Subject) uint64 {
		t.Helper()
		if err := e.Totals.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, known := e.Version(t.Context(), of)
		if !known {
			t.Fatal("the version is not known")
		}
		return v
	}
	if v := version(one); v != 0 {
		t.Errorf("without events %d, want 0", v)
	}
	write(1, 12)
	first := version(one)
	write(2, 13)
	if v := version(one); v != first || v == 0 || version(two) == 0 {
		t.Errorf("%d, was %d: another subject's event changed it", v, first)
	}
	write(3, 12)
	if version(one) == first {
		t.Error("an event did not change it")
	}
	second := version(one)
	write(3, 12) // again
	if version(one) != second {
		t.Error("a duplicate changed it")
	}
	again := New(conn, nil, source.DefaultLimits)
	if v, known := again.Version(t.Context(), one); !known || v != second {
		t.Errorf("another server says %d, %v; want %d", v, known, second)
	}
	if err := conn.Exec(t.Context(), "RENAME TABLE subject_stats TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, known := New(conn, nil, source.DefaultLimits).Version(t.Context(), one); known {
		t.Error("a store without its tables knows a version")
	}
}

// TestTotalsMissNoWrite writes while another goroutine reads the totals all the time.
func TestTotalsMissNoWrite(t *testing.T) {
	conn := schematest.Open(t)
	e, writer := New(conn, nil, source.DefaultLimits), ingest.NewWriter(conn)
	e.Totals.SetOwn()
	reading, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	readers.Go(func() {
		for reading.Err() == nil {
			_ = e.Totals.Refresh(reading)
		}
	})
	defer readers.Wait()
	defer stop()
	subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	for id := range uint64(60) {
		event := schema.Event{EventID: id, Time: time.Unix(1_700_000_000, 0), WebsiteID: 1, Subject: subject.Kind, SubjectID: subject.ID, VisitorID: id, Kind: schema.KindView}
		if _, err := writer.Write(t.Context(), []schema.Event{event}); err != nil {
			t.Fatal(err)
		}
		changed := []plan.Subject{subject}
		if id%2 == 0 {
			changed = nil
		}
		e.Written(changed)
		for current := false; !current; {
			var stored source.Stored
			if stored, current = e.Totals.Last(subject); current && stored.Events != id+1 {
				t.Fatalf("%d events after %d writes", stored.Events, id+1)
			}
		}
	}
}
