package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/enginetest"
	"lifthouse/engine/plan"
	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// tablesPath is the path of the tables.
const tablesPath = "/v1/tables"

// cells are the cells of a file as texts, by row and column. A null is the text null; texts are quoted.
type cells [][]string

// cellsOfJSON returns the cells of a JSON file.
func cellsOfJSON(t *testing.T, text string, columns []tables.Column) (all cells) {
	t.Helper()
	var rows []map[string]json.RawMessage
	must.OK(t, json.Unmarshal([]byte(text), &rows), "%.300s", text)
	for _, row := range rows {
		must.Equal(t, len(row), len(columns), "columns of %v", row)
		var record []string
		for i := range columns {
			record = append(record, string(row[columns[i].Name]))
		}
		all = append(all, record)
	}
	return all
}

// cellsOfCSV returns the cells of a CSV file. An empty cell is a null.
func cellsOfCSV(t *testing.T, text string, columns []tables.Column) (all cells) {
	t.Helper()
	records := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
	for i := range columns {
		must.Equal(t, records[0][i], columns[i].Name, "header")
	}
	for _, record := range records[1:] {
		for i, cell := range record {
			isText := slices.Contains([]tables.Type{tables.String, tables.Timestamp, tables.Date}, columns[i].Type)
			switch {
			case cell == "" && (columns[i].Null != "" || !isText):
				record[i] = "null"
			case isText:
				record[i] = jsonOf(t, strings.TrimPrefix(cell, "'"))
			}
		}
		all = append(all, record)
	}
	return all
}

// cellsOfParquet returns the cells of a Parquet file.
func cellsOfParquet(t *testing.T, text string, columns []tables.Column) (all cells) {
	t.Helper()
	file := must.Get(parquet.OpenFile(strings.NewReader(text), int64(len(text))))(t)
	contract, _ := file.Lookup("lifthouse.contract")
	must.Equal(t, contract, "1", "lifthouse.contract")
	leaves := file.Schema().Columns()
	must.Equal(t, len(leaves), len(columns), "columns")
	for i := range columns {
		must.Equal(t, leaves[i][0], columns[i].Name, "column")
	}
	rows := make([]parquet.Row, file.NumRows())
	reader := parquet.NewReader(file)
	for read := 0; read < len(rows); {
		n, err := reader.ReadRows(rows[read:])
		for k := read; k < read+n; k++ {
			rows[k] = rows[k].Clone()
		}
		read += n
		must.That(t, n > 0 || err == nil, "read rows: %v", err)
	}
	for _, row := range rows {
		record := make([]string, len(columns))
		for i := range columns {
			record[i] = cellOfParquet(t, row[i], columns[i].Type)
		}
		all = append(all, record)
	}
	return all
}

// cellOfParquet returns a value as text.
func cellOfParquet(t *testing.T, of parquet.Value, kind tables.Type) string {
	t.Helper()
	if of.IsNull() {
		return "null"
	}
	var value any
	switch kind {
	case tables.Int64:
		return strconv.FormatInt(of.Int64(), 10)
	case tables.Bool:
		return strconv.FormatBool(of.Boolean())
	case tables.Double:
		value = of.Double()
	case tables.Timestamp:
		value = time.UnixMilli(of.Int64()).UTC()
	case tables.Date:
		value = time.Unix(int64(of.Int32())*86_400, 0).UTC().Format(time.DateOnly)
	case tables.String:
		value = string(of.ByteArray())
	}
	return jsonOf(t, value)
}

// jsonOf returns a value as JSON, in which <, > and & are as they are.
func jsonOf(t *testing.T, value any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	must.OK(t, encoder.Encode(value))
	return strings.TrimSpace(text.String())
}

