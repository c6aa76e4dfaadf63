package main

import (
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

// TestGrowth runs the command at a small scale, and again on the store that then has the campaigns.
func TestGrowth(t *testing.T) {
	tier.OnlyLong(t)
	dir := t.TempDir()
	store := "embedded:" + filepath.Join(dir, "store")
	run(t, "standard", "--store", store, "--scale", "0.0006").wantOK(t)
	args := []string{"growth", "--store", store, "--scale", "0.0006", "--rounds", "1"}
	for range 2 {
		r := run(t, args...)
		r.wantOK(t)
		for _, want := range []string{"unfiltered", "mobile in DE, FR", "by day"} {
			check.Contains(t, r.out, want)
		}
	}
	for want, args := range map[string][]string{
		"must be an embedded store": {"growth", "--store", "http://127.0.0.1:1"},
		`--scale "0"`:               {"growth", "--store", store, "--scale", "0"},
	} {
		r := run(t, args...)
		check.That(t, r.code == exitUsage && strings.Contains(r.err, want), "%v: exit %d, %s", args, r.code, r.err)
	}
	if r := run(t, "growth", "--store", "embedded:"+filepath.Join(dir, "other")); r.code != exitFailed || !strings.Contains(r.err, "does not have the standard data set") {
		t.Errorf("empty store: exit %d, %s", r.code, r.err)
	}
}
