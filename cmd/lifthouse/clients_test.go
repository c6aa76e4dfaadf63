package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestClients runs the clients of docs/examples against a server.
func TestClients(t *testing.T) {
	h := newHouseWithEvents(t)
	h.token = strings.TrimSpace(h.must("token", "create", "--scope", "write"))
	examples := must.Get(filepath.Abs("../../docs/examples"))(t)
	t.Run("Python", func(t *testing.T) {
		r := &recipes{house: h, dir: examples}
		out, err := r.command(t, "", "python3", "-B", "-c",
			"import sys; sys.exit('too old' if sys.version_info < (3, 9) else 0)")
		if err != nil {
			t.Skipf("SKIP: python3 is older than 3.9: %s", out)
		}
		out, err = r.command(t, "", "python3", "-B", "-m", "unittest", "-v")
		must.OK(t, err, out)
		check.Contains(t, out, "Ran 5 tests", "unittest")
	})
	t.Run("TypeScript", func(t *testing.T) {
		r := &recipes{house: h, dir: t.TempDir()}
		bundler := must.Get(filepath.Abs("../../node_modules/.bin/esbuild"))(t)
		for _, needed := range []string{bundler, "../../node_modules/openapi-fetch"} {
			if _, err := os.Stat(needed); err != nil {
				t.Skipf("SKIP: %s is not installed: run npm ci", needed)
			}
		}
		for _, example := range []struct{ name, want string }{
			{"sync", "campaign/12 Checkout layout keepRunning 4\ncampaign/13 Free delivery keepRunning 2\n"},
			{"download", "unchanged\n"},
			{"switch", "Checkout layout is stopped\nCheckout layout runs\n"},
		} {
			script := filepath.Join(r.dir, example.name+".mjs")
			bundle := exec.CommandContext(t.Context(), bundler, filepath.Join(examples, example.name+".ts"), "--bundle",
				"--platform=node", "--format=esm", "--log-level=warning", "--outfile="+script)
			out, err := bundle.CombinedOutput()
			must.OK(t, err, string(out))
			printed, err := r.command(t, "", "node", script)
			must.OK(t, err, printed)
			check.Equal(t, printed, example.want, example.name)
		}
		_, err := os.Stat(filepath.Join(r.dir, "results.parquet"))
		check.OK(t, err, "the table that was downloaded")
	})
}
