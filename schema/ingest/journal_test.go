package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestRejectsAreLimited(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	r := ingest.NewJournal(conn)
	many := make([]ingest.Reject, 1000)
	for i := range many {
		many[i] = ingest.Reject{
			WebsiteID: 1, Channel: ingest.ChannelHTTP, Line: int64(i + 1),
			Reason: strings.Repeat("r", 2<<10), Text: strings.Repeat("é", 1<<10),
		}
	}
	for range 2 { // the second time the buffer is full
		r.BufferRejects(many...)
	}
	must.OK(t, r.FlushRejects(t.Context()))
	r.BufferRejects(ingest.Reject{WebsiteID: 2, Channel: ingest.ChannelInbox, Reason: "later"})
	must.OK(t, r.FlushRejects(t.Context()))
	for website, want := range map[int64]string{0: "301 later", 1: "300 rrrr", 2: "1 later"} {
		kept, err := ingest.LastRejects(t.Context(), conn, website, 1000)
		if err != nil || len(kept) == 0 || !strings.HasPrefix(fmt.Sprint(len(kept), " ", kept[0].Reason), want) {
			t.Errorf("website %d: %d kept, %v; want %s", website, len(kept), err, want)
			continue
		}
		for _, k := range kept {
			check.That(t, len(k.Reason) <= 1<<10, "line %d: %d bytes of reason, %d of text", k.Line, len(k.Reason),
				len(k.Text))
			check.That(t, len(k.Text) <= 1<<10, "line %d: %d bytes of reason, %d of text", k.Line, len(k.Reason),
				len(k.Text))
			check.That(t, !strings.Contains(k.Text, "�"), "line %d: %d bytes of reason, %d of text", k.Line,
				len(k.Reason), len(k.Text))
		}
	}
}

// TestRejectsSurviveAnUnavailableStore flushes lines to a store that is unavailable at first.
func TestRejectsSurviveAnUnavailableStore(t *testing.T) {
	conn, left := schematest.OpenMigrated(t), 0
	r := ingest.NewJournal(schematest.KilledConn{Conn: conn, Left: &left})
	r.BufferRejects(ingest.Reject{WebsiteID: 1, Channel: ingest.ChannelHTTP, Reason: "first"})
	err := r.FlushRejects(t.Context())
	must.That(t, errors.Is(err, schematest.ErrKilled), "%v, want ErrKilled", err)
	left = 10
	r.BufferRejects(ingest.Reject{WebsiteID: 1, Channel: ingest.ChannelHTTP, Reason: "second"})
	must.OK(t, r.FlushRejects(t.Context()))
	check.Equal(t, len(must.Get(ingest.LastRejects(t.Context(), conn, 1, 10))(t)), 2)
}

func TestRejectsContainNoSecrets(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	r := ingest.NewJournal(conn)
	for text, want := range map[string]string{
		`{"visitor":"v","password":"hunter2","city":"x"}`:       `{"visitor":"v","password":…,"city":"x"}`,
		`{"auth_token": "a\"hunter2", "n": 1}`:                  `{"auth_token": …, "n": 1}`,
		`{"properties":"{\"apiKey\":\"hunter2\",\"a\":1}"}`:     `{"properties":"{\"apiKey\":…,\"a\":1}"}`,
		`{"referrer":"https://x/?session_id=hunter2&page=2"}`:   `{"referrer":"https://x/?session_id=…&page=2"}`,
		`Authorization: Bearer hunter2`:                         `Authorization: … …`,
		`a,lh_hunter2-hunter2_hunter2,b`:                        `a,lh_…,b`,
		`{"secret":"hunter2`:                                    `{"secret":…`,
		`{"secret":` + strings.Repeat("hunter2", 1000):          `{"secret":…`,
		`password: unknown field; have city`:                    `password: … field; have city`,
		`{"city":"Secretary Town","eventId":"e1","value":12.5}`: `{"city":"Secretary Town","eventId":"e1","value":12.5}`,
	} {
		r.BufferRejects(ingest.Reject{WebsiteID: 1, Channel: ingest.ChannelHTTP, Reason: text, Text: text})
		r.BufferRejects(ingest.Reject{WebsiteID: 2, Channel: ingest.ChannelHTTP, Reason: `apiKey: "hunter2": want none; city: "lh_hunter2 ?token=hunter2&a"`})
		must.OK(t, r.FlushRejects(t.Context()))
		reasons, err := ingest.LastRejects(t.Context(), conn, 2, 1)
		if want := `apiKey: …: want none; city: "lh_… ?token=…&a"`; err != nil || reasons[0].Reason != want {
			t.Errorf("a reason is stored as %q, %v; want %q", reasons[0].Reason, err, want)
		}
		kept, err := ingest.LastRejects(t.Context(), conn, 1, 1)
		if err != nil || kept[0].Text != want || strings.Contains(kept[0].Text, "hunter2") || strings.Contains(text,
			"unknown") && kept[0].Reason != text {
			t.Errorf("%.80s is stored as %q, %v; want %q", text, kept[0].Text, err, want)
		}
		must.OK(t, conn.Exec(t.Context(), "TRUNCATE TABLE rejects"))
	}
}

