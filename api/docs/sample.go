package docs

import (
	"net/url"
	"strings"
)

// docSample is a curl command: its options, and the part of the URL after the
// origin.
type docSample struct {
	Label, Options, Rest string
}

// authorization is the option of curl that sends the token.
const authorization = ` -H "Authorization: Bearer $LIFTHOUSE_TOKEN"`

// samplesOf returns a curl command for an operation, and one for each of its
// x-samples.
func samplesOf(operation node, method, path string, parameters []node) []docSample {
	for _, parameter := range parameters {
		if parameter.valueAt("in").Text() == "path" {
			value := url.PathEscape(parameter.valueAt("example").Text())
			path = strings.ReplaceAll(path, "{"+parameter.valueAt("name").Text()+"}", value)
		}
	}
	options := ""
	if scopeOf(operation) != "" {
		options += authorization
	}
	body := bodySample(operation)
	if method == "POST" && body == "" {
		options = " -X POST" + options
	}
	samples := []docSample{{"", options, path + "'" + body}}
	for _, more := range operation.valueAt("x-samples").childNodes() {
		with, target := options, path
		if accept := more.valueAt("accept").Text(); accept != "" {
			with += ` -H 'Accept: ` + accept + `'`
		}
		if query := more.valueAt("query").Text(); query != "" {
			target += "?" + query
		}
		samples = append(samples, docSample{more.valueAt("label").Text(), with, target + "'"})
	}
	return samples
}

// bodySample returns the part of a command that sends the example of the request
// body.
func bodySample(operation node) string {
	for _, content := range operation.valueAt("requestBody", "content").childNodes() {
		if example := content.valueAt("example").Text(); example != "" {
			return " \\\n  -H 'Content-Type: " + content.key + "' --data-binary @- <<'END'\n" + strings.TrimSpace(example) + "\nEND"
		}
	}
	return ""
}
