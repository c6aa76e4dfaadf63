package docs

import (
	"net/http"
	"strconv"
	"strings"
)

// The data of the page.

type docTag struct {
	Name, Description string
	Operations        []docOperation
}

type docOperation struct {
	node
	ID, Method, Path, Scope string
	Parameters              []docParameters
	Sample                  docSample
	Samples                 []docSample // more
	Body                    []docContent
	Responses               []docResponse
}

// docParameters is a group of parameters. Groups with a summary are folded.
type docParameters struct {
	Summary string
	All     []node
}

type docResponse struct {
	node
	Shared   string // name of a shared response; empty: specific to the operation
	Title    string // text of the status code
	Contents []docContent
}

type docContent struct {
	node
	SameAs  *docOperation // operation with the same, long list of fields; nil: Fields has them
	Fields  []docField
	Example string
	Long    bool // the example has many lines
}

// Limits of the size of the page.
const (
	longExample = 30 // lines above which an example is folded
	manyFields  = 60 // fields above which a schema is expanded once
)

func operationsByTag(root node) []docTag {
	var tags []docTag
	for _, tag := range root.valueAt("tags").childNodes() {
		shown := docTag{Name: tag.valueAt("name").Text(), Description: tag.valueAt("description").Text()}
		for _, path := range root.valueAt("paths").childNodes() {
			for _, operation := range path.childNodes() {
				first := operation.valueAt("tags").childNodes()
				if len(first) == 0 || first[0].Text() != shown.Name || operation.key == "options" {
					continue
				}
				shown.Operations = append(shown.Operations, newOperation(path, operation))
			}
		}
		tags = append(tags, shown)
	}
	expandOnce(tags)
	return tags
}

// expandOnce replaces a long list of response fields with a link if an earlier
// operation has the same list.
func expandOnce(tags []docTag) {
	first := map[string]*docOperation{}
	for _, tag := range tags {
		for i := range tag.Operations {
			operation := &tag.Operations[i]
			for _, response := range operation.Responses {
				for j := range response.Contents {
					content := &response.Contents[j]
					schema, _ := objectIn(content.valueAt("schema"))
					if name := schema.schemaName(); name == "" || countFields(content.Fields) <= manyFields {
						continue
					} else if earlier := first[name]; earlier != nil {
						content.SameAs, content.Fields = earlier, nil
					} else {
						first[name] = operation
					}
				}
			}
		}
	}
}

// countFields returns the number of fields, including those of inner objects.
func countFields(fields []docField) int {
	n := len(fields)
	for _, field := range fields {
		n += countFields(field.Fields)
	}
	return n
}

func newOperation(path, operation node) docOperation {
	parameters := append(path.valueAt("parameters").childNodes(), operation.valueAt("parameters").childNodes()...)
	method := strings.ToUpper(operation.key)
	samples := samplesOf(operation, method, path.key, parameters)
	return docOperation{
		node: operation, ID: operation.valueAt("operationId").Text(), Method: method, Path: path.key, Scope: scopeOf(operation),
		Parameters: groupParameters(parameters),
		Sample:     samples[0],
		Samples:    samples[1:],
		Body:       contentsOf(operation.valueAt("requestBody")),
		Responses:  responsesOf(operation.valueAt("responses")),
	}
}

// groupParameters groups the parameters: path and query, filters, and headers.
func groupParameters(parameters []node) []docParameters {
	groups := []docParameters{{}, {Summary: "Filters"}, {Summary: "Request headers"}}
	for _, parameter := range parameters {
		group := 0
		switch {
		case parameter.valueAt("in").Text() == "header":
			group = 2
		case strings.HasPrefix(parameter.valueAt("name").Text(), "filters["):
			group = 1
		}
		groups[group].All = append(groups[group].All, parameter)
	}
	return groups
}

// scopeOf returns the scope that an operation requires.
func scopeOf(operation node) string {
	given := operation.valueAt("security")
	if given.value == nil {
		return "read"
	}
	for _, requirement := range given.childNodes() {
		for _, scope := range requirement.valueAt("bearer").childNodes() {
			return scope.Text()
		}
	}
	return ""
}

func responsesOf(responses node) []docResponse {
	var shown []docResponse
	for _, response := range responses.childNodes() {
		r := docResponse{node: response, Contents: contentsOf(response)}
		if response.name != response.key {
			r.Shared = response.name
		}
		if status, err := strconv.Atoi(response.key); err == nil {
			r.Title = http.StatusText(status)
		}
		shown = append(shown, r)
	}
	return shown
}

// contentsOf returns the content types of a response or of a request body.
func contentsOf(of node) []docContent {
	var contents []docContent
	for _, content := range of.valueAt("content").childNodes() {
		c := docContent{node: content}
		if schema := content.valueAt("schema"); schema.schemaName() != "Problem" {
			c.Fields = fieldsOf(schema, map[string]bool{})
		}
		if example := content.valueAt("example"); example.value != nil {
			c.Example, _ = example.JSON()
			c.Long = strings.Count(c.Example, "\n") > longExample || !strings.HasSuffix(content.key, "json")
		}
		contents = append(contents, c)
	}
	return contents
}

// usedBy returns the status of each shared response, by the name of the response.
func usedBy(tags []docTag) map[string]string {
	statuses := map[string]string{}
	for _, tag := range tags {
		for _, operation := range tag.Operations {
			for _, response := range operation.Responses {
				if response.Shared != "" {
					statuses[response.Shared] = response.key
				}
			}
		}
	}
	return statuses
}
