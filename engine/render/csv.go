package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/result"
)

// csvColumn is a column of the CSV output: a path in the report, the slice, the
// point or the variation of a row.
type csvColumn struct {
	name   string
	object func(*csvRow) map[string]any
	path   []string
}

// csvRow holds the JSON objects of a row. Rows of the whole report have no slice
// and no point.
type csvRow struct {
	report, concluded, slice, point, variation map[string]any
}

var csvColumns = slices.Concat(
	columnsIn(func(r *csvRow) map[string]any { return r.report }, "",
		"campaignId", "widgetId", "experimentId", "goal.id", "goal.name", "compareMetric", "methodology", "significanceLevel",
		"dimension", "filters", "window.from", "window.to", "dataThrough"),
	columnsIn(func(r *csvRow) map[string]any { return r.slice }, "breakdown.", "value"),
	columnsIn(func(r *csvRow) map[string]any { return r.point }, "series.", "time"),
	columnsIn(func(r *csvRow) map[string]any { return r.variation }, "", variationPaths()...),
	columnsIn(func(r *csvRow) map[string]any { return r.concluded }, "", "conclusion.status", "conclusion.variationId", "conclusion.look", "conclusion.decidedAt"),
)

func columnsIn(object func(*csvRow) map[string]any, prefix string, paths ...string) []csvColumn {
	columns := make([]csvColumn, len(paths))
	for i, path := range paths {
		columns[i] = csvColumn{prefix + path, object, strings.Split(path, ".")}
	}
	return columns
}

// scorecardCSV are the columns of a scorecard: the report, the decision, the goal and
// metric of the row in place of a slice, and the variation.
var scorecardCSV = slices.Concat(
	columnsIn(func(r *csvRow) map[string]any { return r.report }, "",
		"campaignId", "widgetId", "experimentId", "methodology", "significanceLevel", "filters", "window.from", "window.to",
		"dataThrough", "decision.status", "decision.variationId", "decision.decidedAt"),
	columnsIn(func(r *csvRow) map[string]any { return r.slice }, "", "goal.id", "goal.name", "metric", "role", "direction"),
	columnsIn(func(r *csvRow) map[string]any { return r.variation }, "", scorecardPaths()...),
)

func scorecardPaths() []string {
	paths := []string{"id", "name", "control"}
	paths = append(paths, pathsUnder("estimate.", "value", "uncapped", "standardError", "interval.lower", "interval.upper", "reason")...)
	paths = append(paths, comparisonPaths()...)
	paths = append(paths, "qValue", "discovered")
	paths = append(paths, pathsUnder("guardrail.", "status", "margin", "absoluteMargin", "lower", "upper", "requiredVisitors", "decidedAt", "reason")...)
	return append(paths, pathsUnder("impact.", "perMonth.value", "perMonth.interval.lower", "perMonth.interval.upper", "reason")...)
}

func scorecardRows(report map[string]any) []csvRow {
	var rows []csvRow
	scorecard, _ := report["scorecard"].([]any)
	for _, r := range scorecard {
		row, _ := r.(map[string]any)
		variations, _ := row["variations"].([]any)
		for _, v := range variations {
			variation, _ := v.(map[string]any)
			rows = append(rows, csvRow{report: report, slice: row, variation: variation})
		}
	}
	return rows
}

// pathsUnder returns the paths below a prefix.
func pathsUnder(prefix string, names ...string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = prefix + name
	}
	return paths
}

func variationPaths() []string {
	paths := []string{
		"id", "name", "control", "share", "visitors", "views", "convertedVisitors", "goalsReached", "value", "profit", "extraValue",
		"clicks", "submits", "completions", "conversions", "contacts",
	}
	for _, metric := range []string{
		"goalConversionRate", "conversionRate", "completionRate", "goalsPerVisitor",
		"valuePerVisitor", "profitPerVisitor", "extraValuePerVisitor", "averageValue",
	} {
		paths = append(paths, pathsUnder("metrics."+metric+".", "value", "uncapped", "standardError", "interval.lower", "interval.upper", "reason")...)
	}
	return append(paths, comparisonPaths()...)
}

func comparisonPaths() []string {
	var paths []string
	of := func(prefix string, names ...string) { paths = append(paths, pathsUnder(prefix, names...)...) }
	of("comparison.difference.", "value", "observed", "interval.lower", "interval.upper", "reason")
	of("comparison.improvement.", "value", "observed", "interval.lower", "interval.upper", "reason")
	of("comparison.frequentist.", "test", "statistic", "degreesOfFreedom", "pValue", "adjustedPValue", "correction", "reason")
	of("comparison.sequential.", "look", "end", "pValue", "difference.lower", "difference.upper", "improvement.lower", "improvement.upper", "significant", "reason", "improvementReason")
	of("comparison.bayesian.", "chanceToBeatControl", "chanceToBeBest", "expectedLoss", "expectedLossControl", "prior.mean", "prior.standardDeviation", "reason")
	of("comparison.", "significant", "verdict", "conclusive", "reasons")
	return paths
}

// CSV returns the results as CSV with a header: one row per variation of the
// report, then per value of the dimension, then per point of the series. All
// reports without a scorecard have the same columns. A scorecard has one row per goal,
// metric and variation instead. Names and numbers are those of the JSON output.
func CSV(r *result.Report) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	report := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // keeps all digits
	if err := decoder.Decode(&report); err != nil {
		return nil, err
	}
	columns, rows := csvColumns, csvRows
	if r.Scorecard != nil {
		columns, rows = scorecardCSV, scorecardRows
	}
	var text bytes.Buffer
	table := csv.NewWriter(&text)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.name
	}
	_ = table.Write(record) // in memory; Error reports failures
	for _, row := range rows(report) {
		for i, c := range columns {
			record[i] = csvCell(valueAt(c.object(&row), c.path))
		}
		_ = table.Write(record)
	}
	table.Flush()
	return text.Bytes(), table.Error()
}

func csvRows(report map[string]any) []csvRow {
	var rows []csvRow
	add := func(object map[string]any, row csvRow) {
		row.report = report
		variations, _ := object["variations"].([]any)
		for _, v := range variations {
			row.variation, _ = v.(map[string]any)
			rows = append(rows, row)
		}
	}
	add(report, csvRow{concluded: report})
	breakdown, _ := report["breakdown"].([]any)
	for _, c := range breakdown {
		slice, _ := c.(map[string]any)
		add(slice, csvRow{concluded: slice, slice: slice})
	}
	points, _ := report["series"].([]any)
	for _, p := range points {
		point, _ := p.(map[string]any)
		add(point, csvRow{point: point})
	}
	return rows
}

// valueAt returns the value at a path. The ends of an interval are named lower and
// upper.
func valueAt(object map[string]any, path []string) any {
	var found any = object
	for _, name := range path {
		switch in := found.(type) {
		case map[string]any:
			found = in[name]
		case []any:
			end := 0
			if name == "upper" {
				end = 1
			}
			found = in[end]
		default:
			return nil
		}
	}
	return found
}

func csvCell(value any) string {
	switch value := value.(type) {
	case json.Number:
		return value.String()
	case bool:
		return strconv.FormatBool(value)
	case string:
		return escapeFormula(value)
	case []any:
		words := make([]string, len(value))
		for i := range value {
			words[i] = csvCell(value[i])
		}
		return strings.Join(words, " ")
	case map[string]any: // filters
		if text, err := json.Marshal(value); err == nil && len(value) > 0 {
			return string(text)
		}
	}
	return ""
}

// escapeFormula escapes a text that a spreadsheet would evaluate as a formula. Names and
// attribute values are user input.
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
