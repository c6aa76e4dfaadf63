package e2e

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

//go:embed testdata/one_campaign.yaml
var oneCampaign string

// writeHistory writes a file with a number of views, one per visitor, and the matching catalogue.
func writeHistory(t *testing.T, dir string, views int) (events, declared string) {
	t.Helper()
	var lines bytes.Buffer
	for i := range views {
		fmt.Fprintf(&lines, `{"eventId":"e%[1]d","time":"2026-05-%02[2]dT10:00:00Z","websiteId":1,"visitor":"v%[1]d","event":"view","campaignId":1,"variationId":%[3]d,"referrer":"%[4]x"}`+"\n",
			i, 1+i%28, i%2, i*2654435761)
	}
	events, declared = filepath.Join(dir, "views.ndjson"), filepath.Join(dir, "catalog.yaml")
	for path, text := range map[string][]byte{events: lines.Bytes(), declared: []byte(oneCampaign)} {
		must.OK(t, os.WriteFile(path, text, 0o600))
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
	parts := partsOf(t, s.address, "events")
	must.Equal(t, len(parts), 1, "parts %q", parts)
	s.part = parts[0]
	return s
}

// partsOf returns the folders of the parts of a table of an embedded store.
func partsOf(t *testing.T, dir, table string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(tableDir(t, dir, table), "*_*_*_*")))(t)
}

var uuid = regexp.MustCompile(`UUID '((...)[^']+)'`)

// tableDir returns the folder of a table of an embedded store.
func tableDir(t *testing.T, dir, table string) string {
	t.Helper()
	definition := must.Get(os.ReadFile(filepath.Join(dir, "metadata", "lifthouse", table+".sql")))(t)
	found := uuid.FindSubmatch(definition)
	must.That(t, found != nil, "no UUID in\n%s", definition)
	return filepath.Join(dir, "store", string(found[2]), string(found[1]))
}

// do runs a command on the store, which must exit with the given code, and returns its output.
func (s *damagedStore) do(want int, args ...string) string {
	s.t.Helper()
	return ended(s.t, want, append(args, "--store=embedded:"+s.address)...)
}

// reports checks the number of visitors in a report.
func (s *damagedStore) reports(visitors int64) {
	s.t.Helper()
	var r result.Report
	err := json.Unmarshal([]byte(s.do(exitOK, "report", "campaign", "1", "--json")), &r)
	must.That(s.t, err == nil, "the report counts %d visitors, %v; want %d", r.Totals.Visitors, err, visitors)
	check.Equal(s.t, r.Totals.Visitors, visitors, "the report counts %d visitors, %v; want %d", r.Totals.Visitors, err,
		visitors)
}

// ended runs lifthouse, which must exit with the given code, and returns its output.
func ended(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, complaints := other(t, nil, args...)
	must.Equal(t, code, want, "lifthouse %q: %s%s", args, out, complaints)
	return out + complaints
}

// says checks that the output of a command has some texts.
func (s *damagedStore) says(text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		check.Contains(s.t, text, part)
	}
}

// TestDamagedEventsAreReported damages a part of the events. Reports keep what they counted, check finds the damage,
// and the events can be imported again.
func TestDamagedEventsAreReported(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	const views = 5000
	store := newDamagedStore(t, views)
	store.reports(views)
	store.says(store.do(exitOK, "check", "--deep"), "the checksums of all parts match",
		"of all 5,000 visitors are those of their events")
	data := filepath.Join(store.part, "data.bin")
	whole := must.Get(os.ReadFile(data))(t)
	damaged := bytes.Clone(whole)
	for i := range damaged {
		damaged[i] ^= 0x55
	}
	replace := func(content []byte) {
		must.OK(t, os.WriteFile(data, content, 0o600))
	}
	replace(damaged)
	store.says(store.do(exitFailed, "report", "campaign", "1"), "stored data are damaged", "check --deep")
	store.says(store.do(exitFailed, "check", "--deep"), "WRONG", "part "+filepath.Base(store.part)+" of events",
		"restore a backup")
	replace(whole)
	store.do(exitOK, "check", "--deep")

	replace(whole[:len(whole)/2])
	store.says(store.do(exitFailed, "check", "--deep"), "WRONG", "stored events of 5,000 visitors are lost")
	store.imports(views)
}

// imports imports the events again. The store is then whole.
func (s *damagedStore) imports(views int64) {
	s.t.Helper()
	s.reports(views)
	s.says(s.do(exitFailed, "facts", "--verify"), "are lost; reports keep what they counted", "send the events again")
	s.do(exitOK, "import", s.events)
	s.reports(views)
	s.do(exitOK, "facts", "--verify")
	s.do(exitOK, "check", "--deep")
}

