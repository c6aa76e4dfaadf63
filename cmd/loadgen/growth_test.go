package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/loadgen"
)

// TestGrowth measures campaigns of up to 5 million visitors in small: only the
// largest has sums, so the others are answered another way, which it says.
func TestGrowth(t *testing.T) {
	dir := t.TempDir()
	store := "embedded:" + filepath.Join(dir, "store")
	run(t, "standard", "--store", store, "--scale", "0.0006").wantOK(t)
	r := run(t, "growth", "--store", store, "--scale", "0.0006")
	if r.code != exitFailed || !strings.Contains(r.err, "it was answered another way: few") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	for want, args := range map[string][]string{
		"want an embedded store": {"growth", "--store", "http://127.0.0.1:1"},
		"--scale 0":              {"growth", "--store", store, "--scale", "0"},
	} {
		if r := run(t, args...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := run(t, "growth", "--store", "embedded:"+filepath.Join(dir, "other")); r.code != exitFailed || !strings.Contains(r.err, "no standard data set") {
		t.Errorf("an empty store: exit %d, %s", r.code, r.err)
	}
}

func TestGrowthIsShown(t *testing.T) {
	g := loadgen.Growth{Visitors: []int64{50, 5000}, Rows: []loadgen.GrowthRow{
		{Text: "counted", WallMS: []float64{9, 900}, CPUMS: []float64{10, 1500}},
		{Text: "unfiltered", WallMS: []float64{8, 8.5}, CPUMS: []float64{9, 9.9}},
	}}
	var table strings.Builder
	if err := g.Write(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"50", "5000", "8.0", "8.5", "9.9", "1.10", "150.00"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %s in the table:\n%s", want, table.String())
		}
	}
	dir := t.TempDir()
	file := func(name string, content any) string {
		path := filepath.Join(dir, name)
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	page := filepath.Join(dir, "B.md")
	run(t, "report", "--standard", file("s.json", loadgen.StandardResult{}), "--peers", file("p.json", loadgen.PeersResult{}), "--growth", file("g.json", g), "-o", page).wantOK(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| | 50 | 5000 | CPU ms | × |\n|---|--:|--:|--:|--:|\n", "\n| unfiltered | 8.0 | 8.5 | 9.9 | 1.10 |\n",
		"title \"from the sums: unfiltered\"", "x-axis \"visitors\" [\"50\", \"5000\"]", "    line [8.0, 8.5]\n```",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q on the page:\n%s", want, text)
		}
	}
}
