package docs

import (
	"net/url"
	"strings"
)

// docSample is a curl command: the options, and what follows the origin of the
// server.
type docSample struct {
	Label, Options, Rest string
}

// authorization is the option of curl that sends the token.
const authorization = ` -H "Authorization: Bearer $LIFTHOUSE_TOKEN"`

// samplesOf returns a curl command for an operation, and one for each of its
// x-samples.
func samplesOf(operation node, method, path string, parameters []node) []docSample {
	for _, parameter := range parameters {
		if parameter.at("in").Text() == "path" {
			value := url.PathEscape(parameter.at("example").Text())
			path = strings.ReplaceAll(path, "{"+parameter.at("name").Text()+"}", value)
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
	for _, more := range operation.at("x-samples").pairs() {
		with, target := options, path
		if accept := more.at("accept").Text(); accept != "" {
			with += ` -H 'Accept: ` + accept + `'`
		}
		if query := more.at("query").Text(); query != "" {
			target += "?" + query
		}
		samples = append(samples, docSample{more.at("label").Text(), with, target + "'"})
	}
	return samples
}

// bodySample returns the rest of a command that sends the example of the
// request body.
func bodySample(operation node) string {
	for _, content := range operation.at("requestBody", "content").pairs() {
		if example := content.at("example").Text(); example != "" {
			return " \\\n  -H 'Content-Type: " + content.key + "' --data-binary @- <<'END'\n" + strings.TrimSpace(example) + "\nEND"
		}
	}
	return ""
}
