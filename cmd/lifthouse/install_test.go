package main

import (
	_ "embed"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema/schematest/must"
)

// newWorld makes a home with v1 as install.sh leaves it, the release v2, and a folder of links to tools. The platform
// is fixed. It is the shell that runs testdata/install.txt as well.
//
//go:embed testdata/install_world.sh
var newWorld string

var (
	newFolder = regexp.MustCompile(`(v2)\.\w{6}`)
	shellLine = regexp.MustCompile(`(?m)^(sh|curl|wget|tar|gzip)(: .*|)\n`) // differs between systems
)

// TestInstall runs testdata/install.txt: lines of the shell, with the functions of newWorld, which say what install.sh
// says and changes.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	source := filepath.Join(dir, "install.sh")
	must.OK(t, os.WriteFile(source, must.Get(os.ReadFile("../../install.sh"))(t), 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := filepath.Join(dir, "releases", r.URL.Path)
		if _, err := os.Stat(path + ".broken"); err == nil { //nolint:gosec // a file of this test
			w.Header().Set("Content-Length", "1000000") // the connection ends before
			_, _ = w.Write([]byte("broken"))
			return
		}
		http.ServeFile(w, r, path)
	}))
	t.Cleanup(server.Close)
	said := strings.NewReplacer(dir, "$DIR", server.URL, "$URL", "\n\n", "\n")
	datadriven.RunTest(t, "testdata/install.txt", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -e\n"+newWorld+d.Input)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SOURCE="+source, "HOME="+dir+"/home", "LIFTHOUSE_RELEASES="+server.URL)
		out := shellLine.ReplaceAllString(string(must.Get(cmd.CombinedOutput())(t)), "")
		return said.Replace(newFolder.ReplaceAllString(hash.ReplaceAllString(out, "HASH"), "$1.NEW"))
	})
}
