package e2e

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestASnapshotOfTheRelease builds the release of this commit for this platform, twice, and installs it.
func TestASnapshotOfTheRelease(t *testing.T) {
	tier.OnlyLong(t)
	needTools(t, "git", "make", "npm", "tar", "curl")
	dist := buildSnapshot(t)
	t.Run("is the same each time", func(t *testing.T) { compareChecksums(t, dist, buildSnapshot(t)) })
	t.Run("is installed by install.sh", func(t *testing.T) { installSnapshot(t, dist) })
	t.Run("is installed by dpkg", func(t *testing.T) { installPackage(t, dist) })
}

// needTools skips a test if a program is not installed.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP: %s is not installed", tool)
		}
	}
}

// combinedOutput runs a command that must succeed.
func combinedOutput(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	must.OK(t, err, "%s: %s", cmd, out)
	return string(out)
}

// gitCheckout returns the folder of the source, which can be cloned.
func gitCheckout(t *testing.T) string {
	t.Helper()
	root := must.Get(filepath.Abs(checkout))(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("SKIP: the source is not a git checkout, so that it cannot be cloned")
	}
	return root
}

// buildSnapshot runs make release-snapshot in a new clone, and returns its folder dist. It uses the tools of this
// checkout if they are built.
func buildSnapshot(t *testing.T) string {
	t.Helper()
	root := gitCheckout(t)
	clone := filepath.Join(t.TempDir(), "lifthouse")
	combinedOutput(t, exec.CommandContext(t.Context(), "git", "clone", "--quiet", root, clone))
	build := exec.CommandContext(t.Context(), "make", "release-snapshot", "GOBIN="+filepath.Join(root, "bin"))
	build.Dir = clone
	out, err := build.CombinedOutput()
	if err != nil && offline.Match(out) {
		t.Skipf("SKIP: the network is unavailable: %v\n%s", err, out)
	}
	must.OK(t, err, "make release-snapshot: %s", out)
	return filepath.Join(clone, "dist")
}

// onlyFile returns the file of a folder that matches a pattern.
func onlyFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	must.That(t, err == nil, "%s: %q, %v; want one file", pattern, found, err)
	must.Equal(t, len(found), 1, "%s: %q, %v; want one file", pattern, found, err)
	return found[0]
}

// compareChecksums checks that two builds have the same files, byte for byte.
func compareChecksums(t *testing.T, dist, again string) {
	t.Helper()
	var sums [2]string
	for i, dir := range []string{dist, again} {
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
		check.Dir = dir
		combinedOutput(t, check)
		text := must.Get(os.ReadFile(filepath.Join(dir, "SHA256SUMS")))(t)
		sums[i] = string(text)
	}
	check.Equal(t, sums[0], sums[1], "the second build")
	for _, suffix := range []string{".tar.gz", ".deb", ".rpm", ".cdx.json", "install.sh"} {
		check.Contains(t, sums[0], suffix+"\n")
	}
}

// installSnapshot runs install.sh against a file server, and then the demo in an empty folder with an empty PATH.
func installSnapshot(t *testing.T, dist string) {
	t.Helper()
	releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dist, path.Base(r.URL.Path)))
	}))
	defer releases.Close()
	home := t.TempDir()
	install := exec.CommandContext(t.Context(), "sh", filepath.Join(dist, "install.sh"))
	install.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LIFTHOUSE_RELEASES=" + releases.URL}
	combinedOutput(t, install)
	folder := must.Get(filepath.EvalSymlinks(filepath.Join(home, ".local/bin/lifthouse")))(t)
	folder = filepath.Dir(folder)
	for _, name := range []string{
		"loadgen", "libchdb.*", "README.md", "SECURITY.md", "completions/lifthouse.bash", "completions/_lifthouse",
		"completions/lifthouse.fish",
	} {
		onlyFile(t, folder, name)
	}

	demo := exec.CommandContext(t.Context(), filepath.Join(home, ".local/bin/lifthouse"), "demo", "--listen",
		"127.0.0.1:0")
	demo.Dir, demo.Env = t.TempDir(), []string{"PATH="}
	p := startCommand(t, demo)
	status, text := get(t, p.url+"/readyz", "")
	check.That(t, status == http.StatusOK, "/readyz: %d %s", status, text)
	token := regexp.MustCompile(`lh_[\w-]+`).FindString(p.said.String())
	status, text = get(t, p.url+"/v1/campaigns/12/results", token)
	check.Equal(t, status, http.StatusOK, "a report of the demo: %d %.300s", status, text)
	check.Contains(t, text, `"verdict":"better"`, "a report of the demo: %d %.300s", status, text)
	status, text = get(t, p.url+"/", "")
	check.Equal(t, status, http.StatusOK, "the page: %d %.300s", status, text)
	check.Contains(t, text, "<title>", "the page: %d %.300s", status, text)
	p.interrupt()
}

