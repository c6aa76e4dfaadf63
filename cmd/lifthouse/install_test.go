package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"

	"lifthouse/schema/schematest/must"
)

// releases serves the files of releases by path, as install.sh requests them.
type releases map[string][]byte

func (r releases) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, ok := r[request.URL.Path]
	if !ok {
		http.NotFound(w, request)
		return
	}
	if rest, broken := bytes.CutPrefix(body, []byte("broken ")); broken {
		w.Header().Set("Content-Length", "1000000") // the connection ends before
		body = rest
	}
	_, _ = w.Write(body)
}

// addRelease adds an archive of a program that prints its version, and the checksums.
func (r releases) addRelease(t *testing.T, version, platform string) {
	t.Helper()
	name := fmt.Sprintf("lifthouse-%s-%s", version, platform)
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for path, text := range map[string]string{"lifthouse": "#!/bin/sh\necho lifthouse version " + version + "\n", "libchdb.so": "library"} {
		header := &tar.Header{Name: name + "/" + path, Mode: 0o755, Size: int64(len(text))}
		must.OK(t, archive.WriteHeader(header))
		must.Get(archive.Write([]byte(text)))(t)
	}
	must.OK(t, archive.Close())
	must.OK(t, compressed.Close())
	r["/download/"+version+"/"+name+".tar.gz"] = packed.Bytes()
	sums := fmt.Appendf(nil, "%064x  lifthouse-%s-other-platform.tar.gz\n%x  %s.tar.gz\n", 0, version, sha256.Sum256(packed.Bytes()), name)
	r["/download/"+version+"/SHA256SUMS"], r["/latest/download/SHA256SUMS"] = sums, sums
}

const (
	installedPlatform = "linux-amd64"
	installedArchive  = "lifthouse-v2-" + installedPlatform + ".tar.gz"
)

// installer runs install.sh with a home and a PATH of its own.
type installer struct {
	t        *testing.T
	releases releases
	home     string
	tools    string // the only folder of PATH
	url      string
}

// newInstaller serves the release v2. The tools are links, but uname prints a fixed platform.
func newInstaller(t *testing.T, downloader string) *installer {
	t.Helper()
	i := &installer{t: t, releases: releases{}, home: t.TempDir(), tools: t.TempDir()}
	i.releases.addRelease(t, "v2", installedPlatform)
	server := httptest.NewServer(i.releases)
	t.Cleanup(server.Close)
	i.url = server.URL
	for _, tool := range []string{
		"sh", "tar", "gzip", "mktemp", "cut", "sed", "readlink", "mkdir", "rmdir", "rm", "mv", "ln", "chmod", "sha256sum", "shasum", downloader,
	} {
		path, err := exec.LookPath(tool)
		switch {
		case err == nil:
			must.OK(t, os.Symlink(path, filepath.Join(i.tools, tool)))
		case tool == downloader:
			t.Skipf("SKIP: %s is not installed", tool)
		case tool != "sha256sum" && tool != "shasum": // one of them is enough
			t.Fatal(err)
		}
	}
	i.setPlatform("Linux", "x86_64")
	return i
}

// setPlatform replaces uname.
func (i *installer) setPlatform(system, machine string) {
	i.t.Helper()
	text := fmt.Sprintf("#!/bin/sh\ncase $1 in -s) echo %s ;; -m) echo %s ;; esac\n", system, machine)
	must.OK(i.t, os.WriteFile(filepath.Join(i.tools, "uname"), []byte(text), 0o700))
}

