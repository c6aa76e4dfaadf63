package catalogue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata/scripts. -rewrite records their outputs. The commands are:
//
//	apply [FILE] [dry] [prune] [correct] [account=N]
//	                                 applies the input, or FILE with a replacement per line of the input, FROM => TO, and
//	                                 lists the changes or the faults
//	edit FILE                        applies FILE dry with each replacement alone
//	read                             reads the input and writes it as JSON
//	field                            reads a campaign per line, with these fields
//	text [times=N] [in=…]            reads a text per line, which is quoted as in Go, N times, after another one
//	exported                         shows the catalogue as a file, and applies that file
//	state KIND ID                    shows the state of a campaign or a widget
//	start ID, stop ID                starts or stops a campaign, and shows its state
//	token ACCOUNT [list]             creates a token, and counts those of the account
//	undeclared                       lists the names of events that are undeclared: KIND ID EXPERIMENT VARIATION [GOAL EVENT]
//	ended DATE                       lists what ended until then
//
// Times of this run are t1, t2 and so on.
func TestScripts(t *testing.T) {
	scripts.Run(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string {
		t.Helper()
		return (&script{Catalogue: open(t)}).run
	})
}

// script is the state of a script.
type script struct {
	*catalogue.Catalogue
	times []string
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var out strings.Builder
	switch d.Cmd {
	case "apply":
		text := d.Input
		if len(d.CmdArgs) > 0 && strings.HasSuffix(d.CmdArgs[0].Key, ".yaml") {
			text = edited(t, d, strings.Split(d.Input, "\n")...)
		}
		return s.apply(t, d, text)
	case "read":
		file, err := catalogue.ReadYAML(strings.NewReader(d.Input))
		if err == nil {
			err = file.WriteJSON(&out)
		}
		return out.String() + said(err)
	case "exported":
		must.OK(t, s.Snapshot().CatalogueFile().WriteYAML(&out))
		return s.mask(out.String()) + s.apply(t, d, out.String())
	case "state":
		return s.state(t, d.CmdArgs[0].Key, d.CmdArgs[1].Key)
	case "start", "stop":
		id := must.Get(strconv.ParseInt(d.CmdArgs[0].Key, 10, 64))(t)
		_, found, err := s.Switch(t.Context(), 1, 0, schema.SubjectCampaign, id, d.Cmd == "start")
		if err != nil || !found {
			return fmt.Sprint("found ", found, "\n", said(err))
		}
		return s.state(t, "campaign", d.CmdArgs[0].Key)
	case "token": // the tokens of an account, with a new one
		id := must.Get(strconv.ParseInt(d.CmdArgs[0].Key, 10, 64))(t)
		if !d.HasArg("list") {
			_, _, err := s.CreateToken(t.Context(),
				catalogue.Token{AccountID: id, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
			must.OK(t, err)
		}
		return fmt.Sprint(len(s.Snapshot().AccountTokens(id)), " tokens")
	case "undeclared":
		return s.undeclared(t, d.Input)
	case "ended":
		for _, e := range s.Snapshot().EndedSubjects(must.Get(time.Parse(time.DateOnly, d.CmdArgs[0].Key))(t)) {
			fmt.Fprintf(&out, "%s %d of website %d, %s, ended on %s\n", e.Kind, e.ID, e.WebsiteID, e.Name,
				e.EndDate.Format(time.DateOnly))
		}
		return out.String()
	}
	for line := range strings.SplitSeq(d.Input, "\n") {
		switch d.Cmd {
		case "field":
			_, err := catalogue.ReadYAML(strings.NewReader("accounts:\n- websites:\n  - campaigns: [{" + unquoted(t,
				line) + "}]"))
			out.WriteString(strings.ReplaceAll(said(err), "accounts[0].websites[0].campaigns[0].", ""))
		case "text":
			times, in := 1, ""
			d.MaybeScanArgs(t, "times", &times)
			d.MaybeScanArgs(t, "in", &in)
			_, err := catalogue.ReadYAML(strings.NewReader(in + strings.Repeat(unquoted(t, line), times)))
			out.WriteString(said(err))
		case "edit":
			applied := s.apply(t, &datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "dry"}}}, edited(t, d, line))
			out.WriteString(longLine.ReplaceAllString(applied, "$1…"))
		default:
			t.Fatalf("%s: no such command", d.Pos)
		}
	}
	return out.String()
}

// state returns the fields of the state of a campaign or a widget.
func (s *script) state(t *testing.T, kind, name string) string {
	t.Helper()
	owned := s.Snapshot().AccountResources(1)
	id := must.Get(strconv.ParseInt(name, 10, 64))(t)
	state := owned.Campaigns[id].State
	if kind == "widget" {
		state = owned.Widgets[id].State
	}
	fields := must.JSON[map[string]json.RawMessage](t, must.Get(json.Marshal(state))(t))
	var out strings.Builder
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&out, "%s: %s\n", field, fields[field])
	}
	return s.mask(out.String())
}

