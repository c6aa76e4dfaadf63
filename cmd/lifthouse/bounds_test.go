package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/cmd/internal/bounds/boundstest"
	"lifthouse/cmd/internal/config"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const anyID = "an id is any positive integer of 64 bits"

var meaningful = map[string]string{"shipped=9223372036854775807": anyID, "account=9223372036854775807": anyID, "website=9223372036854775807": anyID, "webhook=9223372036854775807": anyID, "widget=9223372036854775807": anyID, "experiment=9223372036854775807": anyID}

// runAlone executes a command line whose context has ended, so that one that is not refused ends, too. It fails the
// test if the command creates a file.
func runAlone(t *testing.T, env map[string]string, args ...string) (code int, complaints string) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	end()
	dir := t.TempDir()
	stderr := capture(t)
	p := &program{stdout: stderr.write, stderr: stderr.write, dir: dir, args: args, getenv: func(name string) string { return env[name] }}
	code = p.runCommand(ctx)
	complaints = stderr.text()
	files, err := os.ReadDir(dir)
	check.That(t, err == nil && len(files) == 0, "%q creates %v: %v", args, files, err)
	return code, complaints
}

func TestFlagsHaveBounds(t *testing.T) {
	p := boundstest.Program{
		Root: (&program{getenv: func(string) string { return "" }}).rootCommand(),
		Run:  func(args ...string) (int, string) { return runAlone(t, nil, args...) },
		Arguments: map[string][]string{
			"lifthouse import": {"x"}, "lifthouse source add": {"segment"}, "lifthouse backup": {"x"},
			"lifthouse restore": {"x"}, "lifthouse token revoke": {"1"}, "lifthouse share": {"campaign", "1"},
			"lifthouse webhook resend": {"x"}, "lifthouse outcome": {"campaign", "1"}, "lifthouse webhook test": {"1"},
			"lifthouse report": {"campaign", "1"}, "lifthouse reconcile": {"orders.csv"}, "lifthouse looks": {"campaign", "1"}, "lifthouse compare": {"--control=1/2", "--treatment=1/2"},
		},
		Meaningful: meaningful,
	}
	p.CheckFlags(t)
}

// TestSettingsHaveBounds sets extremes in the environment and in a file.
func TestSettingsHaveBounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lifthouse.yaml")
	for _, s := range config.SettingsOf((&program{getenv: func(string) string { return "" }}).rootCommand()) {
		for _, value := range boundstest.ExtremeValues(s.Flag) {
			must.OK(t, os.WriteFile(file, []byte(s.Name+": "+value+"\n"), 0o600))
			code, complaints := runAlone(t, map[string]string{s.VariableName(): value}, "check")
			want := fmt.Sprintf("%s %q: must be ", s.VariableName(), value)
			check.That(t, code == exitUsage && strings.Contains(complaints, want), "exit %d, %q; want %d and %q", code, complaints, exitUsage, want)
			code, complaints = runAlone(t, map[string]string{config.FileVariable: file}, "token", "list")
			want = file + ": " + s.Name
			check.That(t, code == exitUsage && strings.Contains(complaints, want) && strings.Contains(complaints, "must be "), "%s: exit %d, %q; want %d and %q", value, code, complaints, exitUsage, want)
		}
	}
}