// run runs install.sh as curl … | sh does, and returns its output.
func (i *installer) run(env ...string) (string, error) {
	i.t.Helper()
	script := must.Get(os.Open("../../install.sh"))(i.t)
	defer func() { _ = script.Close() }()
	cmd := exec.CommandContext(i.t.Context(), "sh")
	cmd.Stdin = script
	cmd.Env = append([]string{"HOME=" + i.home, "PATH=" + i.tools, "LIFTHOUSE_RELEASES=" + i.url}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// version is what the installed program prints; empty if there is none.
func (i *installer) version() string {
	out, err := exec.CommandContext(i.t.Context(), filepath.Join(i.home, ".local/bin/lifthouse")).Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "lifthouse version ")
}

// mustFail checks that install.sh fails with a message, and changes nothing.
func (i *installer) mustFail(message string, env ...string) {
	i.t.Helper()
	before := i.listFiles()
	out, err := i.run(env...)
	if err == nil || !strings.Contains(out, "install.sh: ") || !strings.Contains(out, message) {
		i.t.Errorf("install.sh: %v, want a failure with %q; output:\n%s", err, message, out)
	}
	check.Equal(i.t, i.listFiles(), before, "files after a failed installation")
}

// listFiles lists the files in the home with their contents, without folders.
func (i *installer) listFiles() string {
	i.t.Helper()
	var list strings.Builder
	must.OK(i.t, filepath.WalkDir(i.home, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		target, _ := os.Readlink(path)
		text, err := os.ReadFile(path)
		fmt.Fprintf(&list, "%s\n%s%s\n", path, target, text)
		return err
	}))
	return list.String()
}

func TestInstallScriptInstalls(t *testing.T) {
	t.Parallel()
	for _, downloader := range []string{"curl", "wget"} {
		t.Run(downloader, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t, downloader)
			out, err := i.run()
			must.OK(t, err, "%v", out)
			check.Equal(t, i.version(), "v2", "installed version")
			for _, want := range []string{"Installed Lifthouse v2 in " + i.home + "/.local/share/lifthouse/v2.", "is not in PATH", "Next: lifthouse demo"} {
				check.Contains(t, out, want)
			}
		})
	}
}

func TestInstallScriptReplacesAnInstallation(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "curl")
	i.putInstallation()
	for range 2 { // the second one replaces the same version
		if out, err := i.run("LIFTHOUSE_VERSION=v2"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		check.Equal(t, i.version(), "v2", "installed version")
		check.Equal(t, strings.Count(i.listFiles(), "/.installed\n"), 1, "installations")
	}
}

func TestInstallScriptTakesAnotherFolder(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "curl")
	folder := filepath.Join(t.TempDir(), "a folder")
	// A folder of the user's that happens to have the same form is not removed.
	own := filepath.Join(folder, "own")
	must.OK(t, os.MkdirAll(own, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(own, "lifthouse"), []byte("#!/bin/sh\n"), 0o700))
	bin := filepath.Join(i.home, ".local/bin")
	must.OK(t, os.MkdirAll(bin, 0o700))
	must.OK(t, os.Symlink(filepath.Join(own, "lifthouse"), filepath.Join(bin, "lifthouse")))
	if out, err := i.run("LIFTHOUSE_INSTALL_DIR=" + folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check.Equal(t, i.version(), "v2", "installed version")
	for _, want := range []string{"own/lifthouse", "v2/lifthouse", "v2/libchdb.so"} {
		must.Get(os.Stat(filepath.Join(folder, want)))(t)
	}
}

func TestInstallScriptFailsWithoutAChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fresh   bool // nothing was installed before
		prepare func(i *installer)
		message string
		env     []string
	}{
		"broken download": {
			prepare: func(i *installer) {
				path := "/download/v2/" + installedArchive
				i.releases[path] = append([]byte("broken "), i.releases[path][:100]...)
			},
			message: "cannot download",
		},
		"broken download, nothing installed": {
			fresh:   true,
			prepare: func(i *installer) { i.releases["/latest/download/SHA256SUMS"] = []byte("broken ") },
			message: "cannot download",
		},
		"wrong checksum, nothing installed": {
			fresh:   true,
			prepare: func(i *installer) { i.releases["/download/v2/"+installedArchive] = []byte("damaged") },
			message: "has the checksum",
		},
		"truncated archive": {
			prepare: func(i *installer) {
				path := "/download/v2/" + installedArchive
				i.releases[path] = i.releases[path][:100]
			},
			message: "has the checksum",
		},
		"wrong checksum": {
			prepare: func(i *installer) {
				i.releases["/latest/download/SHA256SUMS"] = fmt.Appendf(nil, "%064x  %s\n", 0, installedArchive)
			},
			message: "want " + strings.Repeat("0", 64),
		},
		"archive without a program": {
			prepare: func(i *installer) {
				i.releases["/download/v2/"+installedArchive] = []byte("not an archive")
				i.releases["/latest/download/SHA256SUMS"] = fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte("not an archive")), installedArchive)
			},
			message: "cannot unpack",
		},
		"path in the file of checksums": {
			prepare: func(i *installer) {
				i.releases["/latest/download/SHA256SUMS"] = fmt.Appendf(nil, "%064x  lifthouse-/../%s\n", 0, installedArchive)
			},
			message: "no archive for " + installedPlatform,
		},
		"unknown system":    {prepare: func(i *installer) { i.setPlatform("Plan9", "x86_64") }, message: `unknown system "Plan9"`},
		"unknown processor": {prepare: func(i *installer) { i.setPlatform("Linux", "riscv64") }, message: `unknown processor "riscv64"`},
		"platform without an archive": {
			prepare: func(i *installer) { i.setPlatform("Darwin", "arm64") },
			message: "no archive for darwin-arm64",
		},
		"unknown version": {message: "cannot download", env: []string{"LIFTHOUSE_VERSION=v9"}},
		"no downloader":   {prepare: func(i *installer) { i.remove("curl") }, message: "curl or wget is required"},
		"no checksums": {
			prepare: func(i *installer) { i.remove("sha256sum"); i.remove("shasum") },
			message: "sha256sum or shasum is required",
		},
		"no tar": {prepare: func(i *installer) { i.remove("tar") }, message: "tar is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t, "curl")
			if !c.fresh {
				i.putInstallation()
			}
			if c.prepare != nil {
				c.prepare(i)
			}
			i.mustFail(c.message, c.env...)
		})
	}
}

// putInstallation creates the installation v1 as install.sh leaves it.
func (i *installer) putInstallation() {
	i.t.Helper()
	folder, bin := filepath.Join(i.home, ".local/share/lifthouse/v1"), filepath.Join(i.home, ".local/bin")
	for _, dir := range []string{folder, bin} {
		must.OK(i.t, os.MkdirAll(dir, 0o700))
	}
	for name, text := range map[string]string{"lifthouse": "#!/bin/sh\necho lifthouse version v1\n", ".installed": ""} {
		must.OK(i.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700))
	}
	must.OK(i.t, os.Symlink(filepath.Join(folder, "lifthouse"), filepath.Join(bin, "lifthouse")))
}

// remove removes a tool from PATH.
func (i *installer) remove(tool string) {
	i.t.Helper()
	if err := os.Remove(filepath.Join(i.tools, tool)); err != nil && !os.IsNotExist(err) {
		i.t.Fatal(err)
	}
}

// TestInstallScriptKeepsAProgramOfTheUser checks that a program that another tool installed remains.
func TestInstallScriptKeepsAProgramOfTheUser(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "curl")
	bin := filepath.Join(i.home, ".local/bin")
	must.OK(t, os.MkdirAll(bin, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(bin, "lifthouse"), []byte("#!/bin/sh\necho own\n"), 0o700))
	i.mustFail("is not a link to a program")
}

// TestInstallScriptDoesNothingInPart checks that a script whose download ended early changes nothing.
func TestInstallScriptDoesNothingInPart(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "curl")
	text := must.Get(os.ReadFile("../../install.sh"))(t)
	whole := strings.TrimSuffix(string(text), "main\n")
	if whole == string(text) {
		t.Fatal("the last line of install.sh is not main")
	}
	for end := 0; end <= len(whole); end += len(whole) / 8 {
		cmd := exec.CommandContext(t.Context(), "sh")
		cmd.Stdin = strings.NewReader(whole[:end])
		cmd.Env = []string{"HOME=" + i.home, "PATH=" + i.tools, "LIFTHOUSE_RELEASES=" + i.url}
		_ = cmd.Run() // a part may be a syntax error
		must.Equal(t, i.listFiles(), "", "the first %d bytes of install.sh created", end)
	}
}
