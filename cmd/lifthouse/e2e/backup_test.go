package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

// TestABackupAnswersAsTheStoreDid backs up a served store and compares the reports of the restored store.
func TestABackupAnswersAsTheStoreDid(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	at := t.TempDir()
	stored, restored := "--store=embedded:"+filepath.Join(at, "data"), "--store=embedded:"+filepath.Join(at, "restored")
	backup := filepath.Join(at, `a back'up \ here`)
	do := func(args ...string) string {
		t.Helper()
		out, _ := succeed(t, nil, args...)
		return out
	}
	do("apply", "-f", "../testdata/thirty.catalog.yaml", stored)
	do("import", "../testdata/thirty.ndjson", stored)
	token := strings.TrimSpace(do("token", "create", stored))
	served := start(t, "serve", stored)
	do("backup", backup, stored)
	do("restore", backup, restored)
	for _, args := range [][]string{
		{"report", "campaign", "1", "--json", "--dimension=device"},
		{"report", "campaign", "1", "--json", "--interval=day", "--metric=valuePerVisitor"},
		{"export"},
		{"token", "list"},
	} {
		generated := regexp.MustCompile(`"generatedAt": .*`)
		check.Equal(t, generated.ReplaceAllString(do(append(args, restored)...), ""), generated.ReplaceAllString(do(append(args, stored)...), ""), "%q of the restored store", args)
	}
	again := start(t, "serve", restored)
	if got, want := again.results(token), served.results(token); fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) || got.Totals.Visitors == 0 {
		t.Errorf("totals %+v, want %+v", got.Totals, want.Totals)
	}
	do("import", "../testdata/thirty.ndjson", restored)
	if got, want := again.results(token), served.results(token); fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) {
		t.Errorf("imported again: totals %+v, want %+v", got.Totals, want.Totals)
	}
	do("check", "--deep", restored)
	do("apply", "-f", "../testdata/thirty.catalog.yaml", "--store=embedded:"+filepath.Join(at, "third"))
	for _, c := range []struct{ name, dir, store, want string }{
		{"backup", backup, "third", "exists already"},
		{"restore", backup, "third", "has tables already"},
		{"restore", at, "fourth", "is not a backup"},
	} {
		code, _, complaints := other(t, nil, c.name, c.dir, "--store=embedded:"+filepath.Join(at, c.store))
		check.That(t, code == exitFailed && strings.Contains(complaints, c.want), "%s %s: exit %d, %s; want %q", c.name, c.dir, code, complaints, c.want)
	}
}
