package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// question is a question in the words of the API and the page, of the command, and of the assistants' tool.
type question struct {
	path, page string
	query      url.Values
	command    []string
	tool       map[string]any
}

// drawQuestion draws a question about the campaigns of the demo that compare variations of one website.
func drawQuestion(r *rand.Rand) question {
	number := 12 + r.IntN(7)
	id := strconv.Itoa(number)
	q := question{
		path: "/v1/campaigns/" + id + "/results", page: "/?campaign=" + id, query: url.Values{},
		command: []string{"report", "campaign", id}, tool: map[string]any{"campaignId": number},
	}
	if r.IntN(2) == 0 {
		metric := []string{
			"goalConversionRate", "goalsPerVisitor", "valuePerVisitor", "profitPerVisitor",
			"averageValue",
		}[r.IntN(5)]
		q.query.Set("compareMetric", metric)
		q.command, q.tool["compareMetric"] = append(q.command, "--metric", metric), metric
	}
	var filters []string
	for name, values := range map[string][]string{
		"device":  {"mobile", "desktop", "tablet"},
		"country": {"US", "DE", "GB"},
	} {
		if r.IntN(3) == 0 {
			value := values[r.IntN(len(values))]
			q.query.Set("filters["+name+"]", value)
			q.command, filters = append(q.command, "--filter", name+"="+value), append(filters, name+"="+value)
		}
	}
	if len(filters) > 0 {
		q.tool["filters"] = filters
	}
	return q
}

// TestAllAnswersAreTheSame asks 200 random questions on the page, in the terminal, for CSV and as an assistant. All print
// the numbers of the API, and the page and the terminal in the same words.
func TestAllAnswersAreTheSame(t *testing.T) {
	tier.OnlyLong(t)
	for seed := range uint64(4) { // a tab ends after some minutes
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			v := newViewer(t)
			v.openSignedIn("/?campaign=12", allThere)
			r := rand.New(rand.NewPCG(61, seed)) //nolint:gosec // of a test
			for range 50 {
				v.answersAreTheSame(drawQuestion(r))
			}
		})
	}
}

func (v *viewer) answersAreTheSame(q question) {
	v.Helper()
	address := q.path + "?" + q.query.Encode()
	report := v.report(address)
	v.numbersOfCSVAre(&report, q.command)
	_, text, _ := other(v.T, nil, append(q.command, v.store)...)
	printed, sentences := printedRows(text), v.askTool(q.tool)
	v.open(q.page + "&" + q.query.Encode())
	v.until(fmt.Sprintf(`document.querySelectorAll("[data-variation] data").length > 0 && !document.querySelector(".loading") && document.querySelectorAll("[data-variation]").length >= %d`, len(report.Variations)))
	for _, of := range report.Variations {
		page := evaluated[string](v, fmt.Sprintf(`document.querySelector('[data-variation="%d"]').textContent.replaceAll("\u00a0", " ")`, of.ID))
		rows := printed[of.Name]
		must.That(v, len(rows) != 0, "%s: the terminal does not print %s:\n%s", address, of.Name, text)
		for i, row := range rows {
			for k, cell := range row {
				check.That(v, cell == "–" || strings.Contains(page, cell),
					"%s: of %s, the terminal prints %q, and the page\n%s", address, of.Name, cell, page)
				isQuoted := k < 2 &&
					(i == 0 ||
						report.Conclusion.Status != stats.StatusInvalid) // counts, and the lift with its interval
				check.That(v, !isQuoted || cell == "–" || strings.Contains(sentences, cell),
					"%s: of %s, the terminal prints %q, and the assistant reads\n%s", address, of.Name, cell, sentences)
			}
		}
	}
}

var columns = regexp.MustCompile(` {2,}`)

// printedRows returns the cells of the tables in the text of a report, by the name of the variation.
func printedRows(text string) map[string][][]string {
	rows, inTable := map[string][][]string{}, false
	for line := range strings.Lines(text) {
		cells := columns.Split(strings.TrimSpace(line), -1)
		switch {
		case len(cells) < 3:
			inTable = false
		case cells[0] == "variation":
			inTable = true
		case inTable:
			rows[cells[0]] = append(rows[cells[0]], cells[1:])
		}
	}
	return rows
}

// numbersOfCSVAre compares the CSV that a command prints with a report.
func (v *viewer) numbersOfCSVAre(report *result.Report, command []string) {
	v.Helper()
	_, out, complaints := other(v.T, nil, slices.Concat(command, []string{"--csv", v.store})...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	must.That(v, err == nil, "%v: %v, %d rows\n%s", command, err, len(rows), complaints)
	must.Equal(v, len(rows), 1+len(report.Variations), "%v: %v, %d rows\n%s", command, err, len(rows), complaints)
	for i, variation := range report.Variations {
		cell := func(name string) string { return rows[1+i][slices.Index(rows[0], name)] }
		isSame := func(name string, want *float64) {
			got, err := strconv.ParseFloat(cell(name), 64)
			if (want == nil) != (err != nil) || want != nil && got != *want {
				v.Errorf("%v: CSV has the %s %q, and the API %v", command, name, cell(name), want)
			}
		}
		visitors := float64(variation.Visitors)
		isSame("visitors", &visitors)
		if c := variation.Comparison; c != nil {
			isSame("comparison.improvement.value", c.Improvement.Value)
			check.That(v, cell("comparison.verdict") == string(c.Verdict), "%v: CSV has the verdict %q, and the API %q",
				command, cell("comparison.verdict"), c.Verdict)
		}
	}
}

// askTool returns the sentences with which an assistant's tool answers.
func (v *viewer) askTool(arguments map[string]any) string {
	v.Helper()
	body := must.Get(json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "get_result", "arguments": arguments},
	}))(v)
	request := must.Get(http.NewRequestWithContext(v.Context(), http.MethodPost, v.site+"/mcp",
		bytes.NewReader(body)))(v)
	request.Header = http.Header{
		"Authorization": {"Bearer " + v.token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(v, err)
	defer func() { _ = response.Body.Close() }()
	text := must.Get(io.ReadAll(response.Body))(v)
	var answer struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent struct{ Sentences []string }
		}
	}
	must.OK(v, json.Unmarshal(text, &answer))
	must.That(v, !answer.Result.IsError, "%v: %s", arguments, text)
	return strings.Join(answer.Result.StructuredContent.Sentences, "\n")
}