// TestARebuildNeedsReadableEvents flips a byte of the stored events. A rebuild then changes nothing: the facts still count
// all events, so they are the only record of those that cannot be read.
func TestARebuildNeedsReadableEvents(t *testing.T) {
	t.Parallel()
	const views = 500
	store := newDamagedStore(t, views)
	store.reports(views)
	data := filepath.Join(store.part, "data.bin")
	whole := must.Get(os.ReadFile(data))(t)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0x55
	must.OK(t, os.WriteFile(data, damaged, 0o600))
	store.says(store.do(exitFailed, "facts", "--rebuild"), "the facts are as they were", "restore a backup")
	must.OK(t, os.WriteFile(data, whole, 0o600))
	store.reports(views)
	store.do(exitOK, "facts", "--rebuild", "--verify")
	store.reports(views)
}

// TestAMissingPartIsNoticed removes the folder of a part, which ClickHouse itself does not notice.
func TestAMissingPartIsNoticed(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	const views = 500
	store := newDamagedStore(t, views)
	store.reports(views)
	aside := filepath.Join(store.dir, "aside")
	move := func(from, to string) {
		t.Helper()
		must.OK(t, os.Rename(from, to))
	}
	move(store.part, aside)
	store.says(store.do(exitFailed, "check", "--deep"), "stored events of 500 visitors are lost")
	move(aside, store.part)
	store.do(exitOK, "check", "--deep")
	move(store.part, aside)
	store.imports(views)
}

// goals writes a file with one goal event of each of the first visitors, and returns its path.
func (s *damagedStore) goals(name string, visitors, value int) (file string) {
	s.t.Helper()
	var lines bytes.Buffer
	for i := range visitors {
		fmt.Fprintf(&lines, `{"eventId":"%s%d","time":"2026-06-01T10:00:00Z","websiteId":1,"visitor":"v%[2]d","event":"goal","goalId":1,"value":%[3]d,"campaignId":1,"variationId":%[4]d}`+"\n",
			name, i, value, i%2)
	}
	file = filepath.Join(s.dir, name+".ndjson")
	must.OK(s.t, os.WriteFile(file, lines.Bytes(), 0o600))
	return file
}

// value checks the sum of the values in a report.
func (s *damagedStore) value(want string) {
	s.t.Helper()
	var r result.Report
	_, out, _ := other(s.t, nil, "report", "campaign", "1", "--json", "--store=embedded:"+s.address)
	err := json.Unmarshal([]byte(out), &r)
	must.That(s.t, err == nil, "the report has the value %v, %v; want %v", r.Totals.Value, err, want)
	check.Equal(s.t, r.Totals.Value.String(), want, "the report has the value %v, %v; want %v", r.Totals.Value, err,
		want)
}

// TestALossIsNotHealed damages a part with goals, which ClickHouse sets aside. Reports keep these goals and add new
// goals of their visitors. The loss is reported until the goals are sent again, or a person accepts the loss.
func TestALossIsNotHealed(t *testing.T) {
	t.Parallel()
	const views, lost = 1000, 100
	store := newDamagedStore(t, views)
	store.do(exitOK, "import", store.goals("kept", views, 1))
	parts := partsOf(t, store.address, "events")
	damaged := store.goals("lost", lost, 1000)
	store.do(exitOK, "import", damaged)
	store.value("101000")
	for _, part := range partsOf(t, store.address, "events") {
		if !slices.Contains(parts, part) {
			must.OK(t, os.Truncate(filepath.Join(part, "columns.txt"), 3))
		}
	}
	store.value("101000")
	server := start(t, "serve", "--store=embedded:"+store.address, "--admin-address=127.0.0.1:0")
	store.do(exitOK, "import", store.goals("new", lost, 1))
	store.value("101100")
	store.says(server.log.String(), "has set aside a part", "broken-on-start", "stored events of visitors are lost",
		"visitors=100")
	_, text, err := send(t.Context(), http.DefaultClient, http.MethodGet, server.log.await(t, adminAt), "", "")
	must.That(t, err == nil, "metrics: %v\n%s", err, text)
	check.Contains(t, text, "\nlifthouse_lost_visitors 100\n", "metrics: %v\n%s", err, text)
	server.interrupt()
	store.says(store.do(exitFailed, "check", "--deep"), "WRONG    stored events of 100 visitors are lost",
		"has set aside a part of events (broken-on-start)")
	if said := store.do(exitFailed, "facts", "--verify"); strings.Contains(said, "--rebuild at once") ||
		!strings.Contains(said, "stored events of 100 visitors are lost") {
		t.Error(said)
	}
	store.says(store.do(exitFailed, "facts", "--rebuild"), "only the facts still count them", "--accept-loss 100")
	store.do(exitFailed, "facts", "--rebuild", "--accept-loss", "99")
	store.value("101100")

	whole := filepath.Join(store.dir, "whole") // a copy, of which the loss is accepted
	must.OK(t, os.CopyFS(whole, os.DirFS(store.address)))
	store.do(exitOK, "facts", "--rebuild", "--verify", "--accept-loss", "100")
	store.value("1100")
	store.says(store.do(exitOK, "audit"), "facts     1   loss accepted  lifthouse facts")
	store.do(exitOK, "check", "--deep")

	store.address = whole
	store.do(exitOK, "import", damaged)
	store.value("101100")
	store.do(exitOK, "facts", "--verify")
	store.do(exitOK, "check", "--deep")
	store.do(exitOK, "facts", "--rebuild", "--verify")
	store.value("101100")
}

