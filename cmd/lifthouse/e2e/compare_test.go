package e2e

import (
	"bytes"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestCompareNeedsNoLibrary(t *testing.T) {
	cmd := lifthouse(t, "compare", "--control", "716/11927", "--treatment", "900/12010", "--json")
	cmd.Env = append(cmd.Env, "LIFTHOUSE_LIBCHDB=/absent/libchdb.so", "LIFTHOUSE_STORE=nonsense")
	out, err := cmd.Output()
	check.That(t, err == nil && bytes.HasPrefix(out, []byte(`{"line":1,"metric":"binary",`)), "%v, %s", err, out)
}
