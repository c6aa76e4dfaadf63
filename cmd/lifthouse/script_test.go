package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/mattn/go-shellwords"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
	"lifthouse/schema/schematest/tier"
)

// TestScripts runs the scripts of testdata/scripts. go test ./cmd/lifthouse -run TestScripts -rewrite records the
// outputs. The commands are:
//
//	store [FILE]   a new store, with a catalogue of testdata
//	file NAME      writes the input to a file in $DIR
//	sh             executes a script of the shell in $DIR
//	sql            executes statements
//	run [env=…]    executes a command line per line, on the store if there is one: ARGUMENTS [< FILE] [> FILE] [<<< STDIN] [?? REGEXP]. The output is the exit code if it
//	               is not 0, the standard output and the errors, or only their lines that match the expression.
//
// The command line numbers SUBJECT is a report of which only visitors/converted/value of each variation are shown. An
// input is a template with ago, a time, and repeat. Times of this run and tokens are replaced in outputs.
func TestScripts(t *testing.T) {
	scripts.Run(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string {
		t.Helper()
		if strings.HasSuffix(t.Name(), "/foreign") { // has a store for each file
			tier.OnlyLong(t)
		}
		return (&script{dir: t.TempDir(), now: time.Now().UTC().Truncate(time.Second)}).run
	})
}

// script is the state of a script.
type script struct {
	*house
	dir string
	now time.Time
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if s.house != nil {
		s.t = t
	}
	input := s.expand(t, d.Input)
	switch d.Cmd {
	case "store":
		s.house = newHouse(t)
		for _, arg := range d.CmdArgs {
			s.must("apply", "-f", "testdata/"+arg.Key)
		}
	case "file":
		must.OK(t, os.WriteFile(filepath.Join(s.dir, d.CmdArgs[0].Key), []byte(input+"\n"), 0o600))
	case "sh": // in $DIR
		command := exec.CommandContext(t.Context(), "sh", "-ec", input)
		command.Dir, command.Env = s.dir, append(os.Environ(), "TESTDATA="+must.Get(filepath.Abs("testdata"))(t))
		return string(must.Get(command.CombinedOutput())(t))
	case "sql":
		for statement := range strings.SplitSeq(input, ";\n") {
			must.OK(t, s.store.Conn.Exec(t.Context(), statement))
		}
	case "run":
		var out strings.Builder
		env := map[string]string{}
		if arg, given := d.Arg("env"); given {
			for _, pair := range arg.Vals {
				name, value, _ := strings.Cut(strings.ReplaceAll(pair, "$DIR", s.dir), "=")
				env[name] = value
			}
		}
		for line := range strings.SplitSeq(input, "\n") {
			s.execute(t, &out, line, env)
		}
		return out.String()
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
	return ""
}

func (s *script) expand(t *testing.T, text string) string {
	t.Helper()
	functions := template.FuncMap{"ago": func(ago string) string {
		return s.now.Add(-must.Get(time.ParseDuration(ago))(t)).Format(time.RFC3339)
	}}
	return scripts.Expand(t, strings.ReplaceAll(text, "$DIR", s.dir), functions)
}

func (s *script) execute(t *testing.T, out *strings.Builder, line string, env map[string]string) {
	t.Helper()
	line, pattern, _ := strings.Cut(line, " ?? ")
	line, input, given := strings.Cut(line, " <<< ")
	line, written, toFile := strings.Cut(line, " > ")
	line, read, fromFile := strings.Cut(line, " < ")
	if fromFile {
		input = read
	}
	if given {
		text := input + "\n"
		input = filepath.Join(s.dir, "stdin")
		must.OK(t, os.WriteFile(input, []byte(text), 0o600))
	}
	args := must.Get(shellwords.Parse(line))(t)
	if args[0] == "numbers" {
		fmt.Fprintln(out, s.reported(args[1:]...))
		return
	}
	h := s.house
	if h == nil {
		h = &house{}
	}
	h.t, h.input, h.env = t, input, env
	code, printed, complaints := h.run(args...)
	if code != exitOK {
		fmt.Fprintln(out, "exit", code)
	}
	if toFile {
		must.OK(t, os.WriteFile(written, []byte(printed), 0o600))
		printed = ""
	}
	shown := regexp.MustCompile(pattern)
	for text := range strings.Lines(s.mask(printed + seeHelp.ReplaceAllString(complaints, ""))) {
		if text = strings.TrimRight(text, " \n"); shown.MatchString(text) {
			fmt.Fprintln(out, text)
		}
	}
}

var (
	seeHelp   = regexp.MustCompile(`Run 'lifthouse[^']* --help' for the commands and their flags.\n`)
	secret    = regexp.MustCompile(`lh_[\w-]{43}`)
	noteID    = regexp.MustCompile(`note_[0-9a-f]{32}`)
	readoutID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	hash      = regexp.MustCompile(`[0-9a-f]{64}`)
	password  = regexp.MustCompile(`: [A-Z0-9]{26}\n`)
	setting   = regexp.MustCompile(` +(\S+) +(\((?:flag|environment|file|default)\)\n)`)
	speed     = regexp.MustCompile(`reports include all events: \d+\.\d s, \d+ rows/s\n`)
	late      = regexp.MustCompile(`\d{2,} days late`)
	timeOfRun = regexp.MustCompile(`20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?)?`)
)

// mask replaces what differs from run to run: the folder, tokens, ids of notes, durations, and times by their distance from the start
// of the script.
func (s *script) mask(text string) string {
	text = strings.NewReplacer(s.dir, "$DIR", " "+os.TempDir()+" ", " $TMP ").Replace(text)
	text = password.ReplaceAllString(hash.ReplaceAllString(text, "HASH"), ": PASSWORD\n")
	text = readoutID.ReplaceAllString(noteID.ReplaceAllString(text, "note_ID"), "READOUT")
	text = setting.ReplaceAllString(text, " $1 $2") // the columns are as wide as the name of the folder
	text = speed.ReplaceAllString(secret.ReplaceAllString(text, "lh_TOKEN"), "")
	text = late.ReplaceAllString(text, "(days) late") // events with times of the script, such as of May 2026
	return timeOfRun.ReplaceAllStringFunc(text, func(text string) string {
		plain := strings.Replace(strings.TrimSuffix(text, "Z"), "T", " ", 1)
		layout := time.DateTime[:min(len(plain), len(time.DateTime))]
		at, err := time.Parse(layout, plain)
		switch ago := s.now.Sub(at); {
		case err != nil || ago.Abs() > 60*24*time.Hour:
			return text
		case layout == time.DateOnly:
			return "(date)"
		case ago.Abs() < 2*time.Minute:
			return "(now)"
		default:
			return fmt.Sprintf("(now %s)", -ago.Round(5*time.Minute))
		}
	})
}

// reported returns visitors/converted/value of each variation in a report.
func (h *house) reported(args ...string) string {
	h.t.Helper()
	r := must.JSON[result.Report](h.t, h.must(append([]string{"report", "--json"}, args...)...))
	var counts []string
	for _, v := range r.Variations {
		counts = append(counts, fmt.Sprintf("%d/%d/%s", v.Visitors, v.ConvertedVisitors, v.Value))
	}
	return strings.Join(counts, " ")
}
