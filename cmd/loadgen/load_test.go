package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/loadgen/calibration"
)

// asLoadgen makes the test's own binary behave as loadgen: a process holds one
// store, and the tests may have one.
const asLoadgen = "LIFTHOUSE_TEST_LOADGEN"

func init() {
	if os.Getenv(asLoadgen) != "" {
		main() // and no further
	}
}

func TestCommandLinesThatAreWrong(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, says := range map[string][]string{
		"bench": {"token"},
		"bench --token t --mix dash=1 --rate 0 --url nowhere":          {"mix:", "rate", "url"},
		"bench --token t --ladder --target-p99 -1s --most-under-way 0": {"target-p99", "most-under-way"},
		"bench x": {`unexpected "x"`},
		"calibrate --experiments-aa 1 --experiments-ab 1 --visitors 1": {"together", "visitors 1"},
		"calibrate --store " + full:                                    {"want an empty folder"},
		"calibrate --level 95":                                         {"--level"},
	} {
		var out, complaints bytes.Buffer
		p := &program{in: strings.NewReader(""), out: &out, err: &complaints}
		code := p.run(t.Context(), strings.Fields(line))
		for _, text := range says {
			if code != exitUsage || !strings.Contains(complaints.String(), text) {
				t.Errorf("loadgen %s: exit %d, %q does not tell of %s", line, code, complaints.String(), text)
			}
		}
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	var out, complaints bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &complaints}
	if code := p.run(t.Context(), strings.Fields("bench --token t --url http://127.0.0.1:1")); code != exitFailed || !strings.Contains(complaints.String(), "127.0.0.1:1") {
		t.Errorf("exit %d, %s", code, complaints.String())
	}
}

func TestCalibrate(t *testing.T) {
	dir := t.TempDir()
	table, picture := filepath.Join(dir, "table.json"), filepath.Join(dir, "table.svg")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "calibrate", "--experiments-aa", "4", "--experiments-ab", "0", "--visitors", "100",
		"--store", filepath.Join(dir, "store"), "--json", table, "--plot", picture)
	cmd.Env = append(os.Environ(), asLoadgen+"=1")
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "0 outside their bands") || !strings.Contains(string(text), "events: 4 of 4\n") {
		t.Fatalf("%v\n%s", err, text)
	}
	var result calibration.Result
	written, err := os.ReadFile(table)
	if err == nil {
		err = json.Unmarshal(written, &result)
	}
	if drawn, _ := os.ReadFile(picture); err != nil || result.Null != 4 || result.Reports != 64 || len(result.Cells) < 100 || !bytes.Contains(drawn, []byte("<svg")) {
		t.Errorf("%v: %d experiments, %d reports, %d cells", err, result.Null, result.Reports, len(result.Cells))
	}
}