// TestTablesHaveEqualCells compares the cells of each table in all formats, also with a server beside.
func TestTablesHaveEqualCells(t *testing.T) {
	s := newShops(t)
	s.Request(http.MethodPut, "/v1/campaigns/31/outcome", `{"outcome":"dropped","note":"=1+1"}`).
		Type("application/json").Send().RequireStatus(http.StatusOK)
	beside := openServerOn(t, s.conn, enginetest.OpenOneOfSeveral)
	beside.token = s.token
	for i := range tables.All {
		table := &tables.All[i]
		path := tablesPath + "/" + table.Name
		files := map[tables.Format]string{}
		for _, format := range tables.Formats {
			response := s.Get(path + "." + string(format)).Send().RequireStatus(http.StatusOK)
			files[format] = response.Text
			tag := response.Header.Get("ETag")
			other := beside.Get(path + "." + string(format)).Send().RequireStatus(http.StatusOK)
			check.Equal(t, other.Text, response.Text, "%s.%s of another server", table.Name, format)
			check.Equal(t, other.Header.Get("ETag"), tag, "%s.%s of another server", table.Name, format)
			s.Get(path+"."+string(format)).Header("If-None-Match", tag).Send().CheckStatus(http.StatusNotModified)
		}
		want := cellsOfJSON(t, files[tables.JSON], table.Columns)
		check.That(t, len(want) > 0, "%s is empty", table.Name)
		check.Equal(t, fmt.Sprint(cellsOfCSV(t, files[tables.CSV], table.Columns)), fmt.Sprint(want), "%s.csv",
			table.Name)
		check.Equal(t, fmt.Sprint(cellsOfParquet(t, files[tables.Parquet], table.Columns)), fmt.Sprint(want),
			"%s.parquet", table.Name)
		lines := strings.ReplaceAll(strings.TrimSuffix(files[tables.NDJSON], "\n"), "\n", ",\n ")
		check.Equal(t, "["+lines+"]\n", files[tables.JSON], "%s.ndjson", table.Name)
		checkNullsOf(t, table, want)
		check.That(t, slices.IsSortedFunc(want, compareKeys), "%s is not in the order of its subjects", table.Name)
	}
}

// compareKeys orders rows by website, kind, id and experiment.
func compareKeys(a, b []string) int {
	for i := range 5 {
		if a[i] == b[i] || i == 1 { // the domain
			continue
		}
		x, errX := strconv.Atoi(a[i])
		y, errY := strconv.Atoi(b[i])
		if errX == nil && errY == nil {
			return x - y
		}
		return strings.Compare(a[i], b[i])
	}
	return 0
}

// checkNullsOf checks that a column has nulls only if it says what they mean.
func checkNullsOf(t *testing.T, table *tables.Table, rows cells) {
	t.Helper()
	for i := range table.Columns {
		hasNull := slices.ContainsFunc(rows, func(row []string) bool { return row[i] == "null" })
		check.That(t, !hasNull || table.Columns[i].Null != "", "%s.%s is null", table.Name, table.Columns[i].Name)
	}
}

// tableRows returns the rows of a table.
func (s *server) tableRows(file string) (rows []map[string]any) {
	s.t.Helper()
	s.Get(tablesPath + "/" + file).Send().RequireStatus(http.StatusOK).JSON(&rows)
	return rows
}

// textsOf returns some columns of a row.
func textsOf(row map[string]any, columns ...string) string {
	var texts []string
	for _, column := range columns {
		texts = append(texts, fmt.Sprint(row[column]))
	}
	return strings.Join(texts, " ")
}

// TestSumsOfSeriesAreResults compares the sums over the days with the results of the same data.
func TestSumsOfSeriesAreResults(t *testing.T) {
	s := newShops(t)
	counts := []string{"visitors", "convertedVisitors", "goalsReached", "value", "profit"}
	sums := map[string][]float64{}
	for _, row := range s.tableRows("series.json") {
		key := textsOf(row, "kind", "subjectId", "experimentId", "goalId", "conversionWindow", "variationId")
		if sums[key] == nil {
			sums[key] = make([]float64, len(counts))
		}
		for i, count := range counts {
			sums[key][i] += row[count].(float64)
		}
	}
	compared := 0
	for _, row := range s.tableRows("results.json") {
		if row["role"] == "other" {
			continue
		}
		key := textsOf(row, "kind", "subjectId", "experimentId", "goalId", "conversionWindow", "variationId")
		for i, count := range counts {
			sum := 0.0 // a variation without visitors has no days
			if sums[key] != nil {
				sum = sums[key][i]
			}
			difference := math.Abs(sum - row[count].(float64))
			check.That(t, difference < 1e-6, "%s of %s: the sum is %v, not %v", count, key, sum, row[count])
		}
		compared++
	}
	check.That(t, compared >= 8, "%d rows were compared", compared)
	visitors := map[string]float64{}
	for _, row := range s.tableRows("series.json") {
		visitors[textsOf(row, "kind", "subjectId")] += row["visitors"].(float64)
	}
	for _, row := range s.tableRows("experiments.json") {
		key := textsOf(row, "kind", "subjectId")
		check.Equal(t, visitors[key], row["visitors"].(float64), "visitors of %s", key)
	}
}

