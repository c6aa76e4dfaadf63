package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

var (
	selector  = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	labelName = regexp.MustCompile(`([a-z_]+)=`)
	byLabels  = regexp.MustCompile(`by \(([^)]*)\)`)
)

// The Grafana dashboard and the alerts must use existing metrics and labels.
func TestMonitoringUsesExistingMetrics(t *testing.T) {
	s := newServer(t)
	s.Get("/v1/campaigns/12/results").Send()
	declared, err := os.ReadFile("metrics.go") // metrics with labels have no value before their first use
	must.OK(t, err)
	metrics := s.metrics()
	isMetric := func(name string) bool {
		return strings.Contains(string(declared), `Name: "`+name+`"`) || strings.Contains(metrics, "# TYPE "+name+" ")
	}
	isLabel := func(label string) bool {
		return label == "job" || label == "le" || strings.Contains(string(declared), `"`+label+`"`)
	}
	for _, expression := range append(dashboardExpressions(t), alertExpressions(t)...) {
		found := selector.FindAllStringSubmatch(expression, -1)
		check.That(t, len(found) != 0, "%s names no metric", expression)
		for _, m := range found {
			name := strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_count")
			if m[1] == "up" {
				continue // Prometheus' own
			}
			check.That(t, isMetric(name), "the metric %s does not exist; %s uses it", name, expression)
			for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
				check.That(t, isLabel(label[1]), "no metric has the label %s; %s uses it", label[1], expression)
			}
		}
		for _, m := range byLabels.FindAllStringSubmatch(expression, -1) {
			for label := range strings.SplitSeq(m[1], ", ") {
				check.That(t, isLabel(label), "no metric has the label %s; %s groups by it", label, expression)
			}
		}
	}
}

func dashboardExpressions(t *testing.T) []string {
	t.Helper()
	text := must.Get(os.ReadFile("monitoring/grafana.json"))(t)
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	must.OK(t, json.Unmarshal(text, &dashboard))
	var all []string
	for _, panel := range dashboard.Panels {
		check.That(t, panel.Title != "", "a panel has no title or no description: %+v", panel)
		check.That(t, panel.Description != "", "a panel has no title or no description: %+v", panel)
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	check.That(t, len(all) >= 12, "%d expressions, want at least 12", len(all))
	return all
}

func alertExpressions(t *testing.T) []string {
	t.Helper()
	text := must.Get(os.ReadFile("monitoring/alerts.yaml"))(t)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Expr        string
				Annotations struct{ Summary, Description string }
			}
		}
	}
	must.OK(t, yaml.Unmarshal(text, &file))
	var all []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			check.That(t, rule.Alert != "", "an alert lacks a name, a summary or a description: %+v", rule)
			check.That(t, rule.Annotations.Summary != "", "an alert lacks a name, a summary or a description: %+v",
				rule)
			check.That(t, rule.Annotations.Description != "", "an alert lacks a name, a summary or a description: %+v",
				rule)
			all = append(all, rule.Expr)
		}
	}
	check.That(t, len(all) >= 5, "%d alerts, want at least 5", len(all))
	return all
}

// TestTheProgrammeUsesExistingColumns checks that each panel of the Grafana dashboard of the programme reads a table
// that exists, and columns of it.
func TestTheProgrammeUsesExistingColumns(t *testing.T) {
	s := newShops(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Parser, URL  string
				RootSelector string `json:"root_selector"`
				Columns      []struct{ Selector string }
			}
		}
	}
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("monitoring/programme.json"))(t), &dashboard))
	check.Equal(t, len(dashboard.Panels), 6, "panels")
	for _, panel := range dashboard.Panels {
		target := panel.Targets[0]
		check.Equal(t, target.Parser, "backend", "parser of "+panel.Title)
		path := strings.TrimPrefix(target.URL, "${url}")
		var rows []map[string]any
		s.Get(path).Send().RequireStatus(http.StatusOK).JSON(&rows)
		must.That(t, len(rows) > 0, "%s: %s has no rows", panel.Title, path)
		for _, column := range target.Columns {
			_, exists := rows[0][column.Selector]
			isComputed := strings.Contains(target.RootSelector, `"`+column.Selector+`":`)
			check.That(t, exists || isComputed, "%s: %s has no column %s", panel.Title, path, column.Selector)
		}
		for _, name := range rootColumn.FindAllStringSubmatch(target.RootSelector, -1) {
			_, exists := rows[0][name[1]]
			check.That(t, exists, "%s: %s has no column %s", panel.Title, path, name[1])
		}
	}
}

// rootColumn matches a column in a condition of JSONata.
var rootColumn = regexp.MustCompile(`(\w+)!?=`)
