package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// contract is the OpenAPI document. Every request and response of these tests is validated against it.
type contract struct {
	doc   *openapi3.T
	paths []documentedPath
}

type documentedPath struct {
	template string
	matches  *regexp.Regexp
	names    []string
	item     *openapi3.PathItem
}

func init() {
	text := func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		read, err := io.ReadAll(body)
		return string(read), err
	}
	for _, kind := range []string{
		"application/vnd.apache.parquet", "application/yaml", "application/x-yaml",
		"text/yaml", "text/html", "text/css", "text/javascript", "application/x-ndjson", "text/csv", "image/svg+xml",
	} {
		openapi3filter.RegisterBodyDecoder(kind, text)
	}
}

const documentFile = "docs/openapi.yaml"

// theContract is the document in the source. Another test checks that the server returns it.
var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		return nil, err
	}
	return readContract(text)
})

func readContract(text []byte) (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc}
	inBraces := regexp.MustCompile(`\{(\w+)\}`)
	for _, path := range doc.Paths.InMatchingOrder() {
		p := documentedPath{template: path, item: doc.Paths.Value(path)}
		for _, name := range inBraces.FindAllStringSubmatch(path, -1) {
			p.names = append(p.names, name[1])
		}
		pattern := inBraces.ReplaceAllString(strings.ReplaceAll(path, ".", `\.`), "([^/]*)")
		if strings.HasSuffix(path, "}") { // a path that ends where its id should be is none
			pattern = strings.TrimSuffix(pattern, "*)") + "+)"
		}
		p.matches = regexp.MustCompile("^" + pattern + "$")
		c.paths = append(c.paths, p)
	}
	return c, nil
}

// compile supports look-ahead, which the expression for domains needs.
func compile(expression string) (openapi3.RegexMatcher, error) {
	compiled, err := regexp2.Compile(expression, regexp2.RE2)
	if err != nil {
		return nil, err
	}
	compiled.MatchTimeout = time.Second
	return matcher{Regexp: compiled}, nil
}

type matcher struct{ *regexp2.Regexp }

func (m matcher) MatchString(text string) bool {
	matched, err := m.Regexp.MatchString(text)
	return matched && err == nil
}

// route returns the operation of a request. known is false for unknown paths and methods, which must be refused.
func (c *contract) route(method string, at *url.URL) (route *routers.Route, path map[string]string, known bool) {
	refusal := func(name string, status int) *routers.Route {
		responses := openapi3.NewResponses(openapi3.WithStatus(status, c.doc.Components.Responses[name]))
		return &routers.Route{
			Spec: c.doc, Operation: &openapi3.Operation{Responses: responses},
			PathItem: &openapi3.PathItem{},
		}
	}
	escaped := at.EscapedPath()
	// an SDK adds a path, which is ignored
	if key, is := strings.CutPrefix(escaped, "/in/"); is && strings.Contains(key, "/") {
		if method != http.MethodPost && method != http.MethodOptions {
			return refusal("MethodNotAllowed", http.StatusMethodNotAllowed), nil, false
		}
		key, _, _ = strings.Cut(key, "/")
		escaped = "/in/" + key
	}
	for _, p := range c.paths {
		values := p.matches.FindStringSubmatch(escaped)
		if values == nil {
			continue
		}
		if method == http.MethodHead {
			method = http.MethodGet
		}
		operation := p.item.GetOperation(method)
		if operation == nil {
			return refusal("MethodNotAllowed", http.StatusMethodNotAllowed), nil, false
		}
		path = map[string]string{}
		for i, name := range p.names {
			unescaped, err := url.PathUnescape(values[i+1])
			if err != nil {
				unescaped = values[i+1]
			}
			path[name] = unescaped
		}
		return &routers.Route{
			Spec: c.doc, Path: p.template, PathItem: p.item, Method: method,
			Operation: operation,
		}, path, true
	}
	return refusal("NotFound", http.StatusNotFound), nil, false
}