// reportedResult is what tables have of a report.
type reportedResult struct {
	Totals   struct{ Visitors float64 }
	Decision struct{ Status string }
	Looks    []struct {
		Number     int
		Variations []struct {
			ID int
			Z  float64
		}
	}
	Scorecard []struct {
		Metric     string
		Variations []struct {
			ID         int
			Estimate   struct{ Value *float64 }
			Comparison *struct{ Improvement struct{ Value *float64 } }
		}
	}
}

// compareSegments compares rows of the table segments with the breakdown of a campaign.
func (s *server) compareSegments(campaign float64, rows []map[string]any) {
	s.t.Helper()
	var report struct {
		Breakdown []struct {
			Value      string
			Variations []struct {
				ID         int
				Visitors   float64
				Comparison *struct {
					Improvement struct{ Value *float64 }
					Complement  *struct{ ImprovementDifference struct{ Interval any } }
				}
			}
		}
	}
	s.Get(fmt.Sprintf("/v1/campaigns/%v/results?dimension=device", campaign)).Send().RequireStatus(http.StatusOK).
		JSON(&report)
	text := func(n any) string { return string(must.Get(json.Marshal(n))(s.t)) }
	want, got := map[string]string{}, map[string]string{}
	for _, segment := range report.Breakdown {
		for _, v := range segment.Variations {
			lift, others := "null", "[null,null]"
			if v.Comparison != nil {
				lift = text(v.Comparison.Improvement.Value)
				if c := v.Comparison.Complement; c != nil && c.ImprovementDifference.Interval != nil {
					others = text(c.ImprovementDifference.Interval)
				}
			}
			want[fmt.Sprint(segment.Value, " ", v.ID)] = fmt.Sprint(v.Visitors, lift, others)
		}
	}
	for _, row := range rows {
		others := text([]any{row["minusOthersLower"], row["minusOthersUpper"]})
		got[textsOf(row, "segment", "variationId")] = fmt.Sprint(row["visitors"], text(row["lift"]), others)
	}
	check.Equal(s.t, fmt.Sprint(got), fmt.Sprint(want), "segments of %v", campaign)
}

// TestTablesEqualReports compares cells of the tables with the reports.
func TestTablesEqualReports(t *testing.T) {
	s := newShops(t)
	text := func(n any) string { return string(must.Get(json.Marshal(n))(t)) }
	looks := 0
	for _, id := range []float64{31, 32, 33, 41} {
		var report reportedResult
		path := fmt.Sprintf("/v1/campaigns/%v/results?scorecard=true", id)
		s.Get(path).Send().RequireStatus(http.StatusOK).JSON(&report)
		of := func(table string) []map[string]any {
			return slices.DeleteFunc(s.tableRows(table), func(row map[string]any) bool {
				return row["kind"] != "campaign" || row["subjectId"] != id
			})
		}
		experiment := of("experiments.json")[0]
		check.Equal(t, experiment["visitors"].(float64), report.Totals.Visitors, "visitors of %v", id)
		check.Equal(t, experiment["decision"].(string), report.Decision.Status, "decision of %v", id)
		want, got := map[string]string{}, map[string]string{}
		for _, card := range report.Scorecard {
			for _, v := range card.Variations {
				lift := "null"
				if v.Comparison != nil {
					lift = text(v.Comparison.Improvement.Value)
				}
				want[fmt.Sprint(card.Metric, " ", v.ID)] = text(v.Estimate.Value) + " " + lift
			}
		}
		for _, row := range of("results.json") {
			got[textsOf(row, "metric", "variationId")] = text(row["estimate"]) + " " + text(row["lift"])
		}
		check.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "scorecard of %v", id)
		s.compareSegments(id, of("segments.json"))
		z := map[string]string{}
		for _, row := range of("looks.json") {
			z[textsOf(row, "lookKind", "look", "variationId")] = text(row["z"])
		}
		for _, look := range report.Looks {
			for _, v := range look.Variations {
				key := fmt.Sprint("look ", look.Number, " ", v.ID)
				check.Equal(t, z[key], text(v.Z), "z of %v, %s", id, key)
				looks++
			}
		}
	}
	check.That(t, looks > 0, "no looks")
}

