package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-shellwords"

	"lifthouse/engine/tables"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// newHouseWithEvents returns a house with two campaigns, and a token.
func newHouseWithEvents(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	h.run("import", "-m", "testdata/growthbook.exposures.mapping.yaml", "testdata/growthbook.exposures.csv")
	h.run("import", "-m", "testdata/growthbook.metric.mapping.yaml", "testdata/growthbook.orders.csv")
	must.OK(t, h.store.Facts.RefreshFacts(t.Context()))
	h.token = strings.TrimSpace(h.must("token", "create"))
	return h
}

// get returns a body of the API.
func (h *house) get(path string) string {
	h.t.Helper()
	request := must.Get(http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, http.NoBody))(h.t)
	request.Header.Set("Authorization", "Bearer "+h.token)
	response, err := http.DefaultClient.Do(request)
	must.OK(h.t, err)
	defer func() { _ = response.Body.Close() }()
	text := must.Get(io.ReadAll(response.Body))(h.t)
	must.Equal(h.t, response.StatusCode, http.StatusOK, "GET %s %.500s", path, text)
	return string(text)
}

// TestTablesAsFiles compares the written files with those of the API.
func TestTablesAsFiles(t *testing.T) {
	h := newHouseWithEvents(t)
	dir := filepath.Join(t.TempDir(), "new", "tables")
	for _, format := range []string{"parquet", "csv"} {
		h.must("tables", "--out", dir, "--format", format)
		written := must.JSON[writtenTables](t, must.Get(os.ReadFile(filepath.Join(dir, "tables.json")))(t))
		check.Equal(t, written.Contract, tables.Contract, "contract")
		check.Equal(t, len(written.Rows), len(tables.All), "files")
		for i := range tables.All {
			name := tables.All[i].Name + "." + format
			file := string(must.Get(os.ReadFile(filepath.Join(dir, name)))(t))
			check.Equal(t, file, h.get("/v1/tables/"+name), name)
			lines := h.get("/v1/tables/" + tables.All[i].Name + ".ndjson")
			check.Equal(t, int(written.Rows[name]), strings.Count(lines, "\n"), "rows of "+name)
		}
	}
	entries := must.Get(os.ReadDir(dir))(t)
	check.Equal(t, len(entries), 2*len(tables.All)+1, "files, of which none is left over")
	since := time.Now().UTC().Format(time.RFC3339)
	out := h.must("tables", "--out", dir, "--format", "csv", "--since", since)
	check.Contains(t, out, "looks.csv: 0 rows\n", "since now")
}

// TestTablesFlags checks that all wrong flags are reported together, without a store.
func TestTablesFlags(t *testing.T) {
	for flags, wants := range map[string][]string{
		"": {"--out"},
		"--out x --format json --since 2026-05-01 --url http://x": {
			"--format: \"json\": must be one of parquet, csv", "--since: \"2026-05-01\": must be RFC 3339", "--url",
		},
		"--views":               {`--url: "": must be the address of the server`},
		"--views --url ftp://x": {`--url: "ftp://x"`},
		"--views --url http://x --out y --website 3": {"--out", "--website"},
		"--out x --website 99999999999999999999":     {"--website"},
	} {
		code, complaints := runAlone(t, nil, append([]string{"tables"}, strings.Fields(flags)...)...)
		check.Equal(t, code, exitUsage, flags)
		for _, want := range wants {
			check.Contains(t, complaints, want, flags)
		}
	}
	h := newHouseWithEvents(t)
	code, _, complaints := h.run("tables", "--out", t.TempDir(), "--website", "77")
	check.That(t, code != exitOK && strings.Contains(complaints, "--website must be one of 1"), "%s", complaints)
}

// recipeBlock matches a block of a document and the name in front of it.
var recipeBlock = regexp.MustCompile("(?m)(?:^<!-- recipe ([a-z-]+) -->\n)?^```([a-z]+)\n((?s:.*?))^```$")

const (
	recipesDocument = "../../docs/tables.md"
	exampleServer   = "https://results.example.com"
	competitorsRoom = "../../loadgen/competitors"
)

