package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lifthouse/cmd/internal/app"
	"lifthouse/loadgen"
)

// TestPeers compares on a small standard set, where all numbers must be equal,
// and then with reports that are wrong by the least there is.
func TestPeers(t *testing.T) {
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	run(t, "standard", "--store", store, "--scale", "0.0006").wantOK(t)
	var out, told strings.Builder
	p := &program{out: &out, err: &told}
	err := p.withStore(t.Context(), store, func(s *app.Store) error {
		right := ourReport(s.Engine.Reference, 1, loadgen.StandardCampaign)
		options := loadgen.PeersOptions{
			Conn: s.Conn, WebsiteID: 1, CampaignID: loadgen.StandardCampaign, GoalID: 1, Rounds: 1, Ours: right, Tell: func(string) {},
		}
		result, err := loadgen.Peers(t.Context(), options)
		if err != nil {
			return err
		}
		if len(result.Differ) > 0 || result.Compared < 100 || len(result.Rows) != 26 || result.Visitors != 3000 {
			t.Errorf("%d rows, %d visitors, %d compared, %v", len(result.Rows), result.Visitors, result.Compared, result.Differ)
		}
		if err := p.showPeers(result); err != nil {
			return err
		}
		var tables uint64
		if err := s.Conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE name LIKE 'loadgen%'").Scan(&tables); err != nil || tables != 0 {
			t.Errorf("%d tables are left: %v", tables, err)
		}
		options.Ours = func(ctx context.Context, asked loadgen.Asked) ([]loadgen.Measured, error) {
			said, err := right(ctx, asked)
			if slices.Contains([]loadgen.Asked{loadgen.AskMean, loadgen.AskProportion, loadgen.AskFour}, asked) && err == nil {
				said[0].Converted++
				said[1].Profit--
			}
			return said, err
		}
		if result, err = loadgen.Peers(t.Context(), options); err != nil {
			return err
		}
		// Each once by both peers on both tables: converted visitors, and profit among the four metrics.
		if len(result.Differ) != 8 {
			t.Errorf("%d differences, want 8: %v", len(result.Differ), result.Differ)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "numbers compared, 0 differ") || !strings.Contains(out.String(), "PostHog") {
		t.Errorf("the table:\n%s", out.String())
	}
	for want, args := range map[string][]string{
		"want an embedded store":     {"peers", "--store", "http://127.0.0.1:1"},
		"--rounds 0: want 1 to 1000": {"peers", "--store", store, "--rounds", "0"},
	} {
		if r := run(t, args...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := run(t, "peers", "--store", store, "--campaign", "99"); r.code != exitFailed || !strings.Contains(r.err, "--campaign 99") {
		t.Errorf("an unknown campaign: exit %d, %s", r.code, r.err)
	}
}
