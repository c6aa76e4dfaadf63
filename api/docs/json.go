package docs

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// encodeJSON returns the document as JSON. Fields keep their order.
func encodeJSON() ([]byte, error) {
	var document yaml.Node
	if err := yaml.Load(openapiYAML, &document); err != nil {
		return nil, err
	}
	return appendJSON(nil, document.Content[0])
}

// appendJSON appends a value as JSON. Maps keep their order.
func appendJSON(text []byte, value *yaml.Node) ([]byte, error) {
	if value == nil {
		return append(text, "null"...), nil
	}
	open, end, isMap := byte('['), byte(']'), value.Kind == yaml.MappingNode
	switch {
	case isMap:
		open, end = '{', '}'
	case value.Tag == "!!str" || value.Tag == "!!timestamp":
		encoded, err := json.Marshal(value.Value)
		return append(text, encoded...), err
	case value.Kind == yaml.ScalarNode: // written as in JSON
		return append(text, value.Value...), nil
	}
	text = append(text, open)
	for i, item := range value.Content {
		separator := byte(',')
		if isMap && i%2 == 1 {
			separator = ':'
		}
		if i > 0 {
			text = append(text, separator)
		}
		if isMap && i%2 == 0 {
			item = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item.Value} // such as the status 200
		}
		var err error
		if text, err = appendJSON(text, item); err != nil {
			return nil, err
		}
	}
	return append(text, end), nil
}
