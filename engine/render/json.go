package render

import (
	"bytes"
	"encoding/json"
)

// JSON returns a body as JSON without HTML escapes, which are only needed within HTML pages. It
// returns an error if JSON cannot express a value.
func JSON(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return text.Bytes(), err
}
