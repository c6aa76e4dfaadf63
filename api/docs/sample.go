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
	headers := ""
	for _, parameter := range parameters {
		example, name := parameter.valueAt("example").Text(), parameter.valueAt("name").Text()
		switch in := parameter.valueAt("in").Text(); {
		case in == "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(example))
		case in == "header" && example != "":
			headers += ` -H '` + name + `: ` + example + `'`
		}
	}
	options := ""
	if scopeOf(operation) != "" {
		options += authorization
	}
	options += headers
	if strings.HasSuffix(path, ".parquet") {
		options += " -o visitors.parquet"
	}
	body := bodySample(operation)
	if method != "GET" && (method != "POST" || body == "") {
		options = " -X " + method + options
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
		example := content.valueAt("example")
		if text, err := example.JSON(); err == nil && example.value != nil {
			return " \\\n  -H 'Content-Type: " + content.key + "' --data-binary @- <<'END'\n" + strings.TrimSpace(text) + "\nEND"
		}
	}
	return ""
}
