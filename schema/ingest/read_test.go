package ingest_test

import "lifthouse/schema/ingest"

// readBody returns all lines of a body.
func readBody(b ingest.Body, text string) (lines []ingest.Line, err error) {
	err = b.ParseLines([]byte(text), func(line ingest.Line) error {
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}
