// Package boundstest checks that a program rejects extreme values of its flags.
package boundstest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Program is a program to check.
type Program struct {
	Root *cobra.Command
	// Run executes a command line.
	Run func(args ...string) (code int, complaints string)
	// Arguments are the other arguments that a command needs, by the path of the command.
	Arguments map[string][]string
	// Meaningful lists the extremes that are allowed, such as account=1, each with the reason.
	Meaningful map[string]string
}

// exitUsage is the exit code of an invalid command line.
const exitUsage = 2

var integers = []string{fmt.Sprint(math.MinInt64), "-1", fmt.Sprint(math.MaxInt64), "9223372036854775808"}

// extremes are test values by the type of the flag. All types that are not listed must be integers.
var extremes = map[string][]string{
	"bool": nil, "string": nil, "stringSlice": nil, "stringArray": nil,
	"uint64":   {"-1", fmt.Sprint(uint64(math.MaxUint64)), "18446744073709551616"},
	"float64":  {"NaN", "+Inf", "-Inf", "-1", "-1e+308", "1e+308"},
	"duration": {"-1ns", "-2562047h", "2562047h", "2562048h"},
}

// ExtremeValues returns extreme values of a flag, or nil if the flag is not a number.
func ExtremeValues(flag *pflag.Flag) []string {
	if values, known := extremes[flag.Value.Type()]; known {
		return values
	}
	return integers
}

// CheckFlags runs every command with the extremes of each of its flags. An error must name the flag, the value and what
// is allowed.
func (p *Program) CheckFlags(t *testing.T) {
	t.Helper()
	left := maps.Clone(p.Meaningful)
	p.eachFlag(p.Root, func(cmd *cobra.Command, flag *pflag.Flag) {
		for _, value := range ExtremeValues(flag) {
			if _, allowed := p.Meaningful[flag.Name+"="+value]; allowed {
				delete(left, flag.Name+"="+value)
				continue
			}
			args := slices.Concat(strings.Fields(cmd.CommandPath())[1:], []string{"--" + flag.Name + "=" + value},
				p.Arguments[cmd.CommandPath()])
			code, complaints := p.Run(args...)
			if want := fmt.Sprintf("--%s %q: must be ", flag.Name, value); code != exitUsage ||
				!strings.Contains(complaints, want) {
				t.Errorf("%q: exit %d, %q; want %d and %q", args, code, complaints, exitUsage, want)
			}
		}
	})
	for extreme := range left {
		t.Errorf("no command has --%s, which is listed as meaningful", extreme)
	}
}

// eachFlag calls visit with the flags of a command and of its subcommands.
func (p *Program) eachFlag(cmd *cobra.Command, visit func(*cobra.Command, *pflag.Flag)) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { visit(cmd, flag) })
	for _, sub := range cmd.Commands() {
		p.eachFlag(sub, visit)
	}
}
