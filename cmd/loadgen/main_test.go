package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/engine/embedded"
	"lifthouse/loadgen/calibration"
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
