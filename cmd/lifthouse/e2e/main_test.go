// Package e2e tests the built program as its users run it: processes, a browser, and servers that are killed.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"lifthouse/schema/schematest"
)

// Exit codes of the program, as its help documents them.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRejected = 3
)

// binary is the path of the program.
var binary string

func TestMain(m *testing.M) {
	schematest.Main(m, build)
}

// build builds lifthouse, with the race detector if the tests have it.
func build(dir string) error {
	binary = filepath.Join(dir, "lifthouse")
	args := []string{"build", "-tags", "nomsgpack", "-o", binary}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	command := exec.CommandContext(context.Background(), "go", append(args, "lifthouse/cmd/lifthouse")...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building lifthouse: %w", err)
	}
	return nil
}
