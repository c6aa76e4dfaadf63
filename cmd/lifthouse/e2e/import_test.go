package e2e

import (
	"os"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestImportThroughTheSocketReadsTheClientsInput(t *testing.T) {
	t.Parallel()
	p, _, store := serving(t)
	events := must.Get(os.ReadFile("../testdata/thirty.ndjson"))(t)
	for _, test := range []struct {
		path string
		code int
		want string
	}{
		{"/dev/stdin", exitFailed, "or - for standard input"},
		{"/proc/self/fd/0", exitFailed, "or - for standard input"},
		{"-", exitOK, "-: 30 rows accepted, 0 of 30 lines rejected"},
	} {
		code, out, complaints := other(t, strings.NewReader(string(events)), "import", test.path, store)
		check.That(t, code == test.code && strings.Contains(out+complaints, test.want),
			"import %s: exit %d, %q; want %d and %q", test.path, code, out+complaints, test.code, test.want)
	}
	p.interrupt()
}
