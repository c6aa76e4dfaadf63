package docs

import "strings"

// The data of the page.

type docTag struct {
	Name, Description string
	Operations        []docOperation
}

type docOperation struct {
	node
	ID, Method, Path, Scope string
	Parameters              []node
	Responses               []docResponse
}

type docResponse struct {
	node
	Shared   string // name of a shared response; empty: specific to the operation
	Contents []docContent
}

type docContent struct {
	node
	Schema, Example string
}

type docSchema struct {
	node
	Extends []string
	Fields  []docField
}

type docField struct {
	node
	Required bool
}

func operationsByTag(root node) []docTag {
	var tags []docTag
	for _, tag := range root.at("tags").pairs() {
		shown := docTag{Name: tag.at("name").Text(), Description: tag.at("description").Text()}
		for _, path := range root.at("paths").pairs() {
			for _, operation := range path.pairs() {
				first := operation.at("tags").pairs()
				if len(first) == 0 || first[0].Text() != shown.Name || operation.key == "options" {
					continue
				}
				shown.Operations = append(shown.Operations, docOperation{
					node: operation, ID: operation.at("operationId").Text(), Method: strings.ToUpper(operation.key), Path: path.key,
					Scope: scopeOf(operation), Parameters: append(path.at("parameters").pairs(), operation.at("parameters").pairs()...),
					Responses: responsesOf(operation.at("responses")),
				})
			}
		}
		tags = append(tags, shown)
	}
	return tags
}

// scopeOf returns the scope that an operation requires.
func scopeOf(operation node) string {
	given := operation.at("security")
	if given.value == nil {
		return "read"
	}
	for _, requirement := range given.pairs() {
		for _, scope := range requirement.at("bearer").pairs() {
			return scope.Text()
		}
	}
	return ""
}

func responsesOf(responses node) []docResponse {
	var shown []docResponse
	for _, response := range responses.pairs() {
		r := docResponse{node: response}
		if response.name != response.key {
			r.Shared = response.name
		}
		for _, content := range response.at("content").pairs() {
			schema := content.at("schema")
			c := docContent{node: content, Schema: schema.shortType()}
			if example := content.at("example"); example.value != nil {
				c.Example, _ = example.JSON()
			}
			r.Contents = append(r.Contents, c)
		}
		shown = append(shown, r)
	}
	return shown
}

func schemasOf(root node) []docSchema {
	var shown []docSchema
	for _, schema := range root.at("components", "schemas").pairs() {
		s := docSchema{node: schema}
		for _, base := range schema.at("allOf").pairs() {
			s.Extends = append(s.Extends, base.name)
		}
		required := map[string]bool{}
		for _, name := range schema.at("required").pairs() {
			required[name.Text()] = true
		}
		for _, field := range schema.at("properties").pairs() {
			s.Fields = append(s.Fields, docField{field, required[field.key]})
		}
		shown = append(shown, s)
	}
	return shown
}
