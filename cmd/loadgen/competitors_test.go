package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/loadgen/competitors"
	"lifthouse/loadgen/population"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// startDuckDB returns a DuckDB, or nil if its npm packages are not installed.
func startDuckDB(t *testing.T) *competitors.DuckDB {
	t.Helper()
	duck, err := competitors.StartDuckDB(context.WithoutCancel(t.Context()), "../../loadgen/competitors")
	if err != nil {
		t.Logf("DuckDB is not compared: %v", err)
		return nil
	}
	t.Cleanup(func() {
		check.OK(t, duck.Close())
	})
	return duck
}

// TestCompetitors compares numbers on a small standard data set, where all numbers must be equal. The second comparison
// uses reports in which some counts are wrong by 1.
func TestCompetitors(t *testing.T) {
	tier.OnlyLong(t)
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	run(t, "standard", "--store", store, "--scale", "0.0006").wantOK(t)
	var out, progress strings.Builder
	p := &program{out: &out, err: &progress}
	must.OK(t, p.withStore(t.Context(), store, func(s *app.Store) error {
		goals := []int64{1, 2, 3, 4, 5}
		correct := campaignReport(s.Engine, 1, population.StandardCampaign, goals)
		options := competitors.Options{
			Conn: s.Conn, WebsiteID: 1, CampaignID: population.StandardCampaign, GoalIDs: goals, Rounds: 1,
			Report: correct, Progress: func(string) {},
			DuckDB: startDuckDB(t),
		}
		rows, differences := 67, 12 // 12 questions, by Lifthouse and by up to 6 forms of the competitors
		if options.DuckDB != nil {
			rows, differences = 112, 20
		}
		if err := p.foldAndMerge(t.Context(), s); err != nil {
			return err
		}
		result, err := competitors.Compare(t.Context(), options)
		if err != nil {
			return err
		}
		check.Equal(t, len(result.Differences), 0, "%d rows, %d visitors, %d compared, %v", len(result.Rows),
			result.Visitors, result.Compared, result.Differences)
		check.That(t, result.Compared >= 100, "%d rows, %d visitors, %d compared, %v", len(result.Rows),
			result.Visitors, result.Compared, result.Differences)
		check.Equal(t, len(result.Rows), rows, "%d rows, %d visitors, %d compared, %v", len(result.Rows),
			result.Visitors, result.Compared, result.Differences)
		check.Equal(t, result.Visitors, 3000, "%d rows, %d visitors, %d compared, %v", len(result.Rows),
			result.Visitors, result.Compared, result.Differences)
		if err := p.printCompetitors(result); err != nil {
			return err
		}
		var tables uint64
		if err := s.Conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE name LIKE 'loadgen%'").Scan(&tables); err != nil || tables != 0 {
			t.Errorf("%d tables remain, error %v", tables, err)
		}
		options.Report = func(ctx context.Context, question competitors.Question,
			to time.Time,
		) ([]competitors.Counts, error) {
			counts, err := correct(ctx, question, to)
			if slices.Contains([]competitors.Question{
				competitors.MeanValue, competitors.ConversionRate,
				competitors.FourMetrics,
			}, question) && err == nil {
				counts[0].Converted++
				counts[1].Profit--
			}
			return counts, err
		}
		if result, err = competitors.Compare(t.Context(), options); err != nil {
			return err
		}
		// Each form of each competitor reports two differences: converted visitors, and profit among the four metrics.
		check.Equal(t, len(result.Differences), differences, "differences: %v", result.Differences)
		return nil
	}))
	check.Contains(t, out.String(), "numbers compared, 0 differ", "table:\n%s", out.String())
	check.Contains(t, out.String(), "PostHog", "table:\n%s", out.String())
	for want, args := range map[string][]string{
		"must be an embedded store":                       {"competitors", "--store", "http://127.0.0.1:1"},
		`--rounds "0": must be an integer from 1 to 1000`: {"competitors", "--store", store, "--rounds", "0"},
	} {
		r := run(t, args...)
		check.Equal(t, r.code, exitUsage, "%v: exit %d, %s", args, r.code, r.err)
		check.Contains(t, r.err, want, "%v: exit %d, %s", args, r.code, r.err)
	}
	r := run(t, "competitors", "--store", store, "--campaign", "99")
	check.Equal(t, r.code, exitFailed, "unknown campaign: exit %d, %s", r.code, r.err)
	check.Contains(t, r.err, "invalid --campaign 99", "unknown campaign: exit %d, %s", r.code, r.err)
}