func TestForgetDeletesRejects(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w, _ := newEraser(conn)
	lines := `{"visitor":"jane \"j\" doe","websiteId":7}` + "\n" + twoEvents + "nonsense\n"
	table := "websiteId,visitor,event,time\n8,jane,view,\n"
	for _, dry := range []bool{true, false} {
		for name, text := range map[string]string{"e.ndjson": lines, "e.csv": table} {
			must.Get(ingest.ImportFile(t.Context(), w, write(t, name, text),
				ingest.Options{DryRun: dry, Journal: ingest.NewJournal(conn)}))(t)
		}
		kept, err := ingest.LastRejects(t.Context(), conn, 0, 10)
		must.That(t, err == nil, "dry %v: %d kept, %v", dry, len(kept), err)
		must.Equal(t, dry, (len(kept) == 0), "dry %v: %d kept, %v", dry, len(kept), err)
	}
	storedRejects := func() (all []string) {
		kept := must.Get(ingest.LastRejects(t.Context(), conn, 0, 10))(t)
		for _, k := range kept {
			all = append(all,
				fmt.Sprintf("%d %s %s:%d %.7s %s", k.WebsiteID, k.Channel, k.File, k.Line, k.Reason, k.Text))
		}
		return all
	}
	got := strings.Join(storedRejects(), "\n")
	for _, want := range []string{`7 import e.ndjson:1 time: m {"visitor":"jane \"j\" doe","websiteId":7}`, "0 import e.ndjson:4 not JSO nonsense", "8 import e.csv:2 time: m event=view time= visitor=jane websiteId=8"} {
		check.Contains(t, got, want)
	}
	for _, c := range []struct {
		visitor string
		website int64
		left    int
	}{{`jane "j" doe`, 8, 3}, {`jane "j" doe`, 7, 2}, {"", 7, 2}, {"nobody", 8, 2}, {"jane", 8, 1}} {
		must.Get(w.ForgetVisitors(t.Context(), []string{c.visitor}, []int64{c.website}))(t)
		left := storedRejects()
		check.That(t, len(left) == c.left, "without %q on %d: %q, want %d", c.visitor, c.website, left, c.left)
	}
}

func view(eventID string) schema.Event {
	return schema.Event{
		EventID: schema.HashID(eventID), VisitorID: schema.HashID("v"),
		Time:      time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, Kind: schema.KindView,
	}
}

// TestWriterCompletesCanceledInsert cancels the context of an insert when it starts.
func TestWriterCompletesCanceledInsert(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := ingest.NewWriter(schematest.HookedConn{
		Conn:   conn,
		Before: func(context.Context, string) error { cancel(); return nil },
	}, nil)
	must.OK(t, w.WriteEvents(ctx, []schema.Event{view("e")}))
	check.Equal(t, number(t, conn, "SELECT count() FROM events"), 1, "stored")
	err := w.WriteEvents(ctx, []schema.Event{view("e2")})
	check.That(t, errors.Is(err, context.Canceled), "cancelled before: %v", err)
}

// TestAcceptanceTimesRise checks that acceptance times rise from insert to insert, also after those of another process
// whose clock is ahead.
func TestAcceptanceTimesRise(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	ahead := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	must.OK(t, schema.InsertEvents(t.Context(), conn, []schema.Event{view("ahead")}, ahead))
	w := ingest.NewWriter(conn, nil)
	must.OK(t, w.SetClock(t.Context(), time.Time{}))
	last := ahead
	w.AfterInsert(func(accepted time.Time) {
		check.That(t, accepted.After(last), "accepted at %s, after %s", accepted, last)
		last = accepted
	})
	for i := range 3 {
		must.OK(t, w.WriteEvents(t.Context(), []schema.Event{view(fmt.Sprint(i))}))
	}
	check.Equal(t, last, ahead.Add(3*time.Millisecond), "last acceptance")
}

func TestStoppedWriterWritesNoMore(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	must.That(t, w.StopWrites(t.Context()), "an idle writer cannot be stopped")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.That(t, !w.StopWrites(ctx), "a stopped writer can be stopped again")
	err := w.WriteEvents(ctx, []schema.Event{{EventID: 1}})
	check.That(t, errors.Is(err, context.Canceled), "a stopped writer writes: %v", err)
}