// check returns an error for a response that is not documented, and for a successful response to an invalid request.
func (c *contract) check(request *http.Request, response reply) error {
	route, path, known := c.route(request.Method, request.URL)
	asked := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: path, Route: route,
		Options: &openapi3filter.Options{
			MultiError: true, IncludeResponseStatus: true, SkipSettingDefaults: true,
			AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc,
			SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.SetSchemaRegexCompiler(compile)},
		},
	}
	// OPTIONS accepts any id and parameters: a preflight request has those of the following request, whose error the
	// page must be able to read.
	if known && request.Method != http.MethodOptions && response.Status < http.StatusBadRequest {
		if err := errors.Join(openapi3filter.ValidateRequest(request.Context(), asked),
			undocumentedParameters(route, request)); err != nil {
			return fmt.Errorf("a request that is not in the document is answered %d: %w", response.Status, err)
		}
	}
	answered := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: response.Status,
		Header: response.Header, Options: asked.Options,
	}
	answered.SetBodyBytes([]byte(response.Text))
	documented := route.Operation.Responses.Status(response.Status)
	if documented == nil {
		return fmt.Errorf("status %d is not in the document", response.Status)
	}
	if request.Method == http.MethodHead {
		if response.Text != "" {
			return errors.New("HEAD is answered with a body")
		}
		return nil
	}
	if err := openapi3filter.ValidateResponse(context.WithoutCancel(request.Context()), answered); err != nil {
		return err
	}
	if len(documented.Value.Content) == 0 && response.Text != "" {
		return fmt.Errorf("%d is answered with a body, which the document does not have", response.Status)
	}
	kind := response.Header.Get("Content-Type")
	media := documented.Value.Content.Get(kind)
	if media == nil || media.Schema == nil || kind == "application/x-ndjson" || !json.Valid([]byte(response.Text)) {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(response.Text), &value); err != nil {
		return err
	}
	return undocumentedFields(media.Schema.Value, value, "")
}

var listIndex = regexp.MustCompile(`^(filters\[\w+\])\[\d*\]$`)

func undocumentedParameters(route *routers.Route, request *http.Request) error {
	if route.Operation.Security != nil && len(*route.Operation.Security) == 0 {
		return nil // ignored without a token
	}
	for name := range request.URL.Query() {
		parameters := route.Operation.Parameters
		bare := listIndex.ReplaceAllString(name, "$1")
		if parameters.GetByInAndName("query", bare) == nil && parameters.GetByInAndName("query", bare+"[]") == nil {
			return fmt.Errorf("the parameter %q is not in the document", name)
		}
	}
	return nil
}

// undocumentedFields returns an error for fields that are not in the schema. The document allows additional fields for
// later releases.
func undocumentedFields(schema *openapi3.Schema, value any, path string) error {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if schema.Items != nil {
				if err := undocumentedFields(schema.Items.Value, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		fields := map[string]*openapi3.Schema{}
		open := fieldsOf(schema, fields)
		for name, field := range value {
			if fields[name] == nil {
				if open {
					continue
				}
				return fmt.Errorf("the field %s.%s is not in the document", path, name)
			}
			if err := undocumentedFields(fields[name], field, path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldsOf collects the fields of a schema and its parts, and reports whether it allows additional ones.
func fieldsOf(schema *openapi3.Schema, fields map[string]*openapi3.Schema) (open bool) {
	for name, field := range schema.Properties {
		fields[name] = field.Value
	}
	for _, part := range append(schema.AllOf, schema.OneOf...) {
		open = fieldsOf(part.Value, fields) || open
	}
	return open || schema.AdditionalProperties.Schema != nil || schema.Type.Is("object") && len(fields) == 0
}

// checkDocumented validates a request and its response against the document.
func checkDocumented(tb testing.TB, request *http.Request, response reply) {
	tb.Helper()
	if path, is := strings.CutPrefix(request.URL.Path, "/in/"); is { // what follows the key is ignored
		key, _, _ := strings.Cut(path, "/")
		request.URL.Path, request.URL.RawQuery = "/in/"+key, ""
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader("{}")), 2 // any body and type
		request.Header = http.Header{"Content-Type": {"application/json"}}
	}
	c := must.Get(theContract())(tb)
	err := c.check(request, response)
	check.That(tb, err == nil, "%v\nis not as the document says: %.1500v", response, err)
}
