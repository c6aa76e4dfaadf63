// Package config resolves the settings of a command. A setting is a flag whose value can also come from the environment
// or a YAML file.
package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// Source is where the value of a setting comes from. A flag overrides the environment, which overrides the file.
type Source string

// The sources of values.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
	FromDefault     Source = "default"
)

// Prefix is the prefix of the environment variables of settings.
const Prefix = "LIFTHOUSE_"

// FileVariable is the environment variable with the path of the file.
const FileVariable = Prefix + "CONFIG"

// otherVariables have the prefix but are not settings. They belong to this program, the embedded engine and the tests.
var otherVariables = []string{FileVariable, "LIFTHOUSE_LIBCHDB", "LIFTHOUSE_LONG"}

// Setting is a flag with the source of its value.
type Setting struct {
	*pflag.Flag
	Source Source
}

// VariableName returns the name of the setting in the environment.
func (s *Setting) VariableName() string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// setValues parses values. It returns a description of the error, or "".
func (s *Setting) setValues(values []string, source Source) string {
	var err error
	if list, ok := s.Value.(pflag.SliceValue); ok {
		err = list.Replace(values)
	} else {
		err = s.Value.Set(strings.Join(values, ","))
	}
	s.Source = source
	if err != nil {
		return fmt.Sprintf("%q: %s", strings.Join(values, ","), bounds.DescribeAllowed(s.Flag, err))
	}
	if err := bounds.CheckFlag(s.Flag); err != nil {
		return err.Error()
	}
	return ""
}

// Settings is the list of settings of a command, sorted by name.
type Settings []*Setting

// SettingsOf returns the settings of a command: its own flags, the flags of every command, and those of the command
// serve.
func SettingsOf(cmd *cobra.Command) Settings {
	var settings Settings
	add := func(flag *pflag.Flag) {
		if own := cmd.Flags().Lookup(flag.Name); own != nil {
			flag = own
		}
		s := &Setting{Flag: flag, Source: FromDefault}
		if flag.Changed {
			s.Source = FromFlag
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
	slices.SortFunc(settings, func(a, b *Setting) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(settings, func(a, b *Setting) bool { return a.Name == b.Name })
}

// LoadValues sets the settings that were not set by a flag, from a file and the environment. The file is optional.
// LoadValues returns all errors.
func (s Settings) LoadValues(file string, getenv func(string) string) (faults []string) {
	if file != "" {
		faults = s.readFile(file)
	}
	for _, setting := range s {
		text := getenv(setting.VariableName())
		if text == "" || setting.Source == FromFlag {
			continue
		}
		if !utf8.ValidString(text) {
			faults = append(faults, fmt.Sprintf("%s %q: must be UTF-8", setting.VariableName(), text))
			continue
		}
		values := []string{text}
		if setting.Value.Type() == "stringSlice" {
			values = strings.Split(text, ",")
		}
		if fault := setting.setValues(values, FromEnvironment); fault != "" {
			faults = append(faults, setting.VariableName()+" "+fault)
		}
	}
	return faults
}

// readFile sets settings from a YAML file, and returns all errors.
func (s Settings) readFile(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{"--config: " + err.Error()}
	}
	body, err := schema.ParseYAML(text)
	if err == nil && body == nil { // empty
		return nil
	}
	if err == nil && body.Kind != yaml.MappingNode {
		err = fmt.Errorf("line %d is not such a line", body.Line)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: must have lines of the form name: value, in one document; %v", path, err)}
	}
	var found []string
	given := map[string]bool{}
	for entry := range slices.Chunk(body.Content, 2) {
		name, value := entry[0].Value, entry[1]
		at := slices.IndexFunc(s, func(s *Setting) bool { return s.Name == name })
		fault := ""
		switch {
		case at < 0:
			fault = ": unknown setting; " + faults.SuggestName(name, s.allNames())
		case given[name]:
			fault = ": " + faults.GivenTwice
		default:
			given[name] = true
			fault = s[at].setNode(value)
		}
		if fault != "" {
			found = append(found, path+": "+name+fault)
		}
	}
	return found
}

// allNames returns the names of the settings.
func (s Settings) allNames() []string {
	names := make([]string, len(s))
	for i, setting := range s {
		names[i] = setting.Name
	}
	return names
}

// setNode sets the setting from a value or a list in a file, unless a flag has set it. It returns the fault of the
// value, to append to the name.
func (s *Setting) setNode(node *yaml.Node) string {
	items := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	values := []string{}
	areScalars := true
	for _, item := range items {
		areScalars = areScalars && item.Kind == yaml.ScalarNode && item.Tag != "!!null"
		values = append(values, item.Value)
	}
	_, isList := s.Value.(pflag.SliceValue)
	if !areScalars || len(values) != 1 && !isList {
		return ": must be one value"
	}
	if s.Source == FromFlag {
		return ""
	}
	if fault := s.setValues(values, FromFile); fault != "" {
		return " " + fault
	}
	return ""
}

// UnknownVariables returns warnings about environment variables with Prefix that are not settings. They are not errors,
// because other programs may use the prefix.
func (s Settings) UnknownVariables(environ []string) []string {
	known := slices.Clone(otherVariables)
	for _, setting := range s {
		known = append(known, setting.VariableName())
	}
	var unknown []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, Prefix) && !slices.Contains(known, name) {
			unknown = append(unknown, fmt.Sprintf("%s is not a setting; %s", name, faults.SuggestName(name, known)))
		}
	}
	slices.Sort(unknown)
	return unknown
}
