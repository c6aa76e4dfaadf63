package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

func TestExportApplyAndPruneThroughARunningServer(t *testing.T) {
	t.Parallel()
	_, _, store := serving(t)
	run := func(stdin string, want int, args ...string) string {
		t.Helper()
		code, out, complaints := other(t, strings.NewReader(stdin), append(args, store)...)
		if code != want {
			t.Fatalf("lifthouse %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, complaints)
		}
		return out + complaints
	}
	exported := run("", exitOK, "export")
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	save := func(text string) {
		t.Helper()
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	save(exported)
	if out := run("", exitOK, "apply", "-f", file, "--prune"); !strings.Contains(out, "No changes") {
		t.Errorf("applying what was exported says %q", out)
	}

	save(strings.Replace(exported, "- id: 2\n            name: Signup", "- id: 4\n            name: Other", 1))
	for _, answer := range []string{"n\n", ""} {
		if out := run(answer, exitOK, "apply", "-f", file, "--prune"); !strings.Contains(out, `- goal 2 "Signup" (archived)`) || !strings.Contains(out, "Archive 1 resource that the file does not have") || !strings.Contains(out, "Nothing was changed.") {
			t.Errorf("answered %q, it says %q", answer, out)
		}
	}
	if out := run("", exitOK, "apply", "-f", file, "--prune", "--dry-run"); !strings.Contains(out, "2 changes; nothing was changed (dry run).") {
		t.Errorf("the dry run says %q", out)
	}
	if again := run("", exitOK, "export"); again != exported {
		t.Errorf("refused, and yet changed:\n%s", again)
	}
	if out := run("yes\n", exitOK, "apply", "-f", file, "--prune"); !strings.Contains(out, "2 resources changed.") {
		t.Errorf("agreed, it says %q", out)
	}
	if again := run("", exitOK, "export"); strings.Contains(again, "Signup") || !strings.Contains(again, "Other") {
		t.Errorf("pruned, and yet:\n%s", again)
	}
	if out := run(exported, exitUsage, "apply", "-f", "-", "--prune"); !strings.Contains(out, "--prune requires --yes") {
		t.Errorf("nobody to ask: %q", out)
	}
	if out := run(exported, exitOK, "apply", "-f", "-", "--prune", "--yes"); !strings.Contains(out, `- goal 4 "Other" (archived)`) {
		t.Errorf("with --yes it says %q", out)
	}
	if run("", exitOK, "export") != exported {
		t.Error("the first file does not bring back what it names")
	}
}
