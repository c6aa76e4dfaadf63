package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"lifthouse/engine/embedded"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// checkout is the root of the repository, from this package's folder.
const checkout = "../../.."

// tutorial is the document whose marked blocks are run in make test.
const tutorial = "docs/getting-started.md"

// docBlock is a fenced sh block of a document that a comment marks to be run:
//
//	<!-- run -->                    in make test
//	<!-- run: network -->           in make test-long, because it downloads packages
//	<!-- run: network, serves -->   as above; its last command runs until it is interrupted
type docBlock struct {
	line            int // of the marker
	text            string
	network, serves bool
}

var markerPattern = regexp.MustCompile(`^<!-- run(?:: ([a-z, ]+))? -->$`)

// docBlocks returns the marked blocks of a document, in order.
func docBlocks(t *testing.T, path string) []docBlock {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(checkout, path)))(t)
	lines := strings.Split(string(text), "\n")
	var blocks []docBlock
	for i, line := range lines {
		if !strings.HasPrefix(line, "<!-- run") {
			continue
		}
		marker := markerPattern.FindStringSubmatch(line)
		must.That(t, marker != nil, "%s:%d: want <!-- run --> or <!-- run: network[, serves] -->, and then a block ```sh", path, i+1)
		must.That(t, i+1 != len(lines), "%s:%d: want <!-- run --> or <!-- run: network[, serves] -->, and then a block ```sh", path, i+1)
		must.Equal(t, lines[i+1], "```sh", "%s:%d: want <!-- run --> or <!-- run: network[, serves] -->, and then a block ```sh", path, i+1)
		length := slices.Index(lines[i+2:], "```")
		must.That(t, length >= 1, "%s:%d: the block is empty or has no end", path, i+1)
		block := docBlock{line: i + 1, text: strings.Join(lines[i+2:i+2+length], "\n")}
		for option := range strings.SplitSeq(marker[1], ",") {
			switch strings.TrimSpace(option) {
			case "":
			case "network":
				block.network = true
			case "serves":
				block.serves = true
			default:
				t.Fatalf("%s:%d: unknown option %q: must be network or serves", path, i+1, option)
			}
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// docScript runs blocks one after the other in one bash, in an empty folder.
type docScript struct {
	path   string // of the document
	blocks []docBlock
	env    []string
	// replace changes what a reader has to adapt.
	replace *strings.Replacer
	ready   string // URL that answers when a server is ready
}

// run returns the script's output and, if it failed, an error that names the line of the block.
func (s *docScript) run(t *testing.T, limit time.Duration) (string, error) {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(t.TempDir(), "block")
	script := filepath.Join(t.TempDir(), "script")
	var text strings.Builder
	text.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n")
	for _, block := range s.blocks {
		fmt.Fprintf(&text, "echo %d >%s\n", block.line, at)
		commands := s.replace.Replace(block.text)
		if block.serves {
			commands = lastComment.ReplaceAllString(commands, "")
			commands += fmt.Sprintf(" &\nuntil curl -sf %s >/dev/null; do kill -0 $!; sleep 0.2; done", s.ready)
		}
		text.WriteString(commands + "\n")
	}
	must.OK(t, os.WriteFile(script, []byte(text.String()), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with every program that it starts
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, 10*time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = kill()
	}
	if err != nil {
		line, _ := os.ReadFile(at)
		err = fmt.Errorf("%s:%s: the block failed: %w", s.path, strings.TrimSpace(string(line)), err)
	}
	return string(out), err
}

// lastComment matches a comment after the last command of a block.
var lastComment = regexp.MustCompile(`\s+#[^\n]*$`)

// defaultAddress is where the documents' servers listen.
const defaultAddress = "127.0.0.1:8080"

// TestDocsBlocksRun pastes the marked blocks of a document into a shell, with lifthouse on the PATH.
func TestDocsBlocksRun(t *testing.T) {
	tier.OnlyLong(t)
	runBlocks(t, tutorial, "Banner is better than Control")
	const books = "docs/differences.md"
	text := must.Get(os.ReadFile(filepath.Join(checkout, books)))(t)
	_, printed, _ := strings.Cut(string(text), "```text\n")
	printed, _, _ = strings.Cut(printed, "```")
	runBlocks(t, books, printed)
}

// runBlocks runs the marked blocks of a document that need no network. Their output must have a text.
func runBlocks(t *testing.T, document, want string) {
	t.Helper()
	library := must.Get(embedded.LocateLibrary())(t)
	bin := t.TempDir()
	must.OK(t, os.Symlink(binary, filepath.Join(bin, "lifthouse")))
	address := schematest.FreeAddress(t)
	s := docScript{
		path: document, replace: strings.NewReplacer(defaultAddress, address), ready: "http://" + address + "/readyz",
		blocks: slices.DeleteFunc(docBlocks(t, document), func(b docBlock) bool { return b.network }),
		env: []string{
			"LIFTHOUSE_LISTEN=" + address, "LIFTHOUSE_LIBCHDB=" + library,
			"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		},
	}
	must.That(t, len(s.blocks) != 0, "no block is marked <!-- run -->")
	out, err := s.run(t, 2*time.Minute)
	must.OK(t, err, "%v", out)
	check.That(t, strings.Contains(out, want), "%s: the output does not contain %q\n%s", document, want, out)
}

// offline matches what npm and go report without a network.
var offline = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|dial tcp|no such host`)

// TestDocsNetworkBlocksRun follows the README from git clone to a report of the demo.
func TestDocsNetworkBlocksRun(t *testing.T) {
	tier.OnlyLong(t) // downloads packages
	root := gitCheckout(t)
	for _, needed := range []string{"git", "make", "npm", "curl"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("SKIP: %s is not installed", needed)
		}
	}
	address := schematest.FreeAddress(t)
	s := docScript{
		path: "README.md", replace: strings.NewReplacer("<this repository>", root, defaultAddress, address),
		ready:  "http://" + address + "/readyz",
		blocks: slices.DeleteFunc(docBlocks(t, "README.md"), func(b docBlock) bool { return !b.network }),
		env:    []string{"LIFTHOUSE_LISTEN=" + address, "LIFTHOUSE_LIBCHDB="},
	}
	out, err := s.run(t, 15*time.Minute)
	switch {
	case err != nil && offline.MatchString(out):
		t.Skipf("SKIP: the network is unavailable: %v\n%s", err, out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case !strings.Contains(out, "Banner is better than Control"):
		t.Errorf("no verdict of the demo\n%s", out)
	}
}

// TestDocsReadmeIsShort bounds the README.
func TestDocsReadmeIsShort(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(checkout, "README.md")))(t)
	lines := strings.Count(string(text), "\n")
	check.That(t, lines <= 150, "README.md has %d lines, want at most 150: move details to docs/", lines)
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fencePattern   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestDocsLinksResolve checks that files and headings to which documents link exist.
func TestDocsLinksResolve(t *testing.T) {
	documents := must.Get(filepath.Glob(filepath.Join(checkout, "*.md")))(t)
	must.OK(t, filepath.WalkDir(filepath.Join(checkout, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			documents = append(documents, path)
		}
		return err
	}))
	for _, document := range documents {
		text := must.Get(os.ReadFile(document))(t)
		for _, link := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(link[1], "#")
			target := filepath.Join(filepath.Dir(document), path)
			if path == "" {
				target = document
			}
			found, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: link %s: %v", document, link[1], err)
			} else if heading != "" && !slices.Contains(anchors(string(found)), heading) {
				t.Errorf("%s: link %s: %s has no such heading", document, link[1], target)
			}
		}
	}
}

// anchors are the ids that the headings of a document have.
func anchors(document string) []string {
	var ids []string
	for _, heading := range headingPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(document, ""), -1) {
		ids = append(ids, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, heading[1]))
	}
	return ids
}

// TestDocsSecurityNamesTests checks that the tests and scripts that SECURITY.md names exist.
func TestDocsSecurityNamesTests(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(checkout, "SECURITY.md")))(t)
	var declared strings.Builder
	must.OK(t, filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Base(filepath.Dir(path)) == "scripts":
			declared.WriteString("func TestScripts/" + strings.TrimSuffix(entry.Name(), ".txt") + "(\n")
			return nil
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, declaration := range testPattern.FindAll(source, -1) {
			declared.Write(append(declaration, '\n'))
		}
		return err
	}))
	for _, name := range regexp.MustCompile(`Test[A-Z]\w+(/\w+)?`).FindAllString(string(text), -1) {
		check.Contains(t, declared.String(), "func "+name+"(", "SECURITY.md names %s", name)
	}
}

var testPattern = regexp.MustCompile(`(?m)^func Test\w+\(`)

// TestDocsListEverySetting checks that docs/operations.md has the settings of
// serve, and docs/catalogue.md and docs/data-in.md the keys of their files.
func TestDocsListEverySetting(t *testing.T) {
	help, _ := succeed(t, nil, "serve", "--help")
	var settings []string
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		if !slices.Contains([]string{"help", "config"}, flag[1]) {
			settings = append(settings, flag[1])
		}
	}
	for document, names := range map[string][]string{
		"docs/operations.md": settings,
		"docs/catalogue.md":  yamlKeys(reflect.TypeFor[catalogue.File]()),
		"docs/data-in.md":    yamlKeys(reflect.TypeFor[ingest.Mapping]()),
	} {
		text := must.Get(os.ReadFile(filepath.Join(checkout, document)))(t)
		must.That(t, len(names) >= 5, "%s: only %q to look for", document, names)
		for _, name := range names {
			check.That(t, regexp.MustCompile("[`.]"+name+"`").Match(text), "%s does not list `%s`", document, name)
		}
	}
}

// yamlKeys are the keys of a type that is read from YAML, and of those that it contains.
func yamlKeys(of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for field := range of.Fields() {
		name, options, tagged := strings.Cut(field.Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			keys = append(keys, name)
		}
		if (tagged || name != "") && name != "-" || strings.Contains(options, "inline") {
			keys = append(keys, yamlKeys(field.Type)...)
		}
	}
	return keys
}
