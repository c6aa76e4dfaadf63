package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema/schematest/scripts"

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

// TestScripts runs the scripts of testdata/scripts, whose lines are command lines. -rewrite records their outputs.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	scripts.RunLines(t, func(t *testing.T, _ *datadriven.TestData, line string) string {
		t.Helper()
		r := run(t, strings.Fields(strings.ReplaceAll(line, "$DIR", dir))...)
		said, _, _ := strings.Cut(strings.ReplaceAll(r.out+r.err, dir, "$DIR"), "\nRun 'loadgen --help'")
		return fmt.Sprintf("exit %d: %s", r.code, strings.TrimSpace(said))
	})
}

func TestCalibrate(t *testing.T) {
	tier.OnlyLong(t)
	dir := t.TempDir()
	jsonFile := filepath.Join(dir, "result.json")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "calibrate", "--experiments-aa", "4", "--experiments-ab", "0",
		"--visitors", "100", "--json", jsonFile)
	cmd.Env = append(os.Environ(), asLoadgen+"=1")
	text, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, text)
	must.That(t, strings.Contains(string(text), "0 outside their acceptance bands"), "%v\n%s", err, text)
	must.That(t, strings.Contains(string(text), "events: 4 of 4\n"), "%v\n%s", err, text)
	var result calibration.Result
	written, err := os.ReadFile(jsonFile)
	if err == nil {
		err = json.Unmarshal(written, &result)
	}
	must.That(t, err == nil, "%v: %d experiments, %d reports, %d cells", err, result.Null, result.Reports,
		len(result.Cells))
	check.Equal(t, result.Null, 4, "%v: %d experiments, %d reports, %d cells", err, result.Null, result.Reports,
		len(result.Cells))
	check.Equal(t, result.Reports, 64, "%v: %d experiments, %d reports, %d cells", err, result.Null, result.Reports,
		len(result.Cells))
	check.That(t, len(result.Cells) >= 100, "%v: %d experiments, %d reports, %d cells", err, result.Null,
		result.Reports, len(result.Cells))
}

func TestCalibrateDecisions(t *testing.T) {
	jsonFile := filepath.Join(t.TempDir(), "decisions.json")
	args := []string{
		"calibrate", "decisions", "--experiments", "40", "--only", "^Power.*rate (1|5) %, 50/50, freq",
		"--json", jsonFile,
	}
	r := run(t, args...).wantOK(t)
	check.Contains(t, r.out, "2 rates, 0 outside their bands", "%s\n%s", r.out, r.err)
	check.Contains(t, r.err, "simulated experiments: 80 of 80\n", "%s\n%s", r.out, r.err)
	var result calibration.Decisions
	text, err := os.ReadFile(jsonFile)
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	must.That(t, err == nil, "%v: %+v", err, result)
	check.Equal(t, result.Experiments, 40, "%v: %+v", err, result)
	must.Equal(t, len(result.Rows), 2, "%v: %+v", err, result)
	check.Equal(t, result.Rows[0].Experiments, 40, "%v: %+v", err, result)
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
	must.That(t, err == nil, "truth on standard output: error %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	check.Equal(t, truth.Visitors, 1000, "truth on standard output: error %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	check.Equal(t, len(truth.Subjects), 3, "truth on standard output: error %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	onDisk := must.Get(os.ReadFile(events))(t)
	piped := run(t, "generate", "--visitors", "1000", "-o", "-").wantOK(t)
	check.Equal(t, piped.out, string(onDisk), "events on standard output")
	check.Contains(t, string(must.Get(os.ReadFile(catalogue))(t)), "Free delivery banner", "catalogue")
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
	r := run(t, "growth", "--store", "embedded:"+filepath.Join(dir, "other"))
	check.Equal(t, r.code, exitFailed, "empty store: exit %d, %s", r.code, r.err)
	check.Contains(t, r.err, "does not have the standard data set", "empty store: exit %d, %s", r.code, r.err)
}

func TestStandard(t *testing.T) {
	tier.OnlyLong(t)
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	r := run(t, "standard", "--store", store, "--scale", "0.0005", "--optimize").wantOK(t)
	check.That(t, strings.HasPrefix(r.out, "lh_"), "standard output %q, standard error %q", r.out, r.err)
	check.Contains(t, r.err, "merged parts", "standard output %q, standard error %q", r.out, r.err)
	again := run(t, "standard", "--store", store, "--scale", "0.0005")
	check.Equal(t, again.code, exitFailed, "inserting again: exit %d, %s", again.code, again.err)
	check.Contains(t, again.err, "in use", "inserting again: exit %d, %s", again.code, again.err)
}