// scratchRoot is a root file system for dpkg, with the programs that the scripts of the package need.
type scratchRoot struct {
	t   *testing.T
	dir string
}

func newScratchRoot(t *testing.T) *scratchRoot {
	t.Helper()
	r := &scratchRoot{t, t.TempDir()}
	for _, dir := range []string{filepath.Dir(r.dir), r.dir} {
		must.OK(t, os.Chmod(dir, 0o755)) //nolint:gosec // the user of the service must reach its files
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "root:*:::::::\n",
		"etc/gshadow": "root:*::\n",
		"dev/null":    "", "tmp/empty": "", "var/lib/dpkg/status": "", "var/lib/dpkg/info/empty": "",
		"var/lib/dpkg/updates/../available": "",
	} {
		path := filepath.Join(r.dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // as in every root file system
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	libraries := regexp.MustCompile(`(/\S+) \(0x`)
	for _, tool := range []string{"sh", "id", "useradd", "chgrp", "chown", "chmod", "mkdir"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("SKIP: %s is not installed", tool)
		}
		r.copyFile(path, filepath.Join("/usr/bin", tool))
		for _, library := range libraries.FindAllStringSubmatch(combinedOutput(t,
			exec.CommandContext(t.Context(), "ldd", path)), -1) {
			r.copyFile(library[1], library[1])
		}
	}
	must.OK(t, os.Symlink("usr/bin", filepath.Join(r.dir, "bin")))
	return r
}

func (r *scratchRoot) copyFile(from, to string) {
	r.t.Helper()
	text := must.Get(os.ReadFile(from))(r.t)
	to = filepath.Join(r.dir, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // as in every root file system
		r.t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o755); err != nil { //nolint:gosec // a program or a library
		r.t.Fatal(err)
	}
}

// dpkg runs dpkg on the root. Its scripts run in a chroot. The packages on which Lifthouse depends are not installed.
func (r *scratchRoot) dpkg(args ...string) string {
	r.t.Helper()
	return combinedOutput(r.t,
		exec.CommandContext(r.t.Context(), "dpkg", append([]string{"--root=" + r.dir, "--force-depends"}, args...)...))
}

// stat returns the mode and the owner of a file, with the ids of the root's users.
func (r *scratchRoot) stat(name string) (mode os.FileMode, uid, gid uint32) {
	r.t.Helper()
	info := must.Get(os.Stat(filepath.Join(r.dir, name)))(r.t)
	owner, is := info.Sys().(*syscall.Stat_t)
	must.That(r.t, is, "%s has no owner", name)
	return info.Mode().Perm(), owner.Uid, owner.Gid
}

// installPackage installs, upgrades and removes the package, and serves as the user of the service.
func installPackage(t *testing.T, dist string) {
	t.Helper()
	needTools(t, "dpkg", "ldd")
	if os.Geteuid() != 0 {
		t.Skip("SKIP: dpkg needs root, also for a root file system of its own")
	}
	r, deb := newScratchRoot(t), onlyFile(t, dist, "*.deb")
	check.Contains(t, r.dpkg("--install", deb), "installed, but not started")
	users := must.Get(os.ReadFile(filepath.Join(r.dir, "etc/passwd")))(t)
	user := regexp.MustCompile(`(?m)^lifthouse:x:(\d+):(\d+):.*:/var/lib/lifthouse:/usr/sbin/nologin$`).FindSubmatch(users)
	must.That(t, user != nil, "the installation created no user:\n%s", users)
	uid, gid := parseID(t, user[1]), parseID(t, user[2])
	mode, owner, group := r.stat("var/lib/lifthouse")
	check.Equal(t, mode, 0o750, "state directory: mode %o, owner %d:%d, want 750 and %d:%d", mode, owner, group, uid,
		gid)
	check.Equal(t, owner, uid, "state directory: mode %o, owner %d:%d, want 750 and %d:%d", mode, owner, group, uid,
		gid)
	check.Equal(t, group, gid, "state directory: mode %o, owner %d:%d, want 750 and %d:%d", mode, owner, group, uid,
		gid)
	const config = "etc/lifthouse/lifthouse.yaml"
	mode, owner, group = r.stat(config)
	check.Equal(t, mode, 0o640, "%s: mode %o, owner %d:%d, want 640 and 0:%d", config, mode, owner, group, gid)
	check.Equal(t, owner, 0, "%s: mode %o, owner %d:%d, want 640 and 0:%d", config, mode, owner, group, gid)
	check.Equal(t, group, gid, "%s: mode %o, owner %d:%d, want 640 and 0:%d", config, mode, owner, group, gid)

	serve := exec.CommandContext(t.Context(), filepath.Join(r.dir, "usr/bin/lifthouse"), "serve", "--listen",
		"127.0.0.1:0",
		"--config", filepath.Join(r.dir, config), "--store", "embedded:"+filepath.Join(r.dir, "var/lib/lifthouse"))
	serve.Dir, serve.Env = "/", []string{"PATH="}
	serve.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	p := startCommand(t, serve)
	status, text := get(t, p.url+"/readyz", "")
	check.That(t, status == http.StatusOK, "/readyz: %d %s", status, text)
	p.interrupt()

	verifyUnit(t, r)

	changed := []byte("store: embedded:/var/lib/lifthouse\nlisten: 127.0.0.1:9999\n")
	must.OK(t, os.WriteFile(filepath.Join(r.dir, config), changed, 0o600))
	out := r.dpkg("--install", deb)
	check.That(t, !strings.Contains(out, "not started"), "an upgrade says\n%s", out)
	if text, err := os.ReadFile(filepath.Join(r.dir, config)); err != nil || !bytes.Equal(text, changed) {
		t.Errorf("an upgrade changed the configuration: %v\n%s", err, text)
	}
	check.Contains(t, r.dpkg("--purge", "lifthouse"), "The data remain in /var/lib/lifthouse")
	for name, want := range map[string]bool{
		"usr/bin/lifthouse": false, "usr/lib/lifthouse": false, config: false,
		"var/lib/lifthouse/metadata": true,
	} {
		_, err := os.Lstat(filepath.Join(r.dir, name))
		check.That(t, (err == nil) == want, "after the removal, %s: %v", name, err)
	}
}

func parseID(t *testing.T, text []byte) uint32 {
	t.Helper()
	id := must.Get(strconv.ParseUint(string(text), 10, 32))(t)
	return uint32(id)
}

// verifyUnit lets systemd-analyze check the unit and its protection.
func verifyUnit(t *testing.T, r *scratchRoot) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("SKIP: systemd-analyze is not installed, so the unit is not verified")
		return
	}
	text := must.Get(os.ReadFile(filepath.Join(r.dir, "usr/lib/systemd/system/lifthouse.service")))(t)
	// The unit depends on units of this machine, and on the program in the other root.
	unit := must.WriteFile(t, "lifthouse.service",
		string(bytes.ReplaceAll(text, []byte("ExecStart="), []byte("ExecStart="+r.dir))))
	verify := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--recursive-errors=one", unit)
	check.Equal(t, combinedOutput(t, verify), "", "systemd-analyze verify says")
	combinedOutput(t,
		exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold=20", unit))
}
