package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestBoundsOfBodyFields sends a value beyond each bound of the document for each field of a body.
func TestBoundsOfBodyFields(t *testing.T) {
	s, ingests := newTwoSites(t)
	c := must.Get(theContract())(t)
	admin := s.admin()
	for _, body := range []struct {
		schema, path string
		right        map[string]any
		headers      []string
	}{
		{"NewToken", "/tokens", map[string]any{"scopes": []string{"read"}}, admin},
		{"NewShare", "/shares", map[string]any{"campaignId": 12}, admin},
		{"NewShare", "/shares", map[string]any{"widgetId": 7}, admin},
		{"Event", "/events", map[string]any{
			"eventId": "e", "time": time.Now().UnixMilli(), "websiteId": 1, "visitor": "a", "event": "goal", "goalId": 3,
			"campaignId": 12, "variationId": 1,
		}, []string{"Authorization", "Bearer " + ingests}},
	} {
		tried := 0
		for name, field := range c.doc.Components.Schemas[body.schema].Value.Properties {
			for _, value := range beyond(field.Value) {
				sent := map[string]any{name: value}
				for other, right := range body.right {
					if other != name {
						sent[other] = right
					}
				}
				text := must.Get(json.Marshal(sent))(t)
				headers := append([]string{"Content-Type", "application/json"}, body.headers...)
				response, answer := s.send(http.MethodPost, body.path, strings.NewReader(string(text)), headers...)
				check.That(t, response.status == http.StatusBadRequest && strings.Contains(answer, name),
					"POST %s %.100s = %d %.300s, want 400 that names %s", body.path, text, response.status, answer, name)
				tried++
			}
		}
		check.That(t, tried >= 4, "%s: %d values", body.schema, tried)
	}
}

// beyond returns values that a schema does not allow.
func beyond(field *openapi3.Schema) (values []any) {
	if field.Min != nil {
		values = append(values, *field.Min-1)
	}
	if field.Max != nil {
		values = append(values, *field.Max+1)
	}
	if field.MinLength > 0 {
		values = append(values, "")
	}
	if field.MaxLength != nil {
		values = append(values, strings.Repeat("n", int(*field.MaxLength)+1)) //nolint:gosec // a short text
	}
	if len(field.Enum) > 0 || field.Pattern != "" {
		values = append(values, "none of these")
	}
	if field.MinItems > 0 {
		values = append(values, []string{})
	}
	if field.Type.Is("integer") {
		values = append(values, 1.5)
	}
	return values
}
