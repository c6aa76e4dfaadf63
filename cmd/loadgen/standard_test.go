package main

import (
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

func TestStandard(t *testing.T) {
	tier.OnlyLong(t)
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	r := run(t, "standard", "--store", store, "--scale", "0.0005", "--optimize").wantOK(t)
	check.That(t, strings.HasPrefix(r.out, "lh_") && strings.Contains(r.err, "merged parts"), "standard output %q, standard error %q", r.out, r.err)
	again := run(t, "standard", "--store", store, "--scale", "0.0005")
	check.That(t, again.code == exitFailed && strings.Contains(again.err, "in use"), "inserting again: exit %d, %s", again.code, again.err)
}
