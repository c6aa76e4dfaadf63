package loadgen

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine is where figures were measured, and with what.
type Machine struct {
	Model    string // of the processor
	Cores    int
	Memory   string
	System   string
	Go       string
	Revision string // of this program
}

// ThisMachine names the machine as its system does; what it does not tell is
// unknown.
func ThisMachine() Machine {
	return Machine{
		Model:  procField("/proc/cpuinfo", "model name"),
		Cores:  runtime.GOMAXPROCS(0),
		Memory: gigabytes(procField("/proc/meminfo", "MemTotal")),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Go:     runtime.Version(), Revision: revision(),
	}
}

const unknown = "unknown"

// procField is the first value of a name in a file of lines "name: value".
func procField(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // one of the system's own
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

// gigabytes writes an amount of "123 kB" so.
func gigabytes(amount string) string {
	kibibytes, err := strconv.ParseFloat(strings.TrimSuffix(amount, " kB"), 64)
	if err != nil {
		return amount
	}
	return fmt.Sprintf("%.1f GiB", kibibytes/(1<<20))
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	revision, changed := unknown, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", with changes"
		}
	}
	return revision + changed
}
