// Package bounds defines flags whose values must be within bounds. A value can also come from the environment or a
// file.
package bounds

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"lifthouse/schema"
)

// Upper bounds for several flags. They exceed all useful values, and are far too small to overflow when they are added,
// multiplied or converted.
const (
	MaxDays   = 36_500 // 100 years
	MaxAge    = MaxDays * 24 * time.Hour
	MaxWait   = 24 * time.Hour
	MaxMemory = 1 << 50 // bytes
	MaxCount  = 1_000_000_000_000
	// MaxVisitorEvents keeps the events of a visitor in memory.
	MaxVisitorEvents = 1_000_000
	MaxID            = math.MaxInt64 // an id is any positive integer of 64 bits
)

type number interface {
	int | int64 | uint64 | float64 | time.Duration
}

// Var defines a flag whose value must be from least to most. The preset may be outside these bounds if the flag is
// required.
func Var[T number](flags *pflag.FlagSet, target *T, name string, preset, least, most T, usage string) {
	*target = preset
	flags.Var(&value[T]{target: target, least: least, most: most}, name, usage)
	if preset == 0 {
		flags.Lookup(name).DefValue = "0" // the usage omits this default
	}
}

type value[T number] struct {
	target      *T
	least, most T
	text        string // as given
}

// Set parses a value. It accepts values outside the bounds, which CheckFlag reports.
func (v *value[T]) Set(text string) error {
	var parsed any
	var err error
	switch any(v.least).(type) {
	case int:
		var n int64
		n, err = strconv.ParseInt(text, 0, strconv.IntSize)
		parsed = int(n)
	case int64:
		parsed, err = strconv.ParseInt(text, 0, 64)
	case uint64:
		parsed, err = strconv.ParseUint(text, 0, 64)
	case float64:
		parsed, err = strconv.ParseFloat(text, 64)
	case time.Duration:
		parsed, err = schema.ParseDuration(text)
	}
	if err != nil {
		return errors.New(v.describeAllowed())
	}
	*v.target = parsed.(T) //nolint:forcetypeassert // the switch has all types
	v.text = text
	return nil
}

// checkBounds returns an error if the value is outside the bounds or NaN.
func (v *value[T]) checkBounds() error {
	if *v.target >= v.least && *v.target <= v.most {
		return nil
	}
	return fmt.Errorf("%q: %s", v.text, v.describeAllowed())
}

// describeAllowed describes the values that are allowed.
func (v *value[T]) describeAllowed() string {
	switch least := any(v.least).(type) {
	case float64:
		return fmt.Sprintf("must be a number from %v to %v", v.least, v.most)
	case time.Duration:
		most, _ := any(v.most).(time.Duration)
		return fmt.Sprintf("must be a duration such as 60s or 30d, from %s to %s", shortDuration(least),
			shortDuration(most))
	}
	return fmt.Sprintf("must be an integer from %v to %v", v.least, v.most)
}

// shortDuration formats a duration without trailing zero units: 24h and not 24h0m0s.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// String returns the value as text.
func (v *value[T]) String() string {
	if v.target == nil {
		return ""
	}
	return fmt.Sprint(*v.target)
}

// Type returns the name of the type, for the usage.
func (v *value[T]) Type() string {
	if _, ok := any(v.least).(time.Duration); ok {
		return "duration"
	}
	return fmt.Sprintf("%T", v.least)
}

// CheckFlag returns an error if the value of the flag is outside the bounds.
func CheckFlag(flag *pflag.Flag) error {
	if v, ok := flag.Value.(interface{ checkBounds() error }); ok {
		return v.checkBounds()
	}
	return nil
}

// FlagFaults returns the errors in the flags of a command line.
func FlagFaults(flags *pflag.FlagSet) []string {
	var faults []string
	flags.Visit(func(flag *pflag.Flag) {
		if err := CheckFlag(flag); err != nil {
			faults = append(faults, fmt.Sprintf("--%s %v", flag.Name, err))
		}
	})
	return faults
}

// ExplainParseError adds to the error of parsing a command line which values are allowed.
func ExplainParseError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	return fmt.Errorf("--%s %q: %s", flag.Name, invalid.GetValue(), DescribeAllowed(flag, invalid.Unwrap()))
}

// DescribeAllowed describes the allowed values of a flag whose Set method returned err.
func DescribeAllowed(flag *pflag.Flag, err error) string {
	switch {
	case flag.Value.Type() == "bool":
		return "must be true or false"
	case errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return "must be a number"
	}
	return err.Error()
}