// TestTablesRecipes runs each block of docs/tables.md against a server.
func TestTablesRecipes(t *testing.T) {
	document := string(must.Get(os.ReadFile(recipesDocument))(t))
	h := newHouseWithEvents(t)
	r := &recipes{house: h, dir: t.TempDir()}
	run := map[string]func(*testing.T, string){
		"curl": r.curl, "files": r.lifthouse, "duckdb": r.duckDB, "duckdb-http": r.duckDBOverHTTP, "views": r.lifthouse,
		"views-query": r.query, "pandas": r.python, "sheets": r.sheets,
	}
	ran := 0
	for _, found := range recipeBlock.FindAllStringSubmatch(document, -1) {
		name, text := found[1], found[3]
		must.That(t, run[name] != nil, "a block of %s has no recipe: %s", found[2], text)
		t.Run(name, func(t *testing.T) {
			h.t = t
			text = strings.ReplaceAll(text, exampleServer, h.url)
			run[name](t, strings.ReplaceAll(text, "BEARER_TOKEN 'TOKEN'", "BEARER_TOKEN '"+h.token+"'"))
		})
		ran++
	}
	check.Equal(t, ran, len(run), "blocks")
}

// recipes run blocks of documents.
type recipes struct {
	*house
	dir string
}

// command runs a program in the directory of the recipes, and returns its output.
func (r *recipes) command(t *testing.T, input, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIP: %s is not installed", name)
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = r.dir
	command.Env = append(os.Environ(), "TOKEN="+r.token, "LIFTHOUSE_URL="+r.url, "LIFTHOUSE_TOKEN="+r.token)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

func (r *recipes) curl(t *testing.T, text string) {
	t.Helper()
	out := must.Get(r.command(t, "", "sh", "-ec", text))(t)
	check.Equal(t, out, r.get("/v1/tables/results.csv"), "results.csv")
}

// lifthouse runs a command line of lifthouse, whose output may be written to a file.
func (r *recipes) lifthouse(t *testing.T, text string) {
	t.Helper()
	line, file, _ := strings.Cut(strings.TrimSpace(text), " > ")
	args := must.Get(shellwords.Parse(line))(t)
	for i := range args {
		if args[i] == "--out" {
			args[i+1] = filepath.Join(r.dir, args[i+1])
		}
	}
	out := r.must(args[1:]...)
	if file != "" {
		must.OK(t, os.WriteFile(filepath.Join(r.dir, file), []byte(out), 0o600))
	}
}

// query creates the views of the recipe before it on a ClickHouse server, and runs a query.
func (r *recipes) query(t *testing.T, text string) {
	t.Helper()
	views := string(must.Get(os.ReadFile(filepath.Join(r.dir, "views.sql")))(t))
	conn := schematest.OpenConnection(t, schematest.SharedServer(t).DatabaseAddress("default"))
	for statement := range strings.SplitSeq(strings.ReplaceAll(views, "TOKEN", r.token), ";\n") {
		isUser := strings.Contains(statement, "lifthouse_reader") || strings.TrimSpace(statement) == ""
		if !isUser { // the server of the tests cannot create users
			must.OK(t, conn.Exec(t.Context(), statement), "%s", statement)
		}
	}
	must.OK(t, conn.Exec(t.Context(), strings.TrimSuffix(strings.TrimSpace(text), ";")))
}

// runDuckDB executes statements in DuckDB, and returns the rows of the last one.
func (r *recipes) runDuckDB(t *testing.T, text string) (rows [][]any, err error) {
	t.Helper()
	room := must.Get(filepath.Abs(competitorsRoom))(t)
	if _, err := os.Stat(filepath.Join(room, "node_modules")); err != nil {
		t.Skip("SKIP: DuckDB is not installed: run npm ci in loadgen/competitors")
	}
	var input strings.Builder
	for statement := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(text), ";"), ";\n") {
		must.OK(t, json.NewEncoder(&input).Encode(map[string]string{"sql": statement}))
	}
	out, err := r.command(t, input.String(), "node", filepath.Join(room, "duckdb.js"), "2")
	must.OK(t, err, out)
	for line := range strings.Lines(out) {
		answer := must.JSON[struct {
			Rows  [][]any
			Error string
		}](t, line)
		if answer.Error != "" {
			return nil, fmt.Errorf("%s", answer.Error)
		}
		rows = answer.Rows
	}
	return rows, nil
}

