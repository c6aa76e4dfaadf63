package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

func TestForgetAsksAndErases(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson")
	for _, c := range []struct {
		args []string
		in   string
		code int
		want string
	}{
		{nil, "", exitUsage, "--visitor: must be the id of a visitor"},
		{[]string{"--visitor=c1"}, "n\n", exitFailed, "nothing was deleted"},
		{[]string{"--visitor=c1"}, "y\n", exitOK, "deleted 2 events of 1 subject"},
		{[]string{"--visitor=c1", "--yes"}, "", exitOK, "deleted 0 events of 0 subjects"},
	} {
		h.input = filepath.Join(t.TempDir(), "in")
		must.OK(t, os.WriteFile(h.input, []byte(c.in), 0o600))
		code, out, complaints := h.run(append([]string{"forget"}, c.args...)...)
		if code != c.code || !strings.Contains(out+complaints, c.want) {
			t.Errorf("forget %q: exit %d, %q; want %d and %q", c.args, code, out+complaints, c.code, c.want)
		}
	}
}
