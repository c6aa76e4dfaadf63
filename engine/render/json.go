package render

import (
	"bytes"
	"encoding/json"
)

// JSON returns a body as JSON without HTML escapes, which only serve JSON within
// pages. The error is that of a value that JSON cannot express.
func JSON(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return text.Bytes(), err
}
