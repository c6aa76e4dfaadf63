package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestShellsCompleteIds asks for completions while a server holds the store, and without one.
func TestShellsCompleteIds(t *testing.T) {
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	file := must.WriteFile(t, "catalog.yaml", `accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}]
        campaigns: [{id: 12, name: "Free\tdelivery"}, {id: 7, name: Menu}]
        widgets:
          - {id: 5, name: Popup, type: popup, experiments: [{id: 2, name: Wording, variations: [{id: 1, name: A}]}]}
`)
	ended(t, exitOK, "apply", "-f", file, store)
	complete := func(args ...string) []string {
		code, out, _ := other(t, nil, append([]string{"__complete"}, args...)...)
		must.Equal(t, code, exitOK, out)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return lines[:len(lines)-1] // the last one is a directive
	}
	check.Equal(t, strings.Join(complete(store, "report", "c"), "|"), "campaign")
	check.Equal(t, len(complete(store, "report", "campaign", "")), 0, "ids without a server")
	p := start(t, "serve", store)
	check.Equal(t, strings.Join(complete(store, "report", "campaign", ""), "|"), "7\tMenu|12\tFree delivery")
	check.Equal(t, strings.Join(complete(store, "log", "campaign", "1"), "|"), "12\tFree delivery")
	check.Equal(t, strings.Join(complete(store, "looks", "experiment", ""), "|"), "5/2\tPopup: Wording")
	check.Equal(t, strings.Join(complete(store, "share", "widget", ""), "|"), "5\tPopup")
	p.interrupt()
}
