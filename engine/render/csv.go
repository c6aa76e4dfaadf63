package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/result"
	"lifthouse/engine/wording"
)

// The columns of the CSV output are paths in a row, see CSV.
var (
	reportCSV = pathsOf(`campaignId widgetId experimentId goal.id goal.name compareMetric methodology significanceLevel
		dimension filters conversionWindow:from,to,source checks.conversionWindow.immatureVisitors window:from,to
		dataThrough breakdown.value series.time id name control share visitors views convertedVisitors goalsReached
		value profit extraValue clicks submits completions conversions contacts
		metrics.goalConversionRate:ESTIMATE metrics.conversionRate:ESTIMATE metrics.completionRate:ESTIMATE
		metrics.goalsPerVisitor:ESTIMATE metrics.valuePerVisitor:ESTIMATE metrics.profitPerVisitor:ESTIMATE
		metrics.extraValuePerVisitor:ESTIMATE metrics.averageValue:ESTIMATE COMPARISON
		comparison.complement:visitors,controlVisitors comparison.complement.improvement:EFFECT
		comparison.complement.improvementDifference:RANGE,reason
		heterogeneity:segments,bayesFactor,pValue,reason conclusion:status,variationId,look,decidedAt
		question:metric,visitors breakdown.values split.value split.label
		metric:value,standardError,INTERVAL,reason,visitors metric:numerator,denominator comparison.evidence:ratio,needed,oneOf,pValue,holds,reason`)
	scorecardCSV = pathsOf(`campaignId widgetId experimentId methodology significanceLevel filters window:from,to
		dataThrough report.goal:id,name report.conversionWindow:from,to,source
		decision:status,variationId,decidedAt goal:id,name metric conversionWindow:from,to,source
		role direction id name control estimate:ESTIMATE COMPARISON qValue discovered
		guardrail:status,margin,absoluteMargin,lower,upper,requiredVisitors,decidedAt,reason`)
	curveCSV = pathsOf(`campaignId widgetId experimentId goal:id,name compareMetric methodology significanceLevel
		filters window:from,to dataThrough cohort:days,visitors,immatureVisitors critical day id value
		comparison.difference:RANGE,reason comparison.improvement:RANGE,reason
		simultaneous.difference:INTERVAL simultaneous.improvement:INTERVAL`)
)

// pathsOf returns the paths of columns. The names after a colon are below the path before it. A word in capitals stands
// for several.
func pathsOf(columns string) (paths []string) {
	columns = strings.NewReplacer("COMPARISON", `comparison.difference:EFFECT comparison.improvement:EFFECT
		comparison.frequentist:test,statistic,degreesOfFreedom,pValue,adjustedPValue,correction,reason
		comparison.sequential:look,end,pValue,difference.lower,difference.upper,improvement.lower,improvement.upper
		comparison.sequential:significant,reason,improvementReason
		comparison.bayesian:chanceToBeatControl,chanceToBeBest,expectedLoss,expectedLossControl
		comparison.bayesian:prior.mean,prior.standardDeviation,prior.campaigns,reason
		comparison:significant,verdict,conclusive,reasons`).Replace(columns)
	columns = strings.NewReplacer("ESTIMATE", "value,uncapped,standardError,INTERVAL,reason",
		"EFFECT", "value,observed,INTERVAL,reason", "RANGE", "value,INTERVAL").Replace(columns)
	columns = strings.ReplaceAll(columns, "INTERVAL", "interval.lower,interval.upper")
	for column := range strings.FieldsSeq(columns) {
		prefix, names, hasNames := strings.Cut(column, ":")
		if !hasNames {
			paths = append(paths, column)
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			paths = append(paths, prefix+"."+name)
		}
	}
	return paths
}