// TestRangesOfTables reads ranges of a table while its data change.
func TestRangesOfTables(t *testing.T) {
	s := newShops(t)
	path := tablesPath + "/results.parquet"
	head := s.Request(http.MethodHead, path, "").Send().RequireStatus(http.StatusOK)
	check.Equal(t, head.Header.Get("Accept-Ranges"), "bytes", "HEAD")
	whole := s.Get(path).Send().RequireStatus(http.StatusOK)
	check.Equal(t, head.Header.Get("Content-Length"), strconv.Itoa(len(whole.Text)), "HEAD")
	tag := whole.Header.Get("ETag")
	check.That(t, strings.HasPrefix(tag, `"`), "the tag %s is not strong", tag)
	part := s.Get(path).Header("Range", "bytes=4-99").Send().RequireStatus(http.StatusPartialContent)
	check.Equal(t, part.Text, whole.Text[4:100], "range")
	e := at(1, "somebody", 1, schema.KindView, 0)
	e.WebsiteID, e.SubjectID = 2, 41
	s.fold(e)
	later := s.Get(path).Header("Range", "bytes=4-99").Send().RequireStatus(http.StatusPartialContent)
	check.Equal(t, later.Text, part.Text, "a range without If-Range after new events is of the file before")
	now := s.Get(path).Send().RequireStatus(http.StatusOK)
	check.That(t, now.Header.Get("ETag") != tag, "the file has not changed")
	s.Get(path).Header("Range", "bytes=4-99").Header("If-Range", tag).Send().
		CheckStatus(http.StatusRequestedRangeNotSatisfiable)
	s.Get(path).Header("Range", "bytes=4-99").Header("If-Range", now.Header.Get("ETag")).Send().
		CheckStatus(http.StatusPartialContent)
	s.Get(path).Header("Range", "bytes=99999999-").Send().CheckStatus(http.StatusRequestedRangeNotSatisfiable)
}

// TestLargeTablesAreSentWhileTheyAreRead reads tables that are larger than what is kept.
func TestLargeTablesAreSentWhileTheyAreRead(t *testing.T) {
	s := newShops(t)
	small := openServerOn(t, s.conn, enginetest.OpenOneOfSeveral)
	small.token = s.token
	small.api.KeepTables(200)
	for _, format := range tables.Formats {
		path := tablesPath + "/results." + string(format)
		whole := s.Get(path).Send().RequireStatus(http.StatusOK)
		sent := small.Get(path).Send().RequireStatus(http.StatusOK)
		check.Equal(t, sent.Text, whole.Text, path)
		check.Equal(t, sent.Header.Get("ETag"), "", path)
		check.Equal(t, sent.Header.Get("Accept-Ranges"), "", path)
		part := small.Get(path).Header("Range", "bytes=4-9").Send().RequireStatus(http.StatusOK)
		check.Equal(t, part.Text, whole.Text, "a range of "+path+" is the whole")
		head := small.Request(http.MethodHead, path, "").Send().RequireStatus(http.StatusOK)
		check.Equal(t, head.Header.Get("Content-Type"), whole.Header.Get("Content-Type"), "HEAD "+path)
	}
}

// recordLooks records the looks at a subject as they are now.
func (s *server) recordLooks(of schema.Subject) {
	s.t.Helper()
	owned := s.catalogue.Snapshot().AccountResources(1)
	p := must.Get(plan.New(plan.ResultsRequest(1, of), owned))(s.t)
	p = must.Get(s.engine.PlanInForce(s.t.Context(), p))(s.t)
	judged := must.Get(s.engine.OpenJudgement(s.t.Context(), p, time.Now()))(s.t)
	must.OK(s.t, s.engine.AnalyzeLooks(s.t.Context(), judged))
	records := judged.Looks.ComputedRecords()
	for i := range records {
		records[i].RecordedAt = time.Now().UTC().Truncate(time.Millisecond)
		records[i].FirstDay = records[i].End.AddDate(0, 0, -7)
	}
	must.Get(s.engine.Ledger.WriteRecords(s.t.Context(), records))(s.t)
}

