package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"lifthouse/schema"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Where the value of a setting can come from; the first that has one wins.
const (
	fromFlag        = "flag"
	fromEnvironment = "environment"
	fromFile        = "file"
	fromDefault     = "default"
)

const (
	environmentPrefix = "LIFTHOUSE_"
	configVariable    = environmentPrefix + "CONFIG"
)

// otherVariables are ours and no settings: of this program, its engine and its
// tests.
var otherVariables = []string{configVariable, "LIFTHOUSE_LIBCHDB", "LIFTHOUSE_LONG", "LIFTHOUSE_TEST_RUN"}

// setting is a flag that the environment and the file have too.
type setting struct {
	*pflag.Flag
	from string
}

// variable is the setting's name in the environment.
func (s *setting) variable() string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// shown is the value for people and logs, without secrets.
func (s *setting) shown() string {
	if s.Name == storeFlag {
		return schema.ShowAddress(s.Value.String())
	}
	return s.Value.String()
}

// set gives the setting a value; the text says what is wrong with it, or
// nothing.
func (s *setting) set(values []string, from string) string {
	var err error
	if list, ok := s.Value.(pflag.SliceValue); ok {
		err = list.Replace(values)
	} else {
		err = s.Value.Set(strings.Join(values, ","))
	}
	s.from = from
	if err == nil {
		return ""
	}
	want := map[string]string{
		"duration": "a duration such as 60s", "int": "a whole number", "int64": "a whole number", "float64": "a number",
	}[s.Value.Type()]
	return fmt.Sprintf("%q: want %s", strings.Join(values, ","), cmp.Or(want, err.Error()))
}

// configure fills in what the command line leaves open, from the environment
// and the file, and refuses a configuration that is wrong with all its faults.
func (p *program) configure(cmd *cobra.Command) error {
	p.settings = settingsOf(cmd)
	var faults []string
	if p.config == "" {
		p.config = p.getenv(configVariable)
	}
	if p.config != "" {
		faults = p.readConfig(p.path(p.config))
	}
	for _, s := range p.settings {
		text := p.getenv(s.variable())
		if text == "" || s.from == fromFlag {
			continue
		}
		values := []string{text}
		if s.Value.Type() == "stringSlice" {
			values = strings.Split(text, ",")
		}
		if wrong := s.set(values, fromEnvironment); wrong != "" {
			faults = append(faults, s.variable()+" "+wrong)
		}
	}
	// A value that could not be read is judged as its default or as 0, in which
	// nothing is wrong: it has one fault.
	faults = slices.Concat(faults, p.serving.faults(), p.limitFaults())
	if len(faults) > 0 {
		return usageError{fmt.Errorf("the configuration is wrong:\n  %s", strings.Join(faults, "\n  "))}
	}
	return nil
}

// settingsOf are the flags of serve and those of every command, as this
// command has them.
func settingsOf(cmd *cobra.Command) []*setting {
	var settings []*setting
	add := func(flag *pflag.Flag) {
		if own := cmd.Flags().Lookup(flag.Name); own != nil {
			flag = own
		}
		s := &setting{Flag: flag, from: fromDefault}
		if flag.Changed {
			s.from = fromFlag
		}
		if flag.Name != "config" && flag.Name != "help" {
			settings = append(settings, s)
		}
	}
	cmd.Root().PersistentFlags().VisitAll(add)
	serve, _, err := cmd.Root().Find([]string{"serve"})
	if err == nil {
		serve.LocalNonPersistentFlags().VisitAll(add)
	}
	slices.SortFunc(settings, func(a, b *setting) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(settings, func(a, b *setting) bool { return a.Name == b.Name })
}

// readConfig takes the file's values, and returns what is wrong with it.
func (p *program) readConfig(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{"--config: " + err.Error()}
	}
	var entries yaml.MapSlice
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return []string{fmt.Sprintf("%s: want lines of name: value; %v", path, err)}
	}
	var faults []string
	for _, entry := range entries {
		name := fmt.Sprint(entry.Key)
		at := slices.IndexFunc(p.settings, func(s *setting) bool { return s.Name == name })
		if at < 0 {
			faults = append(faults, fmt.Sprintf("%s: %s: unknown; the nearest known is %s", path, name, nearest(name, p.settings)))
			continue
		}
		s := p.settings[at]
		values, ok := scalars(entry.Value)
		if _, list := s.Value.(pflag.SliceValue); !ok || len(values) != 1 && !list {
			faults = append(faults, fmt.Sprintf("%s: %s: want one value", path, name))
			continue
		}
		if s.from == fromFlag {
			continue
		}
		if wrong := s.set(values, fromFile); wrong != "" {
			faults = append(faults, fmt.Sprintf("%s: %s %s", path, name, wrong))
		}
	}
	return faults
}

// scalars are the texts of a value or of a list of values.
func scalars(value any) ([]string, bool) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	values := []string{}
	for _, item := range list {
		switch item.(type) {
		case string, bool, int, int64, uint64, float64:
			values = append(values, fmt.Sprint(item))
		default:
			return nil, false
		}
	}
	return values, true
}

func nearest(name string, settings []*setting) string {
	return slices.MinFunc(settings, func(a, b *setting) int {
		return cmp.Compare(levenshtein.ComputeDistance(name, a.Name), levenshtein.ComputeDistance(name, b.Name))
	}).Name
}

// unknownVariables tells of variables that look like settings and are none.
// They are not refused: a cluster's own variables may begin as ours do.
func (p *program) unknownVariables() []string {
	var unknown []string
	for _, entry := range p.environ {
		name, _, _ := strings.Cut(entry, "=")
		known := slices.Contains(otherVariables, name) || slices.ContainsFunc(p.settings, func(s *setting) bool { return s.variable() == name })
		if rest, ours := strings.CutPrefix(name, environmentPrefix); ours && !known {
			like := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
			at := slices.IndexFunc(p.settings, func(s *setting) bool { return s.Name == nearest(like, p.settings) })
			unknown = append(unknown, fmt.Sprintf("%s is no setting; the nearest is %s", name, p.settings[at].variable()))
		}
	}
	slices.Sort(unknown)
	return unknown
}
