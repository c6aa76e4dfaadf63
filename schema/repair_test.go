package schema_test

import (
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

func TestRepairStats(t *testing.T) {
	conn := schematest.Open(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var events []schema.Event
	for i := range uint64(10) {
		kind := []schema.Kind{schema.KindView, schema.KindGoal}[i%2]
		events = append(events, schema.Event{
			EventID: i, Time: at.Add(time.Duration(i) * time.Second), WebsiteID: 1, Subject: schema.SubjectCampaign,
			SubjectID: 12, VisitorID: i, Kind: kind, Value: int64(i), ExtraValue: -int64(i),
		})
	}
	if err := schema.InsertEvents(t.Context(), conn, "", events, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	type stats struct {
		rows, value, extra int64
		ingested, newest   time.Time
	}
	read := func() (s stats) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT toInt64(sum(rows)), toInt64(sum(value)), toInt64(sum(extra_value)),
			max(last_ingested), max(newest_event) FROM subject_stats`).Scan(&s.rows, &s.value, &s.extra, &s.ingested, &s.newest); err != nil {
			t.Fatal(err)
		}
		return s
	}
	repair := func(want bool) {
		t.Helper()
		if changed, err := schema.RepairStats(t.Context(), conn); changed != want || err != nil {
			t.Errorf("RepairStats = %v, %v; want %v", changed, err, want)
		}
	}
	whole := read()
	repair(false)
	const lateTime = `INSERT INTO subject_stats SELECT website_id, subject, subject_id, experiment_id, event, goal_id, 0, 0, 0, last_ingested, newest_event + 1 FROM subject_stats ORDER BY newest_event DESC LIMIT 1`
	for _, damage := range []string{
		// too few rows, too many rows, no rows, the time of a deleted event
		`INSERT INTO subject_stats SELECT website_id, subject, subject_id, experiment_id, event, goal_id, toUInt64(-3), -7, 7, last_ingested, newest_event FROM subject_stats WHERE event = 'goal' LIMIT 1`,
		`INSERT INTO subject_stats SELECT website_id, subject, subject_id, experiment_id, event, goal_id, 5, 1, 1, last_ingested, newest_event FROM subject_stats LIMIT 1`,
		`TRUNCATE TABLE subject_stats`,
		`ALTER TABLE subject_stats UPDATE newest_event = toDateTime64(0, 3, 'UTC') WHERE true SETTINGS mutations_sync = 1`, // too early
		lateTime,
	} {
		if err := conn.Exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		if read() == whole {
			t.Fatalf("%s did no damage", damage)
		}
		repair(damage != lateTime)
		if got := read(); got != whole {
			t.Errorf("after %s:\n%+v, want\n%+v", damage, got, whole)
		}
		repair(false)
	}
}
