package api_test

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestDocsPageHasEverything checks that the page has each operation with its
// parameters, responses, fields and commands, and each schema.
func TestDocsPageHasEverything(t *testing.T) {
	_, _, page := newEmptyServer(t).do("GET", "/docs", "")
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range c.paths {
		for method, operation := range path.item.Operations() {
			if method == http.MethodOptions {
				continue
			}
			_, section, found := strings.Cut(page, `<section id="`+operation.OperationID+`"`)
			section, _, _ = strings.Cut(section, "</section>")
			wants := []string{`<code>` + path.template + `</code>`, `href="#` + operation.OperationID + `"`, `class="curl"`}
			for _, parameter := range append(slices.Clone(path.item.Parameters), operation.Parameters...) {
				wants = append(wants, `<th scope="row"><code>`+parameter.Value.Name+"</code>")
			}
			for status := range operation.Responses.Map() {
				wants = append(wants, "<b>"+status+"</b>")
			}
			for _, want := range wants {
				if !found || !strings.Contains(section, want) {
					t.Errorf("%s %s lacks %s", method, path.template, want)
				}
			}
			if n := strings.Count(page, `<li><a href="#`+operation.OperationID+`">`); n != 1 {
				t.Errorf("the menu has %s %d times", operation.OperationID, n)
			}
		}
	}
	for name, schema := range c.doc.Components.Schemas {
		_, section, found := strings.Cut(page, `<section id="schema-`+name+`"`)
		section, _, _ = strings.Cut(section, "</section>")
		for field := range schema.Value.Properties {
			found = found && strings.Contains(section, `<th scope="row"><code>`+field+"</code>")
		}
		if !found || schema.Value.Description == "" {
			t.Errorf("the schema %s is not on the page with all its fields and a description", name)
		}
	}
}

// TestFieldsOfTheDocsPage checks the tables of fields.
func TestFieldsOfTheDocsPage(t *testing.T) {
	_, _, page := newEmptyServer(t).do("GET", "/docs", "")
	_, results, _ := strings.Cut(page, `<section id="campaignResults"`)
	results, _, _ = strings.Cut(results, "</section>")
	for _, want := range []string{"Free delivery banner", "<code>chanceToBeatControl</code>", "[number or null, number or null]", "always <code>firstExposedInWindow</code>", "convertedVisitors / visitors"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, row := range strings.Split(page, `<th scope="row"><code>`)[1:] {
		name, rest, _ := strings.Cut(row, "</code>")
		if _, description, _ := strings.Cut(rest, "</th>"); strings.HasPrefix(description, "<td></td>") {
			t.Errorf("%s has no description", name)
		}
	}
	if n := strings.Count(results, "<table>"); n < 20 {
		t.Errorf("the results have %d tables, want those of their inner objects", n)
	}
}

// TestDocsPageLoadsOnlyOwnFiles checks that the page has no inline script or
// style, that it loads only files of the server, and that links in it lead to
// one element.
func TestDocsPageLoadsOnlyOwnFiles(t *testing.T) {
	s := newEmptyServer(t)
	response, _, page := s.do("GET", "/docs", "")
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := response.Get("Content-Security-Policy"); got != policy {
		t.Errorf("the policy is %q", got)
	}
	example := regexp.MustCompile(`(?s)<pre.*?</pre>`).ReplaceAllString(page, "")
	example = strings.ReplaceAll(example, `<code>http://127.0.0.1:8080</code>`, "")
	for _, inline := range []string{"<style", "style=", "javascript:", "@import", "http://", "https://"} {
		if strings.Contains(example, inline) {
			t.Errorf("the page has %q", inline)
		}
	}
	if found := regexp.MustCompile(`\son\w+=`).FindString(example); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		if script[1] != "" {
			t.Errorf("the page has an inline script: %.60s", script[1])
		}
	}
	for _, file := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		if response, _, _ := s.do("GET", file[1], ""); response.status != http.StatusOK {
			t.Errorf("%s = %d", file[1], response.status)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if n := strings.Count(page, `id="`+link[1]+`"`); n != 1 {
			t.Errorf("%d elements are #%s", n, link[1])
		}
	}
}

// TestOperationsAreDescribed checks the texts of operations.
func TestOperationsAreDescribed(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	var ids, summaries []string
	for _, path := range c.paths {
		for method, operation := range path.item.Operations() {
			name := method + " " + path.template
			if operation.Summary == "" || len(operation.Summary) > 60 || strings.HasSuffix(operation.Summary, ".") || operation.Description == "" {
				t.Errorf("%s: summary %q, description %q", name, operation.Summary, operation.Description)
			}
			if len(operation.Tags) != 1 || c.doc.Tags.Get(operation.Tags[0]) == nil {
				t.Errorf("%s has the tags %q", name, operation.Tags)
			}
			if method != http.MethodOptions {
				ids, summaries = append(ids, operation.OperationID), append(summaries, operation.Summary)
			}
		}
	}
	for _, names := range [][]string{ids, summaries} {
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("some are equal: %q", names)
		}
	}
}