// TestDamagedFactsAreRebuilt damages and removes the facts. The remedy is to fold the events again.
func TestDamagedFactsAreRebuilt(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	const views = 500
	for name, spoil := range map[string]func(part string) error{
		"missing": os.RemoveAll,
		"damaged": func(part string) error {
			data := filepath.Join(part, "data.bin")
			info, err := os.Stat(data)
			if err != nil {
				return err
			}
			return os.WriteFile(data, bytes.Repeat([]byte{0x55}, int(info.Size())), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newDamagedStore(t, views)
			store.reports(views)
			store.do(exitOK, "facts")
			parts := partsOf(t, store.address, "facts")
			must.That(t, len(parts) != 0, "no facts")
			for _, part := range parts {
				must.OK(t, spoil(part))
			}
			if name == "damaged" {
				store.says(store.do(exitFailed, "check"), "facts      WRONG", "catalogue  ok")
			}
			store.do(exitOK, "facts", "--rebuild", "--verify")
			store.reports(views)
			store.do(exitOK, "check", "--deep")
		})
	}
}

// TestWhatAFullDiskSpoilsIsPutRight opens stores with an empty merged part and with an empty part of an unacknowledged
// insert, of events and of facts, as a full disk leaves them.
func TestWhatAFullDiskSpoilsIsPutRight(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	const views = 500
	store := newDamagedStore(t, views)
	store.reports(views)
	spoil := func(part, partition string, first, last, level int) {
		t.Helper()
		to := filepath.Join(filepath.Dir(part), fmt.Sprintf("%s_%d_%d_%d", partition, first, last, level))
		must.OK(t, os.CopyFS(to, os.DirFS(part)))
		files, err := filepath.Glob(filepath.Join(to, "*"))
		for _, file := range files {
			err = errors.Join(err, os.Truncate(file, 0))
		}
		must.OK(t, err)
	}
	for _, part := range append(partsOf(t, store.address, "facts"), store.part) {
		var first, last, level int
		partition, numbers, _ := strings.Cut(filepath.Base(part), "_")
		must.Get(fmt.Sscanf(numbers, "%d_%d_%d", &first, &last, &level))(t)
		spoil(part, partition, last+90, last+90, 0)
		spoil(part, partition, first, last, level+1)
	}
	store.reports(views)
	store.do(exitOK, "check", "--deep")
	store.do(exitOK, "import", store.events)
	store.reports(views)
}

// needsADisk skips a test that mounts a disk if that is not possible.
func needsADisk(t *testing.T) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", `mount -t tmpfs none /mnt`).Run(); err != nil {
		t.Skipf("SKIP: no disk of a known size can be mounted here: %v", err)
	}
}

// fullDisk is a script that imports on a disk of 16 MB, enlarges the disk and imports again.
const fullDisk = `
mount -t tmpfs -o size=16m none "$DISK" || exit 99
"$SELF" apply -f "$DECLARED" >/dev/null && "$SELF" import "$EVENTS" && exit 98
"$SELF" report campaign 1 >/dev/null || exit 97
mount -o remount,size=400m "$DISK"
"$SELF" import "$EVENTS" && "$SELF" report campaign 1 --json >"$REPORT" && "$SELF" check --deep
`

func TestAFullDiskLosesNothing(t *testing.T) {
	tier.OnlyLong(t)
	needsADisk(t)
	dir := t.TempDir()
	const views = 150_000
	events, declared := writeHistory(t, dir, views)
	disk, report := filepath.Join(dir, "disk"), filepath.Join(dir, "report.json")
	must.OK(t, os.Mkdir(disk, 0o700))
	program := lifthouse(t)
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", fullDisk)
	cmd.Env = slices.Concat(program.Env,
		[]string{
			"SELF=" + program.Path, "DISK=" + disk, "EVENTS=" + events, "DECLARED=" + declared, "REPORT=" + report,
			"LIFTHOUSE_STORE=embedded:" + filepath.Join(disk, "data"),
		})
	said, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, said)
	must.That(t, bytes.Contains(said, []byte("the disk of the store is full: free space")), "%v\n%s", err, said)
	text := must.Get(os.ReadFile(report))(t)
	var r result.Report
	if err := json.Unmarshal(text, &r); err != nil || r.Totals.Visitors != views || r.Totals.Views != views {
		t.Errorf("%+v, %v; want %d visitors\n%s", r.Totals, err, views, said)
	}
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	at := must.WriteFile(t, "file", "")
	code, _, complaints := other(t, nil, "report", "campaign", "1", "--store=embedded:"+filepath.Join(at, "data"))
	check.Equal(t, code, exitFailed, "exit %d, %s", code, complaints)
	check.Contains(t, complaints, at, "exit %d, %s", code, complaints)
	check.Contains(t, complaints, "not a directory", "exit %d, %s", code, complaints)
}