// undeclared adds the events in two parts.
func (s *script) undeclared(t *testing.T, lines string) string {
	t.Helper()
	var events []schema.Event
	for line := range strings.SplitSeq(lines, "\n") {
		e := schema.Event{WebsiteID: 1, Kind: schema.KindView}
		_ = must.Get(fmt.Sscan(line+" 0 0", &e.Subject, &e.SubjectID, &e.ExperimentID, &e.VariationID, &e.GoalID,
			&e.EventID))(t)
		if e.GoalID > 0 {
			e.Kind = schema.KindGoal
		}
		events = append(events, e)
	}
	named := catalogue.NewEventNames(func(schema.NamedID) string { return "" })
	named.AddEvents(events[:len(events)/2])
	named.AddEvents(events[len(events)/2:])
	var out strings.Builder
	for _, u := range s.Snapshot().UndeclaredNames(named) {
		fmt.Fprintln(&out, u.Events, u.Detail)
	}
	return out.String()
}

// edited returns the file of a command with replacements, each FROM => TO.
func edited(t *testing.T, d *datadriven.TestData, replacements ...string) string {
	t.Helper()
	text := string(must.Get(os.ReadFile("testdata/" + d.CmdArgs[0].Key))(t))
	for _, line := range replacements {
		from, to, _ := strings.Cut(scripts.Expand(t, line, nil), " => ")
		if from = unquoted(t, from); !strings.Contains(text, from) {
			t.Errorf("%s: the file lacks %q", d.Pos, from)
		}
		text = strings.Replace(text, from, unquoted(t, to), 1)
	}
	return text
}

func (s *script) apply(t *testing.T, d *datadriven.TestData, text string) string {
	t.Helper()
	file, err := catalogue.ReadYAML(strings.NewReader(text))
	var wrong faults.List
	if err != nil && !errors.As(err, &wrong) {
		return said(err)
	}
	file.Prune, file.CorrectShares = d.HasArg("prune"), d.HasArg("correct")
	d.MaybeScanArgs(t, "account", &file.AccountID)
	changes, err := s.ApplyFile(t.Context(), file, d.HasArg("dry"))
	var out strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&out, "%s %d %s", c.Kind, c.ID, c.Name)
		switch {
		case c.Created:
			out.WriteString(": created")
		case c.Archived:
			out.WriteString(": archived")
		}
		for _, field := range c.Fields {
			fmt.Fprintf(&out, "; %s: %s -> %s", field.Field, field.Before, field.After)
		}
		out.WriteString("\n")
		for _, note := range c.Notes {
			fmt.Fprintf(&out, "  %s\n", note)
		}
	}
	return s.mask(out.String()) + said(err)
}

var longLine = regexp.MustCompile(`(?m)^(.{199}).{2,}$`)

// said returns the first lines of an error, with at most 200 characters of each.
func said(err error) string {
	if err == nil {
		return "ok\n"
	}
	var out strings.Builder
	for i, line := range strings.Split(err.Error(), "\n") {
		if i == 20 {
			out.WriteString("and more\n")
			break
		}
		out.WriteString(longLine.ReplaceAllString(line, "$1…") + "\n")
	}
	return out.String()
}

// unquoted resolves the escapes of Go in a text.
func unquoted(t *testing.T, text string) string {
	t.Helper()
	return must.Get(strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`))(t)
}

var timeOfRun = regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z`)

func (s *script) mask(text string) string {
	return timeOfRun.ReplaceAllStringFunc(text, func(text string) string {
		if at, err := time.Parse(time.RFC3339, text); err != nil || time.Since(at).Abs() > time.Hour {
			return text
		}
		for i, seen := range s.times {
			if seen == text {
				return fmt.Sprint("t", i+1)
			}
		}
		s.times = append(s.times, text)
		return fmt.Sprint("t", len(s.times))
	})
}

// TestWrongElementsKeepThePlacesOfOthers has an element of another type before an invalid one.
func TestWrongElementsKeepThePlacesOfOthers(t *testing.T) {
	var list struct {
		Items []struct {
			Name string `yaml:"name"`
		} `yaml:"items"`
	}
	_, err := catalogue.ReadDocument(strings.NewReader("items: [7, {name: second}]"), &list)
	must.That(t, err != nil, "%+v, %v", list.Items, err)
	check.Contains(t, err.Error(), `items[0]: "7": must have fields: name`, "%+v, %v", list.Items, err)
	must.Equal(t, len(list.Items), 2, "%+v, %v", list.Items, err)
	check.Equal(t, list.Items[1].Name, "second", "%+v, %v", list.Items, err)
}