// schemasIn calls visit for a schema and all schemas in it.
func schemasIn(name string, schema *openapi3.SchemaRef, visit func(name string, schema *openapi3.SchemaRef)) {
	if schema == nil {
		return
	}
	visit(name, schema)
	if schema.Ref != "" {
		return // visited as a component
	}
	of := schema.Value
	for field, inner := range of.Properties {
		schemasIn(field, inner, visit)
	}
	for _, inner := range slices.Concat(of.AllOf, of.OneOf, of.AnyOf, of.PrefixItems) {
		schemasIn(name, inner, visit)
	}
	schemasIn(name, of.Items, visit)
}

// TestIntervalsAreTuplesAndIDsAreIntegers checks the types of all fields and
// parameters.
func TestIntervalsAreTuplesAndIDsAreIntegers(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	const interval = "#/components/schemas/Interval"
	id := regexp.MustCompile(`^id$|^\w+Id$`)
	ids, intervals := 0, 0
	check := func(name string, schema *openapi3.SchemaRef) {
		of := schema.Value
		switch {
		case name == "eventId", name == "requestId": // chosen by a client
		case id.MatchString(name):
			ids++
			if !of.Type.Includes("integer") || of.Type.Includes("string") || of.Format != "int64" || of.Min == nil {
				t.Errorf("%s is not an integer of 64 bits with a minimum", name)
			}
		}
		if schema.Ref == interval {
			intervals++
		} else if len(of.PrefixItems) == 0 && of.Items != nil && of.Items.Value.Type.Includes("number") && of.Items.Value.Type.Includes("null") {
			t.Errorf("%s is a list of numbers and nulls, want an Interval", name)
		}
	}
	for name, schema := range c.doc.Components.Schemas {
		schemasIn(name, schema, check)
	}
	for _, parameter := range c.doc.Components.Parameters {
		schemasIn(parameter.Value.Name, parameter.Value.Schema, check)
	}
	if ids < 35 || intervals != 4 {
		t.Errorf("%d ids and %d intervals", ids, intervals)
	}
	tuple := c.doc.Components.Schemas["Interval"].Value
	if len(tuple.PrefixItems) != 2 || tuple.MinItems != 2 || tuple.MaxItems == nil || *tuple.MaxItems != 2 {
		t.Error("the schema Interval is not a tuple of two")
	}
	for text, valid := range map[string]bool{"1,2": true, "null,2": true, "1,null": true, "null,null": true, "1": false, "1,2,3": false, `1,"2"`: false, "": false} {
		var value any
		if err := json.Unmarshal([]byte("["+text+"]"), &value); err != nil {
			t.Fatal(err)
		}
		if err := tuple.VisitJSON(value, openapi3.EnableJSONSchema2020()); (err == nil) != valid {
			t.Errorf("[%s]: %v", text, err)
		}
	}
}

var curlPattern = regexp.MustCompile(`(?s)<pre tabindex="0" class="curl">(.*?)</pre>`)

// TestCommandsOfTheDocsPageSucceed runs each command of the page.
func TestCommandsOfTheDocsPageSucceed(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s := newExampleServer(t)
	tokens := map[bool]string{false: s.token, true: s.newToken(1, 1, catalogue.ScopeIngest)}
	_, _, page := s.do("GET", "/docs", "")
	tags := regexp.MustCompile(`<[^>]+>`)
	replaced := strings.NewReplacer("http://127.0.0.1:8080", s.URL, "curl -sg", "curl -fsSg")
	commands := curlPattern.FindAllStringSubmatch(page, -1)
	folder := t.TempDir()
	for _, command := range commands {
		line := replaced.Replace(html.UnescapeString(tags.ReplaceAllString(command[1], "")))
		sent := time.Now().UTC().Format(time.RFC3339)
		line = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllString(line, sent) // the server refuses old events
		run := exec.CommandContext(t.Context(), bash, "-c", line)                         //nolint:gosec // of our page
		run.Env = append(os.Environ(), "LIFTHOUSE_TOKEN="+tokens[strings.Contains(line, "/events'")])
		run.Dir = folder
		silent := strings.Contains(line, "-X DELETE") || strings.Contains(line, " -o ")
		if out, err := run.CombinedOutput(); err != nil || len(out) < 3 && !silent {
			t.Errorf("%s\n%v: %.500s", line, err, out)
		}
	}
	operations := strings.Count(page, `class="operation"`)
	if operations < 30 || len(commands) < operations {
		t.Errorf("%d commands for %d operations", len(commands), operations)
	}
}
