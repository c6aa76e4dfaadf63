package measure

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes a machine and this program.
type Machine struct {
	Model    string // of the processor
	Cores    int    // GOMAXPROCS
	Memory   string // total, in GiB
	System   string // operating system and architecture
	Go       string // version
	Revision string // of this program; set by the caller
}

// ThisMachine describes the machine that runs this program. Facts that the
// system does not provide are "unknown".
func ThisMachine() Machine {
	return Machine{
		Model:  procField("/proc/cpuinfo", "model name"),
		Cores:  runtime.GOMAXPROCS(0),
		Memory: toGibibytes(procField("/proc/meminfo", "MemTotal")),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Go:     runtime.Version(),
	}
}

const unknown = "unknown"

// procField returns the first value of a field in a file of "name: value"
// lines.
func procField(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // the paths are constants
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if field, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(field) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// toGibibytes converts an amount such as "123 kB" to GiB.
func toGibibytes(amount string) string {
	kibibytes, err := strconv.ParseFloat(strings.TrimSuffix(amount, " kB"), 64)
	if err != nil {
		return amount
	}
	return fmt.Sprintf("%.1f GiB", kibibytes/(1<<20))
}