func (r *recipes) duckDB(t *testing.T, text string) {
	t.Helper()
	rows := must.Get(r.runDuckDB(t, text))(t)
	check.Equal(t, len(rows), 2, "campaigns")
	for _, row := range rows {
		check.Equal(t, fmt.Sprint(row[4]), fmt.Sprint(row[2]), fmt.Sprint("visitors of ", row[0]))
	}
}

func (r *recipes) duckDBOverHTTP(t *testing.T, text string) {
	t.Helper()
	if _, err := r.runDuckDB(t, "INSTALL httpfs;\nLOAD httpfs"); err != nil {
		t.Skipf("SKIP: the extension httpfs cannot be downloaded: %v", err)
	}
	rows := must.Get(r.runDuckDB(t, text))(t)
	check.Equal(t, len(rows), 2, "treatments")
}

func (r *recipes) python(t *testing.T, text string) {
	t.Helper()
	r.needPandas(t)
	out := must.Get(r.command(t, text, "python3", "-"))(t)
	check.Contains(t, out, "New layout", "results")
}

// needPandas skips a test without pandas.
func (r *recipes) needPandas(t *testing.T) {
	t.Helper()
	if out, err := r.command(t, "", "python3", "-c", "import pandas"); err != nil {
		t.Skipf("SKIP: python3 has no pandas: %.100s", out)
	}
}

// sheetsOfGoogle is what the recipe uses of Apps Script.
const sheetsOfGoogle = `
import { execFileSync } from 'node:child_process';
const PropertiesService = { getScriptProperties: () => ({ getProperty: (name) => process.env[name] }) };
const UrlFetchApp = { fetch: (url, { headers }) => ({ getContentText: () =>
  execFileSync('curl', ['-fsS', '-H', 'Authorization: ' + headers.Authorization, url], { encoding: 'utf8' }) }) };
const Utilities = { parseCsv: (text) => text.trimEnd().split('\n').map((line) => line.split(',')) };
const range = (...where) => ({ setValues: (values) => console.log('results', ...where, values[0][0]) });
const SpreadsheetApp = { getActive: () => ({ getSheetByName: () => ({ clearContents() {}, getRange: range }) }) };
`

func (r *recipes) sheets(t *testing.T, text string) {
	t.Helper()
	script := filepath.Join(r.dir, "sheets.mjs")
	must.OK(t, os.WriteFile(script, []byte(sheetsOfGoogle+text+"importResults();\n"), 0o600))
	out := must.Get(r.command(t, "", "node", script))(t)
	lines := strings.Count(r.get("/v1/tables/results.csv"), "\n")
	columns := len(tables.FindTable("results").Columns)
	check.Equal(t, strings.TrimSpace(out), fmt.Sprintf("results 1 1 %d %d websiteId", lines, columns), "the sheet")
}

// TestTheNotebook runs the cells of docs/examples/programme.ipynb.
func TestTheNotebook(t *testing.T) {
	notebook := must.JSON[struct {
		Cells []struct {
			Kind   string `json:"cell_type"`
			Source []string
		}
	}](t, must.Get(os.ReadFile("../../docs/examples/programme.ipynb"))(t))
	check.Equal(t, len(notebook.Cells), 8, "cells")
	r := &recipes{house: newHouseWithEvents(t), dir: t.TempDir()}
	r.needPandas(t)
	var text strings.Builder
	for _, cell := range notebook.Cells {
		if cell.Kind == "code" {
			text.WriteString(strings.Join(cell.Source, "") + "\n")
		}
	}
	out, err := r.command(t, text.String(), "python3", "-")
	must.OK(t, err, out)
}
