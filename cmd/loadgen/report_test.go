package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	standard := write("standard.json", `{"scale":0.5,"visitors":10,"events":57,"seconds":2,"eventsPerSecond":28.5}`)
	peers := write("peers.json", `{"visitors":7,"events":40,"rounds":5,"engine":"26.7","compared":148,"differences":[],"rows":[
		{"question":"mean value","who":"Lifthouse","table":"as stored","cost":{"wallMs":10,"cpuMs":20,"peakMB":5},"wallRatio":1,"cpuRatio":1,"memoryRatio":1},
		{"question":"mean value","who":"PostHog","table":"by time","cost":{"wallMs":33,"cpuMs":40,"peakMB":0},"wallRatio":3.3,"cpuRatio":2,"memoryRatio":0,"settledCpuRatio":240}]}`)
	page := filepath.Join(dir, "B.md")
	run(t, "report", "--standard", standard, "--peers", peers, "--section", "Over HTTP="+write("bench.txt", "p99 4 ms\n"),
		"--command", "make benchmarks SCALE=0.5", "--revision", "abc123", "-o", page).wantOK(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{ // in this order: ratios first
		"`make benchmarks SCALE=0.5`", "abc123", "148 numbers", "| mean value | PostHog | by time | 3.3 × | 2.0 × | – | 240.0 × |",
		"| mean value | Lifthouse | as stored | 10 | 20 | 5 |", "57 events of 10 visitors", "## Over HTTP\n\n```\np99 4 ms\n```",
	} {
		next := strings.Index(string(text), want)
		if next <= at {
			t.Errorf("%q is not where it should be:\n%s", want, text)
		}
		at = next
	}
	for want, args := range map[string][]string{
		"--peers: want a file":    {"report", "--standard", standard, "-o", page},
		`--section "x": want`:     {"report", "--standard", standard, "--peers", peers, "--section", "x", "-o", page},
		"-o: want the file to be": {"report", "--standard", standard, "--peers", peers},
	} {
		if r := run(t, args...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit %d, %s; want %q", args, r.code, r.err, want)
		}
	}
}
