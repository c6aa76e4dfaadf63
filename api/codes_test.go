package api_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// code matches the codes of reasons and warnings.
var code = regexp.MustCompile(`^[A-Z][A-Z0-9_]{2,}$`)

// TestCodesAreDocumented checks that the enumerations of the document are the constants of the program, by type, and
// that the program has no other code.
func TestCodesAreDocumented(t *testing.T) {
	constants := constantsByType(t, "../stats", "../engine/result", "../engine/worth", ".")
	c := must.Get(theContract())(t)
	schemas := c.doc.Components.Schemas
	field := func(schema, name string) map[string]bool { return enumerated(schemas[schema].Value.Properties[name]) }
	reasons := map[string]bool{}
	for name, schema := range schemas {
		if name != "WarningCode" {
			maps.Copy(reasons, enumerated(schema))
		}
	}
	maps.DeleteFunc(reasons, func(value string, _ bool) bool { return !code.MatchString(value) })
	for _, test := range []struct {
		name string // type of the constants
		want map[string]bool
	}{
		{"Reason", reasons},
		{"WarningCode", enumerated(schemas["WarningCode"])},
		{"Verdict", field("Comparison", "verdict")},
		{"Status", field("Conclusion", "status")},
		{"Test", field("Frequentist", "test")},
		{"Correction", field("Frequentist", "correction")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, want := slices.Sorted(maps.Keys(constants[test.name])), slices.Sorted(maps.Keys(test.want))
			check.That(t, slices.Equal(got, want), "the program has %v\nthe document has %v", got, want)
		})
	}
	for value := range constants[""] {
		check.That(t, !code.MatchString(value), "the code %q is not a constant of a type", value)
	}
}

// TestDimensionsAreDocumented checks that docs/api.md lists each dimension of the document.
func TestDimensionsAreDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/api.md"))(t)
	c := must.Get(theContract())(t)
	var names []string
	for _, value := range c.doc.Components.Schemas["Attribute"].Value.Enum {
		names = append(names, fmt.Sprintf("`%s`", value))
	}
	row := "| `dimension` | " + strings.Join(names, ", ") + ", or an own attribute; campaigns and experiments |"
	check.That(t, bytes.Contains(page, []byte(row)), "docs/api.md lacks the dimensions:\n%s", row)
}

// enumerated returns the values of all enumerations of a schema, without those of schemas with a name.
func enumerated(ref *openapi3.SchemaRef) map[string]bool {
	values := map[string]bool{}
	for _, value := range ref.Value.Enum {
		if text, isText := value.(string); isText {
			values[text] = true
		}
	}
	parts := slices.Concat(ref.Value.AllOf, ref.Value.AnyOf, ref.Value.OneOf,
		slices.Collect(maps.Values(ref.Value.Properties)))
	if ref.Value.Items != nil {
		parts = append(parts, ref.Value.Items)
	}
	for _, part := range parts {
		if part.Ref == "" {
			maps.Copy(values, enumerated(part))
		}
	}
	return values
}

// constantsByType returns the texts in the sources of the packages: the constants by the name of their type, and all
// others under "". Methods of HTTP and field tags are left out.
func constantsByType(t *testing.T, folders ...string) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{"": {}}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
			typed := map[ast.Node]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for _, value := range n.Values {
						if of := typeName(n.Type); of != "" {
							if found[of] == nil {
								found[of] = map[string]bool{}
							}
							addText(found[of], value)
							typed[value] = true
						}
					}
				case *ast.BasicLit:
					if !typed[n] {
						addText(found[""], n)
					}
				}
				return true
			})
		}
	}
	return found
}

// typeName returns the name of a type without its package.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}

func addText(to map[string]bool, literal ast.Expr) {
	if basic, isLiteral := literal.(*ast.BasicLit); isLiteral && basic.Kind == token.STRING {
		if text, err := strconv.Unquote(basic.Value); err == nil {
			to[text] = true
		}
	}
}
