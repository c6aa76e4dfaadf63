package main

import (
	"path/filepath"
	"testing"

	"lifthouse/cmd/internal/bounds/boundstest"
)

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
