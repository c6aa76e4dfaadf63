package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/tier"
)

const oneCampaign = `accounts:
  - id: 1
    name: A
    websites:
      - id: 1
        domain: a.example.com
        goals: [{id: 1, name: Purchase}]
        campaigns:
          - {id: 1, name: C, type: experiment, targetMode: live, primaryGoalId: 1, controlShare: 50, variations: [{id: 1, name: V, share: 50}]}
`

// writeHistory writes a file with a number of views, one per visitor, and the
// matching catalogue.
func writeHistory(t *testing.T, dir string, views int) (events, declared string) {
	t.Helper()
	var lines bytes.Buffer
	for i := range views {
		fmt.Fprintf(&lines, `{"eventId":"e%[1]d","time":"2026-05-%02[2]dT10:00:00Z","websiteId":1,"visitor":"v%[1]d","event":"view","campaignId":1,"variationId":%[3]d,"referrer":"%[4]x"}`+"\n",
			i, 1+i%28, i%2, i*2654435761)
	}
	events, declared = filepath.Join(dir, "views.ndjson"), filepath.Join(dir, "catalog.yaml")
	for path, text := range map[string][]byte{events: lines.Bytes(), declared: []byte(oneCampaign)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return events, declared
}

// damagedStore is a store with one part of events, to be damaged.
type damagedStore struct {
	t                          *testing.T
	dir, address, events, part string // events is the file that was imported; part is the folder of the part
}

// newDamagedStore returns a store with a number of views, one per visitor.
func newDamagedStore(t *testing.T, views int) *damagedStore {
	t.Helper()
	s := &damagedStore{t: t, dir: t.TempDir()}
	events, declared := writeHistory(t, s.dir, views)
	s.events, s.address = events, filepath.Join(s.dir, "data")
	s.do(exitOK, "apply", "-f", declared)
	s.do(exitOK, "import", events)
	parts, err := filepath.Glob(filepath.Join(s.address, "store", "*", "*", "202605_*"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("parts %q, %v; want one", parts, err)
	}
	s.part = parts[0]
	return s
}

// do runs a command on the store, which must exit with the given code, and
// returns its output.
func (s *damagedStore) do(want int, args ...string) string {
	s.t.Helper()
	return ended(s.t, want, append(args, "--store=embedded:"+s.address)...)
}

// reports checks the number of visitors in a report.
func (s *damagedStore) reports(visitors int64) {
	s.t.Helper()
	var r result.Report
	if err := json.Unmarshal([]byte(s.do(exitOK, "report", "campaign", "1")), &r); err != nil || r.Totals.Visitors != visitors {
		s.t.Errorf("the report counts %d visitors, %v; want %d", r.Totals.Visitors, err, visitors)
	}
}

// ended runs lifthouse, which must exit with the given code, and returns its
// output.
func ended(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, complaints := other(t, nil, args...)
	if code != want {
		t.Fatalf("lifthouse %q: exit %d, want %d\n%s%s", args, code, want, out, complaints)
	}
	return out + complaints
}

func TestDamagedPartsAreNeverPassedOver(t *testing.T) {
	t.Parallel()
	const views = 5000
	store := newDamagedStore(t, views)
	says := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("it says\n%.1000s\nwhich lacks %q", text, part)
			}
		}
	}
	says(store.do(exitOK, "check", "--data"), "the checksums of all parts match")
	data := filepath.Join(store.part, "data.bin")
	whole, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for i := range damaged {
		damaged[i] ^= 0x55
	}
	replace := func(content []byte) {
		if err := os.WriteFile(data, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(damaged)
	says(store.do(exitFailed, "report", "campaign", "1"), "stored data are damaged", "check --data")
	says(store.do(exitFailed, "check", "--data"), "WRONG", "202605")
	replace(whole)
	says(store.do(exitOK, "check", "--data"), "the checksums of all parts match")

	replace(whole[:len(whole)/2])
	for _, args := range [][]string{{"report", "campaign", "1"}, {"import", store.events}, {"serve", "--listen=127.0.0.1:0"}} {
		says(store.do(exitFailed, args...), "damaged parts", "of events", "restore a backup", "--drop-damaged")
	}
	says(store.do(exitFailed, "check"), "WRONG", "damaged parts")
	says(store.do(exitOK, "check", "--drop-damaged"), "dropped 1 damaged part")
	says(store.do(exitOK, "import", store.events), fmt.Sprintf("%d rows inserted", views))
	store.reports(views)
}

// TestAMissingPartIsNoticed removes the directory of a part, which ClickHouse
// itself does not notice.
func TestAMissingPartIsNoticed(t *testing.T) {
	t.Parallel()
	const views = 500
	store := newDamagedStore(t, views)
	list := filepath.Join(store.address, "lifthouse.parts")
	whole, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"empty": nil, "cut off": whole[:len(whole)/2], "without its end": whole[:bytes.LastIndex(whole, []byte("end "))], "altered": bytes.Replace(whole, []byte("events 2"), []byte("events 1"), 1)} {
		if err := os.WriteFile(list, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"report", "campaign", "1"}, {"check"}} {
			if said := store.do(exitFailed, args...); !strings.Contains(said, "lifthouse.parts, is damaged") || !strings.Contains(said, "--drop-damaged") {
				t.Errorf("a list of parts that is %s: %q says\n%s", name, args, said)
			}
		}
	}
	if said := store.do(exitOK, "check", "--drop-damaged"); !strings.Contains(said, "wrote a new manifest of the existing parts") {
		t.Errorf("it says\n%s", said)
	}
	store.do(exitOK, "report", "campaign", "1")
	aside := filepath.Join(store.dir, "aside")
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(store.part, aside)
	name := filepath.Base(store.part)
	for _, args := range [][]string{{"report", "campaign", "1"}, {"import", store.events}, {"serve", "--listen=127.0.0.1:0"}, {"check"}} {
		if said := store.do(exitFailed, args...); !strings.Contains(said, name+" of events (500 rows)") || !strings.Contains(said, "missing parts") {
			t.Errorf("%q says\n%s", args, said)
		}
	}
	move(aside, store.part)
	store.do(exitOK, "report", "campaign", "1")
	move(store.part, aside)
	store.do(exitOK, "check", "--drop-damaged")
	store.reports(0)
	store.do(exitOK, "check", "--deep")
	store.do(exitOK, "import", store.events)
	store.reports(views)
}

