package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lifthouse/loadgen/population"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

var recordRelease = flag.String("record-store", "", "release whose store is recorded in testdata/stores, by make store-archive")

// storesOfReleases has a folder for each release: the store that it wrote, and what it reported.
const storesOfReleases = "../testdata/stores"

// reportedOfStore are the commands whose output is kept beside an archived store, by file.
var reportedOfStore = map[string][]string{
	"campaign.json":   {"report", "campaign", "12", "--scorecard", "--json"},
	"breakdown.json":  {"report", "campaign", "12", "--dimension", "device", "--filter", "visitorType=new", "--json"},
	"series.json":     {"report", "campaign", "13", "--interval", "week", "--metric", "valuePerVisitor", "--json"},
	"experiment.json": {"report", "experiment", "21/1", "--json"},
	"looks.json":      {"looks", "campaign", "12", "--json"},
	"catalog.yaml":    {"export"},
}

// TestStoresOfReleasesAreUpgraded opens the store that each release wrote. The reports must contain what that release
// reported; later releases may add fields.
func TestStoresOfReleasesAreUpgraded(t *testing.T) {
	t.Parallel()
	if *recordRelease != "" {
		recordStore(t, filepath.Join(storesOfReleases, *recordRelease))
	}
	releases := must.Get(os.ReadDir(storesOfReleases))(t)
	for _, release := range releases {
		t.Run(release.Name(), func(t *testing.T) {
			t.Parallel()
			from, dir := filepath.Join(storesOfReleases, release.Name()), t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(from, "store.tar.gz"), "-C",
				dir).CombinedOutput(); err != nil {
				t.Fatalf("tar: %v\n%s", err, out)
			}
			store := "--store=embedded:" + dir
			p := start(t, "serve", store)
			for name, args := range reportedOfStore {
				want, err := os.ReadFile(filepath.Join(from, name))
				if errors.Is(err, fs.ErrNotExist) {
					continue // the release has no such report
				}
				must.OK(t, err)
				got, _ := succeed(t, nil, append(args, store)...)
				for _, difference := range compareReports(t, name, string(want), got) {
					t.Errorf("lifthouse %s: %s", strings.Join(args, " "), difference)
				}
			}
			succeed(t, nil, "check", "--deep", store)
			p.interrupt()
		})
	}
}

// recordStore writes a small store with two campaigns and a widget, and its reports.
func recordStore(t *testing.T, to string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	store := "--store=embedded:" + dir
	shop := population.DefaultScenario()
	shop.Start, shop.Days = catalogue.Date{Time: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)}, 21
	shop.SetVisitors(1500)
	var declared, events bytes.Buffer
	must.OK(t, shop.CatalogueFile().WriteYAML(&declared))
	must.Get(population.WriteNDJSON(t.Context(), &shop, &events, func(population.Progress) {}))(t)
	p := start(t, "serve", store)
	succeed(t, &declared, "apply", "-f", "-", store)
	succeed(t, nil, "import", must.WriteFile(t, "events.ndjson", events.String()), store)
	must.OK(t, os.MkdirAll(to, 0o750))
	for name, args := range reportedOfStore {
		out, _ := succeed(t, nil, append(args, store)...)
		must.OK(t, os.WriteFile(filepath.Join(to, name), []byte(out), 0o600))
	}
	p.interrupt()
	// The socket is absent from the archive, and so is everything that depends on this machine.
	if out, err := exec.CommandContext(t.Context(), "tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
		"-czf", filepath.Join(to, "store.tar.gz"), "-C", dir, ".").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
}

// silence is what the warning SILENT says of the time since the last event, and what conclusions say of the next look:
// both are others each day or week.
var silence = regexp.MustCompile(`no event for \d+ (hours|days)|; the next look is on [^"]*`)

// compareReports returns what a report lacks of an earlier one. The times of computing them differ, and so do the days
// without events that they report, and the next looks.
func compareReports(t *testing.T, name, want, got string) []string {
	t.Helper()
	if filepath.Ext(name) != ".json" {
		if got != want {
			return []string{fmt.Sprintf("it prints\n%s\nwant\n%s", got, want)}
		}
		return nil
	}
	decode := func(text string) (value any) {
		decoder := json.NewDecoder(strings.NewReader(silence.ReplaceAllString(text, "no event")))
		decoder.UseNumber()
		must.OK(t, decoder.Decode(&value))
		return value
	}
	before, now := decode(want), decode(got)
	if report, is := before.(map[string]any); is {
		delete(report, "generatedAt")
		delete(report, "nextLook") // which is another one each week
	}
	return findDifferences(name, before, now)
}

// findDifferences returns the paths at which a JSON value does not contain another one.
func findDifferences(at string, want, got any) (differences []string) {
	switch want := want.(type) {
	case map[string]any:
		got, is := got.(map[string]any)
		for key, value := range want {
			found, has := got[key]
			if !is || !has {
				differences = append(differences, fmt.Sprintf("%s has no %s", at, key))
				continue
			}
			differences = append(differences, findDifferences(at+"."+key, value, found)...)
		}
	case []any:
		got, is := got.([]any)
		if !is || len(got) != len(want) {
			return []string{fmt.Sprintf("%s is %v, want %v", at, got, want)}
		}
		for i := range want {
			differences = append(differences, findDifferences(fmt.Sprintf("%s[%d]", at, i), want[i], got[i])...)
		}
	default:
		if got != want {
			return []string{fmt.Sprintf("%s is %v, want %v", at, got, want)}
		}
	}
	return differences
}