// TestRecordedLooksNeverChange compares the looks before and after new events and a later look: each row that was
// recorded is there, byte for byte, in the same order.
func TestRecordedLooksNeverChange(t *testing.T) {
	s := newShops(t)
	s.recordLooks(schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41})
	recorded := func() (rows []string) {
		for line := range strings.Lines(s.Get(tablesPath + "/looks.ndjson").Send().RequireStatus(http.StatusOK).Text) {
			if !strings.Contains(line, `"recordedAt":null`) {
				rows = append(rows, line)
			}
		}
		return rows
	}
	before := recorded()
	must.That(t, len(before) > 0, "no look is recorded")
	e := at(1, "somebody late", 1, schema.KindView, 0)
	e.WebsiteID, e.SubjectID, e.Time = 2, 41, time.Now().AddDate(0, 0, -8)
	s.fold(e)
	after := recorded()
	next := 0
	for _, row := range after {
		if next < len(before) && row == before[next] {
			next++
		}
	}
	check.Equal(t, next, len(before), "rows that did not change, in order")
}

// TestTablesRefuseAllFaultsAtOnce sends every wrong parameter in one request.
func TestTablesRefuseAllFaultsAtOnce(t *testing.T) {
	s := newShops(t)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	for path, wants := range map[string][]string{
		"/result.parqet?since=" + tomorrow + "&attribute=devise&from=2026-05-40&colour=red&websiteId=x": {
			`"in":"path","name":"table","value":"result","detail":"unknown table; did you mean results?"`,
			`"name":"format","value":"parqet","detail":"unknown ending of a file; did you mean parquet?"`,
			`"in":"query","name":"attribute","value":"devise","detail":"unknown attribute; did you mean device?"`,
			`"name":"since","value":"` + tomorrow + `","detail":"must not be in the future`,
			`"name":"from","value":"2026-05-40"`, `"name":"colour"`, `"name":"websiteId","value":"x"`,
		},
		"/series.csv?since=2026-05-01T00:00:00Z&from=2026-05-02&to=2026-05-01": {
			`"name":"since"`, `"name":"to","value":"2026-05-01","detail":"must not be before from`,
		},
		"/segments.csv?attribute=device&attribute=country&attribute=os&attribute=browser": {`at most 3 attributes`},
		"/worth.csv?attribute=device":     {`"name":"attribute"`},
		"/results.csv?since=2026-05-01":   {`"name":"since","value":"2026-05-01","detail":"must be RFC 3339 with an offset`},
		"/results":                        {`"name":"format","value":""`},
		"/looks.json?since=2026-05-01T00": {`"name":"since"`},
	} {
		response := s.Get(tablesPath + path).Undocumented().Send().RequireStatus(http.StatusBadRequest)
		for _, want := range wants {
			check.Contains(t, response.Text, want, path)
		}
	}
	s.Get(tablesPath + "/results.csv").Token(s.shareOfCampaign()).Send().CheckStatus(http.StatusForbidden)
	s.Get(tablesPath).Token(s.shareOfCampaign()).Send().CheckStatus(http.StatusForbidden)
	s.Get(tablesPath + "/results.csv?websiteId=4").Send().CheckStatus(http.StatusNotFound)
}

// TestTablesSinceATime checks that since selects what has changed, and that series and segments select.
func TestTablesSinceATime(t *testing.T) {
	s := newShops(t)
	asOf := time.Now().UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
	e := at(1, "somebody", 1, schema.KindView, 0)
	e.WebsiteID, e.SubjectID = 2, 41
	s.fold(e)
	ids := map[string]bool{}
	for _, row := range s.tableRows("experiments.json?since=" + asOf) {
		ids[textsOf(row, "kind", "subjectId")] = true
	}
	check.That(t, ids["campaign 41"], "the changed campaign is missing")
	check.That(t, !ids["campaign 31"], "a stopped campaign has not changed")
	rows := s.tableRows("series.json")
	first := rows[0]["day"].(string)
	for _, row := range s.tableRows("series.json?to=" + first) {
		check.That(t, row["day"].(string) <= first, "%s after %s", row["day"], first)
	}
	attributes := map[string]bool{}
	for _, row := range s.tableRows("segments.json?attribute=device&attribute=country") {
		attributes[row["attribute"].(string)] = true
	}
	check.Equal(t, fmt.Sprint(attributes), "map[country:true device:true]", "attributes")
}

