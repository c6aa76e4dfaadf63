package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/cmd/internal/bounds/boundstest"
	"lifthouse/engine/embedded"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/population"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// asLoadgen is an environment variable that makes the test binary run loadgen. A
// process can open only one store, which other tests use.
const asLoadgen = "LIFTHOUSE_TEST_LOADGEN"

func init() {
	if os.Getenv(asLoadgen) != "" {
		main() // exits
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := embedded.Shutdown(); err != nil {
		code = 1
	}
	os.Exit(code)
}

// outcome is the outcome of a command.
type outcome struct {
	code     int
	out, err string
}

// run runs a command.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, err bytes.Buffer
	p := &program{out: &out, err: &err}
	code := p.runCommand(t.Context(), args)
	return outcome{code, out.String(), err.String()}
}

// wantOK fails the test unless the command succeeded.
func (r outcome) wantOK(t *testing.T) outcome {
	t.Helper()
	must.Equal(t, r.code, exitOK, "%v", r.err)
	return r
}

func TestInvalidCommandLines(t *testing.T) {
	for line, wants := range map[string][]string{
		"bench": {"token"},
		"bench --token t --mix dash=1 --url nowhere":                  {"mix:", "url"},
		"bench --token t --rate 0":                                    {"rate"},
		"bench --token t --ladder --target-p99 -1s --max-in-flight 0": {"target-p99", "max-in-flight"},
		"bench x": {`unexpected argument "x"`},
		"calibrate --experiments-aa 1 --experiments-ab 1": {"their sum must be at least 4"},
		"calibrate --visitors 1":                          {`--visitors "1"`},
		"calibrate --level 95":                            {"--level"},
		"calibrate decisions --experiments 0":             {`experiments "0"`},
		"calibrate decisions --only (":                    {"invalid --only", "regular expression"},
		"calibrate decisions x":                           {`unexpected argument "x"`},
	} {
		r := run(t, strings.Fields(line)...)
		for _, want := range wants {
			check.That(t, r.code == exitUsage && strings.Contains(r.err, want), "loadgen %s: exit %d, %q does not contain %s", line, r.code, r.err, want)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	r := run(t, strings.Fields("bench --token t --url http://127.0.0.1:1")...)
	check.That(t, r.code == exitFailed && strings.Contains(r.err, "127.0.0.1:1"), "exit %d, %s", r.code, r.err)
}

func TestCalibrate(t *testing.T) {
	tier.OnlyLong(t)
	dir := t.TempDir()
	jsonFile := filepath.Join(dir, "result.json")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "calibrate", "--experiments-aa", "4", "--experiments-ab", "0", "--visitors", "100", "--json", jsonFile)
	cmd.Env = append(os.Environ(), asLoadgen+"=1")
	text, err := cmd.CombinedOutput()
	must.That(t, err == nil && strings.Contains(string(text), "0 outside their acceptance bands") && strings.Contains(string(text), "events: 4 of 4\n"), "%v\n%s", err, text)
	var result calibration.Result
	written, err := os.ReadFile(jsonFile)
	if err == nil {
		err = json.Unmarshal(written, &result)
	}
	check.That(t, err == nil && result.Null == 4 && result.Reports == 64 && len(result.Cells) >= 100,
		"%v: %d experiments, %d reports, %d cells", err, result.Null, result.Reports, len(result.Cells))
}

func TestCalibrateDecisions(t *testing.T) {
	jsonFile := filepath.Join(t.TempDir(), "decisions.json")
	args := []string{"calibrate", "decisions", "--experiments", "40", "--only", "^Power.*rate (1|5) %, 50/50, freq", "--json", jsonFile}
	r := run(t, args...).wantOK(t)
	check.That(t, strings.Contains(r.out, "2 rates, 0 outside their bands") && strings.Contains(r.err, "simulated experiments: 80 of 80\n"), "%s\n%s", r.out, r.err)
	var result calibration.Decisions
	text, err := os.ReadFile(jsonFile)
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	check.That(t, err == nil && result.Experiments == 40 && len(result.Rows) == 2 && result.Rows[0].Experiments == 40, "%v: %+v", err, result)
}

func TestFlagsHaveBounds(t *testing.T) {
	const anyID, anySeed = "an id is any positive integer of 64 bits", "a seed is any integer"
	out := filepath.Join(t.TempDir(), "out")
	p := boundstest.Program{
		Root: (&program{}).rootCommand(),
		Run: func(args ...string) (int, string) {
			r := run(t, args...)
			return r.code, r.err
		},
		Arguments: map[string][]string{
			"loadgen generate": {"--truth=" + out}, "loadgen bench": {"--token=t", "--url=http://127.0.0.1:1"},
		},
		Meaningful: map[string]string{
			"seed=18446744073709551615": anySeed, "campaign=9223372036854775807": anyID,
		},
	}
	p.CheckFlags(t)
}

func TestGenerateToFiles(t *testing.T) {
	dir := t.TempDir()
	events, catalogue := filepath.Join(dir, "e.ndjson"), filepath.Join(dir, "c.yaml")
	r := run(t, "generate", "--visitors", "1000", "-o", events, "--catalogue", catalogue).wantOK(t)
	var truth population.Truth
	err := json.Unmarshal([]byte(r.out), &truth)
	check.That(t, err == nil && truth.Visitors == 1000 && len(truth.Subjects) == 3,
		"truth on standard output: error %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	onDisk := must.Get(os.ReadFile(events))(t)
	piped := run(t, "generate", "--visitors", "1000", "-o", "-").wantOK(t)
	check.Equal(t, piped.out, string(onDisk), "events on standard output")
	check.Contains(t, string(must.Get(os.ReadFile(catalogue))(t)), "Free delivery banner", "catalogue")
}

func TestGenerateUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"missing destination":                           {"generate"},
		"are mutually exclusive":                        {"generate", "-o", "x", "--store", "embedded:y"},
		`--visitors "0": must be an integer from 1`:     {"generate", "--visitors", "0", "-o", "-"},
		`invalid --start "May": must be a day`:          {"generate", "--start", "May", "-o", "-"},
		`--days "0": must be an integer from 1 to 3650`: {"generate", "--days", "0", "-o", "-"},
		`unexpected argument "x"`:                       {"generate", "x"},
		"unknown flag: --visitor":                       {"generate", "--visitor", "1"},
		"store \"x\": must be embedded:DIR":             {"generate", "--store", "x"},
		`--scale "0": must be a number from 0.0001`:     {"standard", "--store", "embedded:x", "--scale", "0"},
		"missing --store: must be a new store":          {"standard"},
	} {
		r := run(t, args...)
		check.That(t, r.code == exitUsage && strings.Contains(r.err, want) && r.out == "", "%v: exit %d, %q; want %q", args, r.code, r.err, want)
	}
}

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

func TestStandard(t *testing.T) {
	tier.OnlyLong(t)
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	r := run(t, "standard", "--store", store, "--scale", "0.0005", "--optimize").wantOK(t)
	check.That(t, strings.HasPrefix(r.out, "lh_") && strings.Contains(r.err, "merged parts"), "standard output %q, standard error %q", r.out, r.err)
	again := run(t, "standard", "--store", store, "--scale", "0.0005")
	check.That(t, again.code == exitFailed && strings.Contains(again.err, "in use"), "inserting again: exit %d, %s", again.code, again.err)
}
