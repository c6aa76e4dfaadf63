package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/cockroachdb/datadriven"

	"lifthouse/api"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata, each on a store of its own. go test ./api -run TestScripts -rewrite records
// the responses. The commands are:
//
//	store FILE [option=value…]   serves a store with a catalogue
//	apply                        applies the input to the catalogue: a line "a => b" replaces a by b in FILE
//	events SUBJECT               stores and folds events: minute, visitor, variation, kind, goal, value, extra value, device
//	send [as=SCOPE-ACCOUNT-WEBSITE] [type=…] [show=…] [headers=…] [keep=(FIELD,NAME)] [most=BYTES]
//	                             sends a request per line: METHOD PATH [| Header: value]… [<< body]
//	tools [as=…]                 calls a tool of MCP per line, with arguments in JSON, and shows the errors
//	count                        executes a query of two numbers
//	audit                        lists the changes that a token made
//
// A request is a template. A response is its status and its fields in show, or the code and the faults of a problem.
func TestScripts(t *testing.T) {
	scripts.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return (&script{}).run
	})
}

// script is the state of a script.
type script struct {
	*server
	file   string // the catalogue
	tokens map[string]string
	times  []string          // of this run, in the order in which they were shown
	tags   []string          // entity tags, in the same way
	kept   map[string]string // texts of responses by the names in keep
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if s.server != nil {
		s.t = t
	}
	switch d.Cmd {
	case "store":
		s.open(t, d)
	case "apply":
		file := s.file
		for line := range strings.SplitSeq(d.Input, "\n") {
			if before, after, replaces := strings.Cut(line, " => "); replaces {
				file = strings.Replace(file, before, after, 1)
			}
		}
		s.apply(file)
	case "events":
		s.fold(parseEvents(t, d.CmdArgs[0].Key, d.Input)...)
	case "source":
		name := d.CmdArgs[0].Key
		sender := catalogue.Sender{}
		d.MaybeScanArgs(t, "mapping", &sender.Mapping)
		if rate := 0; d.MaybeScanArgs(t, "rate", &rate) {
			sender.Rate = &rate
		}
		sender.Mapping = strings.Replace(sender.Mapping, ":", ": ", 1)
		s.kept[name] = s.sourceKey(name, sender)
	case "count":
		var rows, some uint64
		must.OK(t, s.conn.QueryRow(t.Context(), d.Input).Scan(&rows, &some))
		return fmt.Sprint(rows, " ", some)
	case "tools":
		as := "read"
		d.MaybeScanArgs(t, "as", &as)
		session, errors := s.connected(s.token(t, as)), ""
		for line := range strings.SplitSeq(d.Input, "\n") {
			tool, arguments, _ := strings.Cut(line, " ")
			answer := call(t, session, tool, arguments)
			check.That(t, answer.isError, "%s is answered", line)
			errors += answer.text + "\n"
		}
		return errors
	case "audit":
		var changes strings.Builder
		for _, c := range must.Get(s.catalogue.ReadAuditLog(t.Context(), 1, time.Unix(0, 0), 100))(t) {
			if strings.HasPrefix(c.By, "token") {
				fmt.Fprintln(&changes, c.Kind, c.ID, c.Change)
			}
		}
		return changes.String()
	case "send":
		var answers strings.Builder
		for line := range strings.SplitSeq(d.Input, "\n") {
			answers.WriteString(s.answer(t, d, line) + "\n")
		}
		return answers.String()
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
	return ""
}

// open serves a store with a token of each kind.
func (s *script) open(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	s.server = newEmptyServer(t, func(o *api.Options) {
		for _, arg := range d.CmdArgs[1:] {
			switch n, _ := strconv.ParseInt(arg.Vals[0], 10, 64); arg.Key {
			case "origins":
				o.Origins = arg.Vals
			case "max-body":
				o.MaxBody = n
			case "max-events":
				o.MaxEvents = n
			default:
				t.Fatalf("%s: no option %s", d.Pos, arg.Key)
			}
		}
	})
	s.file, s.kept = string(must.Get(os.ReadFile("testdata/"+d.CmdArgs[0].Key))(t)), map[string]string{}
	s.apply(s.file)
	s.tokens = map[string]string{"nobody": "", "stranger": "lh_unknown"}
}

// token returns a token by its name: SCOPE, SCOPE-ACCOUNT or SCOPE-ACCOUNT-WEBSITE, or a text that was kept.
func (s *script) token(t *testing.T, name string) string {
	t.Helper()
	if secret, known := s.tokens[name]; known {
		return secret
	}
	if secret, known := s.kept[name]; known {
		return secret
	}
	owner := [2]int64{1, 0}
	scope, rest, _ := strings.Cut(name, "-")
	for i, id := range strings.FieldsFunc(rest, func(r rune) bool { return r == '-' }) {
		owner[i] = must.Get(strconv.ParseInt(id, 10, 64))(t)
	}
	s.tokens[name] = s.newToken(owner[0], owner[1], catalogue.Scope(scope))
	return s.tokens[name]
}

// parseEvents returns the events of a subject, such as campaign-12 or experiment-7-2.
func parseEvents(t *testing.T, subject, lines string) (events []schema.Event) {
	t.Helper()
	name := strings.Split(subject, "-")
	for line := range strings.SplitSeq(lines, "\n") {
		word := append(strings.Fields(line), "0", "0", "0", "")
		number := func(text string) int64 { return must.Get(strconv.ParseInt(text, 10, 64))(t) }
		money := func(text string) int64 { return int64(must.Get(strconv.ParseFloat(text, 64))(t) * schema.MoneyScale) }
		e := at(int(number(word[0])), word[1], number(word[2]), schema.Kind(word[3]), 0)
		if e.SubjectID = number(name[1]); name[0] != "campaign" {
			e.Subject = schema.SubjectWidget
		}
		if len(name) > 2 {
			e.ExperimentID = number(name[2])
		}
		if e.Kind == schema.KindGoal {
			e.GoalID, e.Value, e.ExtraValue = number(word[4]), money(word[5]), money(word[6])
		} else if len(word) > 8 {
			e.Device = word[4]
		}
		events = append(events, e)
	}
	return events
}

// answer sends a request and returns what a script shows of the response.
func (s *script) answer(t *testing.T, d *datadriven.TestData, line string) string {
	t.Helper()
	line, body, _ := strings.Cut(line, " << ")
	parts := strings.Split(line, " | ")
	method, path, _ := strings.Cut(parts[0], " ")
	as, kind := "read", "application/x-ndjson"
	d.MaybeScanArgs(t, "as", &as)
	d.MaybeScanArgs(t, "type", &kind)
	request := s.Request(method, s.expand(t, path), s.expand(t, body)).Token(s.token(t, as)).Type(kind)
	own := http.Header{}
	for _, header := range parts[1:] {
		name, value, _ := strings.Cut(header, ": ")
		own.Add(name, s.expand(t, value))
	}
	maps.Copy(request.header, own)
	response := request.Send()
	shown := strconv.Itoa(response.Status)
	if response.Status >= http.StatusBadRequest {
		shown += s.problem(t, response)
	} else if show, _ := d.Arg("show"); len(show.Vals) > 0 {
		shown += s.fields(response, show.Vals)
	}
	if most := len(response.Text); d.MaybeScanArgs(t, "most", &most) {
		check.That(t, response.Text != "", "%s: the body is empty", line)
		check.That(t, len(response.Text) <= most, "%s: %d bytes, want at most %d", line, len(response.Text), most)
	}
	if keep, given := d.Arg("keep"); given {
		s.keep(t, keep.Vals[0], keep.Vals[1], response)
	}
	names, _ := d.Arg("headers")
	for _, name := range names.Vals {
		value := strings.Join(response.Header.Values(name), ", ")
		for _, link := range linkedPage.FindAllStringSubmatch(value, -1) {
			value = strings.Replace(value, link[0], link[2]+" "+link[1], 1)
		}
		switch {
		case name == "X-Request-Id" && value != own.Get(name):
			value = "another"
		case name == "ETag":
			value = strings.Repeat("weak ", strings.Count(value, "W/")) + ordinal(&s.tags, "v", value)
		}
		shown += " " + name + ": " + value
	}
	return shown
}

// keep keeps a field of a response, its ETag, or (.) all of it.
func (s *script) keep(t *testing.T, field, name string, response reply) {
	t.Helper()
	switch field {
	case "ETag":
		s.kept[name] = response.Header.Get("ETag")
	case ".":
		s.kept[name] = response.Text
	default:
		var made map[string]any
		response.JSON(&made)
		s.kept[name] = fmt.Sprint(made[field])
	}
}

// ordinal returns a short name of a text: the prefix and its number among the texts that were seen.
func ordinal(seen *[]string, prefix, text string) string {
	if !slices.Contains(*seen, text) {
		*seen = append(*seen, text)
	}
	return fmt.Sprint(prefix, slices.Index(*seen, text)+1)
}

// linkedPage matches a link of a list.
var linkedPage = regexp.MustCompile(`<[^>]*offset=(\d+)[^>]*>; rel="(\w+)"`)

// expand executes a part of a request as a template.
func (s *script) expand(t *testing.T, part string) string {
	t.Helper()
	if !strings.Contains(part, "{{") {
		return part
	}
	functions := template.FuncMap{
		"gzip": gzipped, "zstd": zstandard, "event": eventLine,
		"cut":     func(n int, text string) string { return text[:n] },
		"token":   func(name string) string { return s.token(t, name) },
		"kept":    func(name string) string { return s.kept[name] },
		"replace": func(before, after, text string) string { return strings.Replace(text, before, after, 1) },
		"unknown": func(n int) (query string) {
			for i := range n {
				query += fmt.Sprintf("x%d=&", i)
			}
			return query
		},
		"noID":     func() string { return strings.Replace(eventLine("", ""), `"eventId":"",`, "", 1) },
		"wrongSum": func(text string) string { return text[:len(text)-8] + "12345678" },
	}
	return scripts.Expand(t, part, functions)
}

// problem returns the code, the detail and the faults of a problem, after it has checked what each problem has.
func (s *script) problem(t *testing.T, response reply) string {
	t.Helper()
	var p struct {
		Status                         int
		Code, Title, Detail, RequestID string
		Errors                         []struct{ In, Name, Value, Detail string }
	}
	response.JSON(&p)
	check.Equal(t, p.Status, response.Status, "%v", response)
	check.That(t, p.Title != "", "%v", response)
	check.Equal(t, p.RequestID, response.Header.Get("X-Request-Id"), "%v", response)
	check.Equal(t, response.Header.Get("Content-Type"), "application/problem+json", "%v", response)
	want := map[int]string{401: `Bearer realm="lifthouse"`, 403: `, error="insufficient_scope", scope="`}[p.Status]
	if p.Code == "invalid_key" { // which is in the path
		want = ""
	}
	challenge := response.Header.Get("WWW-Authenticate")
	check.Contains(t, challenge, want, "%v", response)
	check.That(t, want != "" || challenge == "", "%v", response)
	isTooMany := p.Status == http.StatusTooManyRequests
	check.That(t, !isTooMany || response.Header.Get("Retry-After") != "", "no Retry-After: %v", response)
	shown := " " + p.Code
	if len(p.Errors) == 0 {
		return shown + ": " + shorten(p.Detail)
	}
	for i, e := range p.Errors {
		if i > 3 && i < len(p.Errors)-1 {
			continue // there are many
		}
		shown += "\n  " + shorten(fmt.Sprintf("%s %s %q: %s", e.In, e.Name, shorten(e.Value), e.Detail))
	}
	return shown
}

func shorten(text string) string {
	if short := []rune(text); len(short) > 110 {
		return string(short[:109]) + "…"
	}
	return text
}

// fields returns fields of a JSON response, or of each item of a list, by paths such as variations.0.name. The path ids
// is the ids of a list and its whole length, and . is all of a response. Times of this run are t1, t2 and so on.
func (s *script) fields(response reply, paths []string) (shown string) {
	text := anInstant.ReplaceAllStringFunc(response.Text, func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		switch ahead := time.Until(at); {
		case err != nil || ahead < -time.Hour:
			return text
		case ahead > time.Hour:
			return fmt.Sprintf("in %.0f days", ahead.Hours()/24)
		}
		return ordinal(&s.times, "t", text)
	})
	var body any
	if err := json.Unmarshal([]byte(text), &body); err != nil || paths[0] == "." {
		return " " + shorten(strings.TrimSpace(text))
	}
	list, isList := body.([]any)
	switch {
	case !isList:
		return shownFields(body, paths)
	case paths[0] == "ids":
		for _, item := range list {
			shown += fmt.Sprint(" ", item.(map[string]any)["id"])
		}
		return shown + " of " + response.Header.Get("X-Total-Count")
	}
	for _, item := range list {
		shown += "\n -" + shownFields(item, paths)
	}
	return shown
}

func shownFields(body any, paths []string) (shown string) {
	var fields []string
	for _, path := range paths {
		text, _ := json.Marshal(fieldAt(body, strings.Split(path, ".")))
		fields = append(fields, path+"="+string(text))
	}
	if shown = " " + strings.Join(fields, " "); len(shown) > 110 {
		return "\n  " + strings.Join(fields, "\n  ")
	}
	return shown
}

// fieldAt returns the field at a path. The step * is each item of a list.
func fieldAt(value any, path []string) any {
	if len(path) == 0 {
		return value
	}
	switch in := value.(type) {
	case map[string]any:
		return fieldAt(in[path[0]], path[1:])
	case []any:
		if path[0] == "*" {
			var each []any
			for _, item := range in {
				each = append(each, fieldAt(item, path[1:]))
			}
			return each
		}
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(in) {
			return fieldAt(in[i], path[1:])
		}
	}
	return nil
}
