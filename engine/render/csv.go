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
	"lifthouse/engine/worth"
)

// The columns of the CSV output are paths in a row, see CSV.
var (
	reportCSV = slices.Concat(
		under("", "campaignId widgetId experimentId goal.id goal.name compareMetric methodology significanceLevel "+
			"dimension filters"),
		under("conversionWindow.", "from to source"), under("", "checks.conversionWindow.immatureVisitors"),
		under("", "window.from window.to dataThrough breakdown.value series.time id name control share visitors views"),
		under("",
			"convertedVisitors goalsReached value profit extraValue clicks submits completions conversions contacts"),
		under("metrics.goalConversionRate.", estimateFields), under("metrics.conversionRate.", estimateFields),
		under("metrics.completionRate.", estimateFields), under("metrics.goalsPerVisitor.", estimateFields),
		under("metrics.valuePerVisitor.", estimateFields), under("metrics.profitPerVisitor.", estimateFields),
		under("metrics.extraValuePerVisitor.", estimateFields), under("metrics.averageValue.", estimateFields),
		comparisonCSV,
		under("comparison.complement.", "visitors controlVisitors"),
		under("comparison.complement.improvement.", effectFields),
		under("comparison.complement.improvementDifference.", "value interval.lower interval.upper reason"),
		under("heterogeneity.", "segments bayesFactor pValue reason"),
		under("conclusion.", "status variationId look decidedAt"),
	)
	scorecardCSV = slices.Concat(
		under("",
			"campaignId widgetId experimentId methodology significanceLevel filters window.from window.to dataThrough"),
		under("report.", "goal.id goal.name conversionWindow.from conversionWindow.to conversionWindow.source"),
		under("decision.", "status variationId decidedAt"),
		under("", "goal.id goal.name metric conversionWindow.from conversionWindow.to conversionWindow.source"),
		under("", "role direction id name control"),
		under("estimate.", estimateFields),
		comparisonCSV,
		under("", "qValue discovered"),
		under("guardrail.", "status margin absoluteMargin lower upper requiredVisitors decidedAt reason"),
	)
	curveCSV = slices.Concat(
		under("", "campaignId widgetId experimentId goal.id goal.name compareMetric methodology significanceLevel "+
			"filters window.from window.to dataThrough"),
		under("cohort.", "days visitors immatureVisitors"), under("", "critical day id value"),
		under("comparison.difference.", "value interval.lower interval.upper reason"),
		under("comparison.improvement.", "value interval.lower interval.upper reason"),
		under("simultaneous.difference.", "interval.lower interval.upper"),
		under("simultaneous.improvement.", "interval.lower interval.upper"),
	)
	programmeCSV = slices.Concat(
		under("",
			"websiteId goalId currency campaignId widgetId experimentId campaign variationId name metric "+
				"state endedAt"),
		under("", "shipped"), under("outcome.", "outcome variationId date note declared"),
		under("observed.", "lift perMonth valuePerMonth"),
		under("expected.lift.", rangeFields), under("expected.perMonth.", rangeFields),
		under("expected.valuePerMonth.", rangeFields),
		under("", "chance reason valueReason"),
	)
	estimateFields = "value uncapped standardError interval.lower interval.upper reason"
	rangeFields    = "value interval.lower interval.upper"
	effectFields   = "value observed interval.lower interval.upper reason"
	comparisonCSV  = slices.Concat(
		under("comparison.difference.", effectFields), under("comparison.improvement.", effectFields),
		under("comparison.frequentist.", "test statistic degreesOfFreedom pValue adjustedPValue correction reason"),
		under("comparison.sequential.", "look end pValue difference.lower difference.upper improvement.lower "+
			"improvement.upper"),
		under("comparison.sequential.", "significant reason improvementReason"),
		under("comparison.bayesian.", "chanceToBeatControl chanceToBeBest expectedLoss expectedLossControl"),
		under("comparison.bayesian.", "prior.mean prior.standardDeviation prior.campaigns reason"),
		under("comparison.", "significant verdict conclusive reasons"),
	)
)

// under returns the paths of names below a prefix.
func under(prefix, names string) []string {
	paths := strings.Fields(names)
	for i, name := range paths {
		paths[i] = prefix + name
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
				fields["report"], fields["conversionWindow"] = report, row["conversionWindow"]
				add(row, fields)
			}
		default:
			add(report, map[string]any{"breakdown": nil, "series": nil})
			for _, slice := range objectsIn(report, "breakdown") {
				add(slice, map[string]any{"breakdown": slice, "series": nil, "conclusion": slice["conclusion"]})
			}
			for _, point := range objectsIn(report, "series") {
				add(point, map[string]any{"breakdown": nil, "series": point, "conclusion": nil})
			}
		}
		return rows
	})
}

// ProgrammeCSV returns a programme as CSV with a header: one row per treatment. Names and numbers are those of the JSON
// output.
func ProgrammeCSV(p *worth.Programme) ([]byte, error) {
	return tableOf(p, programmeCSV, func(programme map[string]any) []map[string]any {
		rows := objectsIn(programme, "items")
		for _, row := range rows {
			row["websiteId"], row["goalId"], row["currency"] = programme["websiteId"], programme["goalId"],
				programme["currency"]
		}
		return rows
	})
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
