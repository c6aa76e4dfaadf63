package e2e

import (
	"strings"
	"testing"
)

func TestGrants(t *testing.T) {
	password := file(t, "password", "hard to guess\n")
	code, out, complaints := other(t, nil, "grants", "--store=clickhouse://admin:own@localhost:1/shop?cluster=lift", "--serving-password-file", password)
	if code != exitOK || strings.Count(out, ";\n") < 10 {
		t.Fatalf("exit %d\n%s%s", code, out, complaints)
	}
	for _, want := range []string{"CREATE USER IF NOT EXISTS `lifthouse` ON CLUSTER `lift`", "SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON `shop`.* TO `lifthouse`"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+complaints, "hard to guess") || strings.Contains(out, "own") || !strings.Contains(complaints, "password of lifthouse_migrating") {
		t.Errorf("passwords:\n%s%s", out, complaints)
	}
	for _, args := range [][]string{
		{"--store=embedded:x"},
		{"--store=clickhouse://h/db", "--serving-user=a", "--migrating-user=a"},
		{"--store=clickhouse://h/db", "--serving-password-file", file(t, "empty", "\n")},
	} {
		if code, out, complaints := other(t, nil, append([]string{"grants"}, args...)...); code != exitUsage {
			t.Errorf("%q: exit %d\n%s%s", args, code, out, complaints)
		}
	}
	code, _, complaints = other(t, nil, "grants", "--apply", "--store=clickhouse://localhost:1/shop?dial_timeout=1s")
	if code != exitFailed || !strings.Contains(complaints, "localhost:1") {
		t.Errorf("exit %d\n%s", code, complaints)
	}
}

// TestAnEmbeddedStoreHasNoCluster checks that the error is reported before
// anything is created.
func TestAnEmbeddedStoreHasNoCluster(t *testing.T) {
	code, _, complaints := other(t, nil, "migrate", "--cluster=lift", "--store=embedded:"+t.TempDir())
	if code != exitUsage || !strings.Contains(complaints, "an embedded store has no cluster") {
		t.Errorf("exit %d\n%s", code, complaints)
	}
}