// TestWorthAsATable compares the CSV of a programme with the table of its website.
func TestWorthAsATable(t *testing.T) {
	s := newShops(t)
	table := s.Get(tablesPath + "/worth.csv?websiteId=1").Send().RequireStatus(http.StatusOK).Text
	ofWebsite := s.Get("/v1/websites/1/worth").Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK).Text
	check.Equal(t, ofWebsite, table, "worth of website 1")
	ofGoal := s.Get("/v1/websites/1/worth?goal=3").Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK).Text
	check.That(t, strings.Count(ofGoal, "\n") > 1, "no rows: %s", ofGoal)
	ofMetric := s.Get("/v1/websites/1/worth?metric=profitPerVisitor").Header("Accept", "text/csv").Send().
		RequireStatus(http.StatusOK).Text
	check.Equal(t, strings.Count(ofMetric, "\n"), 1, "rows of a metric without campaigns")
}

// TestDecisionsHaveAllEntries checks the entries that are derived from what is written down.
func TestDecisionsHaveAllEntries(t *testing.T) {
	s := newShops(t)
	s.Post("/v1/campaigns/41/stop", "").Send().RequireStatus(http.StatusOK)
	s.Post("/v1/campaigns/41/start", "").Send().RequireStatus(http.StatusOK)
	s.Request(http.MethodPut, "/v1/campaigns/31/outcome", `{"outcome":"dropped","note":"too slow"}`).
		Type("application/json").Send().RequireStatus(http.StatusOK)
	s.apply(shopWith("{id: 51, name: Never, controlShare: 40, variations: [{id: 1, name: New, share: 60}]}"))
	s.apply(shopWith("{id: 51, name: Never, controlShare: 50, variations: [{id: 1, name: New, share: 50}], plannedDays: 70}"))
	of41 := schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41}
	s.recordLooks(of41)
	must.Get(s.outbox.WriteMessages(t.Context(), []outbox.Message{
		outbox.NewMessage("msg_1", 1, catalogue.EventDecisionChanged, of41, "ship", time.Now(),
			outbox.Data{Text: "Ship New.", Decision: json.RawMessage(`{"status":"ship","variationId":1}`)}),
		outbox.NewMessage("msg_2", 1, catalogue.EventCheckFailed, of41, "sampleRatio", time.Now(),
			outbox.Data{Text: "The split is not as declared."}),
	}))(t)
	rows := s.tableRows("decisions.json")
	texts := map[string]string{}
	for _, row := range rows {
		texts[textsOf(row, "subjectId", "entry")] = textsOf(row, "text", "status", "by")
	}
	check.Contains(t, texts["41 stopped"], "It was stopped.", "entries: %v", texts)
	check.Contains(t, texts["41 started"], "It was started.", "entries: %v", texts)
	check.Contains(t, texts["31 outcome"], "too slow dropped", "entries: %v", texts)
	check.Contains(t, texts["51 shares"], "The shares are now 50 of variation 0, 50 of variation 1.", "entries: %v", texts)
	check.Contains(t, texts["51 plan"], "The plan was changed.", "entries: %v", texts)
	check.Contains(t, texts["41 look"], "Look 1 until ", "entries: %v", texts)
	check.Equal(t, texts["41 decision"], "Ship New. ship <nil>", "entries: %v", texts)
	check.Equal(t, texts["41 check"], "The split is not as declared. sampleRatio <nil>", "entries: %v", texts)
	again := s.tableRows("decisions.json")
	check.Equal(t, fmt.Sprint(again), fmt.Sprint(rows), "the entries of another request")
	ids := map[string]bool{}
	for _, row := range rows {
		ids[row["entryId"].(string)] = true
	}
	check.Equal(t, len(ids), len(rows), "distinct ids")
	theirs := s.Get(tablesPath + "/decisions.json").Token(s.newToken(2, 0, catalogue.ScopeRead)).Send().Text
	check.That(t, !strings.Contains(theirs, "too slow"), "another account: %s", theirs)
}