// CSV returns the results as CSV with a header: one row per variation of the report, then per value of the dimension,
// then per point of the series. All reports without a scorecard have the same columns. A scorecard has one row per
// goal, metric and variation instead, and a curve one row per day and variation. Names and numbers are those of the
// JSON output.
func CSV(r *result.Report) ([]byte, error) {
	columns := reportCSV
	switch {
	case r.Curve != nil:
		columns = curveCSV
	case r.Scorecard != nil:
		columns = scorecardCSV
	}
	return tableOf(r, columns, func(report map[string]any) (rows []map[string]any) {
		// add adds a row for each variation of an object: the fields of the report, the given ones, and its own.
		add := func(object, fields map[string]any) {
			for _, variation := range objectsIn(object, "variations") {
				row := maps.Clone(report)
				maps.Copy(row, fields)
				maps.Copy(row, variation)
				rows = append(rows, row)
			}
		}
		switch {
		case r.Curve != nil:
			curve, _ := report["curve"].(map[string]any)
			for _, point := range objectsIn(curve, "points") {
				fields := maps.Clone(curve)
				maps.Copy(fields, point)
				add(point, fields)
			}
		case r.Scorecard != nil: // the goal and the conversion window of the report are under report
			for _, row := range objectsIn(report, "scorecard") {
				fields := maps.Clone(row)
				fields["report"] = report
				fields["conversionWindow"] = row["conversionWindow"]
				add(row, fields)
			}
			for _, reading := range objectsIn(report, "followUp") {
				add(reading, followUpFields(report, reading))
			}
		default:
			parts, _ := report["split"].(map[string]any)
			add(report, map[string]any{"breakdown": nil, "series": nil, "split": nil})
			for _, slice := range objectsIn(report, "breakdown") {
				add(slice, map[string]any{
					"breakdown": slice, "series": nil, "split": nil, "conclusion": slice["conclusion"],
				})
			}
			for _, part := range objectsIn(parts, "items") {
				add(part, map[string]any{"breakdown": nil, "series": nil, "split": part, "conclusion": nil})
			}
			for _, point := range objectsIn(report, "series") {
				add(point, map[string]any{"breakdown": nil, "series": point, "conclusion": nil})
			}
		}
		return rows
	})
}

// QuestionTable is the answer to a question of a batch: the CSV of its report, or what is wrong with it.
type QuestionTable struct {
	Table   []byte
	Problem string
}

// QuestionsCSV returns the tables of questions as one. The first column is the number of the question, from 1, and the
// last one is what is wrong with it.
func QuestionsCSV(tables []QuestionTable) ([]byte, error) {
	columns := []string{"question"}
	all := make([][][]string, len(tables)) // rows, with their header
	for i := range tables {
		rows, err := csv.NewReader(bytes.NewReader(tables[i].Table)).ReadAll()
		if err != nil {
			return nil, err
		}
		all[i] = rows
		for _, name := range slices.Concat(rows[:min(len(rows), 1)]...) {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	columns = append(columns, "problem")
	var text bytes.Buffer
	table := csv.NewWriter(&text)
	_ = table.Write(columns) // in memory; Error reports failures
	for i, rows := range all {
		first := make([]string, len(columns))
		first[0] = strconv.Itoa(i + 1)
		first[len(first)-1] = wording.EscapeFormula(tables[i].Problem)
		if len(rows) == 0 {
			_ = table.Write(first)
			continue
		}
		for _, row := range rows[1:] {
			record := slices.Clone(first)
			for k, name := range rows[0] {
				record[slices.Index(columns, name)] = row[k]
			}
			_ = table.Write(record)
		}
	}
	table.Flush()
	return text.Bytes(), table.Error()
}

// tableOf returns the CSV of the rows that a value has as JSON.
func tableOf(value any, columns []string, rows func(map[string]any) []map[string]any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	report := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // keeps all digits
	if err := decoder.Decode(&report); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	table := csv.NewWriter(&text)
	_ = table.Write(columns) // in memory; Error reports failures
	for _, row := range rows(report) {
		record := make([]string, len(columns))
		for i, path := range columns {
			record[i] = csvCell(valueAt(row, strings.Split(path, ".")))
		}
		_ = table.Write(record)
	}
	table.Flush()
	return text.Bytes(), table.Error()
}

func objectsIn(object map[string]any, name string) []map[string]any {
	list, _ := object[name].([]any)
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i], _ = list[i].(map[string]any)
	}
	return objects
}

// valueAt returns the value at a path. The ends of an interval are named lower and upper.
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
		return wording.EscapeFormula(value)
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

// JSON returns a body as JSON without HTML escapes, which are only needed within HTML pages. It returns an error if
// JSON cannot express a value.
func JSON(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return text.Bytes(), err
}

// followUpFields returns the fields that the rows of a reading of later orders have in the place of those of a goal.
func followUpFields(report, reading map[string]any) map[string]any {
	for _, of := range objectsIn(reading, "variations") {
		of["estimate"] = map[string]any{"value": of["value"]}
	}
	return map[string]any{
		"report": report, "goal": report["goal"], "metric": reading["metric"], "role": "followUp",
		"conversionWindow": map[string]any{"from": "0h", "to": reading["window"], "source": "followUp"},
	}
}