// TestWhatAFullDiskSpoilsIsPutRight opens stores with an empty merged part and
// with an empty part of an unacknowledged insert, as a full disk leaves them.
// They are repaired. After a loss of power, an acknowledged part may look the
// same and must not be dropped.
func TestWhatAFullDiskSpoilsIsPutRight(t *testing.T) {
	t.Parallel()
	const views = 500
	store := newDamagedStore(t, views)
	name := filepath.Base(store.part)
	var first, last, level int
	if _, err := fmt.Sscanf(name, "202605_%d_%d_%d", &first, &last, &level); err != nil {
		t.Fatal(err)
	}
	spoil := func(first, last, level int) string {
		t.Helper()
		name := fmt.Sprintf("202605_%d_%d_%d", first, last, level)
		to := filepath.Join(filepath.Dir(store.part), name)
		if err := os.CopyFS(to, os.DirFS(store.part)); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(to, "*"))
		for _, file := range files {
			err = errors.Join(err, os.Truncate(file, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	unfinished, merged := spoil(last+90, last+90, 0), spoil(first, last, level+1)
	said := store.do(exitOK, "report", "campaign", "1")
	for _, name := range []string{unfinished, merged} {
		if !strings.Contains(said, name+" of events") {
			t.Errorf("it says\n%s\nand nothing of %s", said, name)
		}
	}
	if said := store.do(exitOK, "check", "--deep"); strings.Contains(said, "damaged part") {
		t.Errorf("it is reported twice:\n%s", said)
	}
	store.reports(views)
	spoil(last+91, last+91, 0)
	if err := os.WriteFile(filepath.Join(store.address, "lifthouse.boot"), []byte("another start of the machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := store.do(exitFailed, "report", "campaign", "1"); !strings.Contains(said, "damaged parts") {
		t.Errorf("after a loss of power it says\n%s", said)
	}
}

// needsADisk skips a test that mounts a disk if that is not possible.
func needsADisk(t *testing.T) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", `mount -t tmpfs none /mnt`).Run(); err != nil {
		t.Skipf("SKIP: no disk of a known size can be mounted here: %v", err)
	}
}

// fullDisk is a script that imports on a disk of 16 MB, enlarges the disk and
// imports again.
const fullDisk = `
mount -t tmpfs -o size=16m none "$DISK" || exit 99
"$SELF" apply -f "$DECLARED" >/dev/null && "$SELF" import "$EVENTS" && exit 98
"$SELF" report campaign 1 >/dev/null || exit 97
mount -o remount,size=400m "$DISK"
"$SELF" import "$EVENTS" && "$SELF" report campaign 1 >"$REPORT" && "$SELF" check --data
`

func TestAFullDiskLosesNothing(t *testing.T) {
	tier.Parallel(t)
	tier.SkipShort(t)
	needsADisk(t)
	dir := t.TempDir()
	const views = 150_000
	events, declared := writeHistory(t, dir, views)
	disk, report := filepath.Join(dir, "disk"), filepath.Join(dir, "report.json")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	program := lifthouse(t)
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", fullDisk)
	cmd.Env = slices.Concat(program.Env, []string{"SELF=" + program.Path, "DISK=" + disk, "EVENTS=" + events, "DECLARED=" + declared, "REPORT=" + report, "LIFTHOUSE_STORE=embedded:" + filepath.Join(disk, "data")})
	said, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte("the disk of the store is full: free space")) {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r result.Report
	if err := json.Unmarshal(text, &r); err != nil || r.Totals.Visitors != views || r.Totals.Views != views {
		t.Errorf("%+v, %v; want %d visitors\n%s", r.Totals, err, views, said)
	}
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, complaints := other(t, nil, "report", "campaign", "1", "--store=embedded:"+filepath.Join(at, "data"))
	if code != exitFailed || !strings.Contains(complaints, at) || !strings.Contains(complaints, "not a directory") {
		t.Errorf("exit %d, %s", code, complaints)
	}
}

func TestAMisspeltFolderIsNotMadeAStore(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "dta")
	for _, args := range [][]string{{"report", "campaign", "1"}, {"events"}, {"export"}, {"token", "list"}, {"import", "../testdata/thirty.ndjson"}, {"backup", at + "-backup"}} {
		code, _, complaints := other(t, nil, append(args, "--store=embedded:"+at)...)
		if _, err := os.Stat(at); code != exitFailed || !strings.Contains(complaints, "there is no store at "+at) || !os.IsNotExist(err) {
			t.Errorf("%q: exit %d, %s(%v)", args, code, complaints, err)
		}
	}
}
