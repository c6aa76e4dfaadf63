package e2e

import (
	encoding "encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// clock moves the clock of a server. It is a file with the number of seconds that the server adds to the time.
type clock struct {
	t    *testing.T
	path string
	now  time.Time // real time, from which the clock was set
}

// movedTime is a file of the package time, which reads the file of a clock. A ticker of ten minutes, as that of the
// recorder of looks, ticks each second.
const movedTime = `package time

import (
	"syscall"
	"unsafe"
)

var moved *int64

func init() {
	path, has := syscall.Getenv("MOVED_CLOCK")
	if !has {
		return
	}
	file, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	memory, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	moved = (*int64)(unsafe.Pointer(&memory[0]))
}

func movedSeconds() int64 {
	if moved == nil {
		return 0
	}
	return *moved
}

func movedInterval(d Duration) Duration {
	if moved != nil && d == 10*Minute {
		return Second
	}
	return d
}
`

// buildWithClock builds lifthouse with a package time whose clock can be moved.
func buildWithClock(t *testing.T) string {
	t.Helper()
	dir, source := t.TempDir(), filepath.Join(runtime.GOROOT(), "src", "time") //nolint:staticcheck // the toolchain runs here
	replace := map[string]string{}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		replace[filepath.Join(source, name)] = path
	}
	change := func(name, was, is string) {
		text := string(must.Get(os.ReadFile(filepath.Join(source, name)))(t))
		must.That(t, strings.Contains(text, was), "%s of the package time lacks %q", name, was)
		write(name, strings.Replace(text, was, is, 1))
	}
	write("moved.go", movedTime)
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	change("time.go", now, now+"\tsec += movedSeconds()\n")
	const ticker = "func NewTicker(d Duration) *Ticker {\n"
	change("tick.go", ticker, ticker+"\td = movedInterval(d)\n")
	overlay := filepath.Join(dir, "overlay.json")
	must.OK(t, os.WriteFile(overlay, must.Get(json.Marshal(map[string]any{"Replace": replace}))(t), 0o600))
	program := filepath.Join(dir, "lifthouse")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nomsgpack", "-overlay", overlay, "-o", program,
		"lifthouse/cmd/lifthouse")
	out, err := build.CombinedOutput()
	must.That(t, err == nil, "build with a clock: %v\n%s", err, out)
	return program
}

// newClock returns a clock that is not moved yet.
func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{t: t, path: filepath.Join(t.TempDir(), "clock"), now: time.Now()}
	must.OK(t, os.WriteFile(c.path, make([]byte, 8), 0o600))
	return c
}

// set sets the clock to a later time.
func (c *clock) set(to time.Time) {
	c.t.Helper()
	file := must.Get(os.OpenFile(c.path, os.O_WRONLY, 0))(c.t)
	defer func() { _ = file.Close() }()
	var seconds [8]byte
	encoding.NativeEndian.PutUint64(seconds[:], uint64(time.Until(to)/time.Second)) //nolint:gosec // later than now
	must.Get(file.WriteAt(seconds[:], 0))(c.t)
}

// secretToken matches a token.
var secretToken = regexp.MustCompile(`lh_[\w-]+`)

// dailyShop has campaigns with effects of all kinds: none, large gains and large losses.
type dailyShop struct {
	campaigns int
	start     time.Time // midnight before the first day
	random    *rand.Rand
	visitors  int
}

// eventsOf returns the events of a day, which happen in its first ten hours.
func (s *dailyShop) eventsOf(day int) string {
	const daily = 40 // visitors of a variation
	rates := []float64{.2, .35, .08, .2}
	var lines strings.Builder
	for campaign := 1; campaign <= s.campaigns; campaign++ {
		for variation := range 2 {
			rate := rates[0]
			if variation == 1 {
				rate = rates[campaign%len(rates)]
			}
			for range daily {
				s.visitors++
				at := s.start.AddDate(0, 0, day).Add(time.Duration(s.random.IntN(36_000)) * time.Second)
				fmt.Fprintf(&lines, `{"eventId":"v%d","time":%d,"websiteId":1,"visitor":"%d","event":"view","campaignId":%d,`+
					`"variationId":%d}`+"\n", s.visitors, at.UnixMilli(), s.visitors, campaign, variation)
				if s.random.Float64() < rate {
					fmt.Fprintf(&lines, `{"eventId":"g%d","time":%d,"websiteId":1,"visitor":"%d","event":"goal","goalId":1,`+
						`"campaignId":%d,"variationId":%d}`+"\n", s.visitors, at.Add(time.Minute).UnixMilli(), s.visitors,
						campaign, variation)
				}
			}
		}
	}
	return lines.String()
}

// catalogueOf returns the catalogue of the campaigns, which run from the first day on.
func (s *dailyShop) catalogueOf() string {
	var text strings.Builder
	text.WriteString("accounts:\n  - id: 1\n    name: Shop\n    websites:\n      - id: 1\n        domain: shop.example.com\n" +
		"        goals: [{id: 1, name: Purchase}]\n        campaigns:\n")
	for id := 1; id <= s.campaigns; id++ {
		fmt.Fprintf(&text, "          - {id: %d, name: C%d, type: experiment, primaryGoalId: 1, significanceLevel: 95, controlShare: 50, "+
			"active: true, startDate: %s, variations: [{id: 1, name: New, share: 50}]}\n", id, id, s.start.Format(time.RFC3339))
	}
	return text.String()
}

// TestEverySurfaceShowsRecordedLooks moves the clock of a server over two looks of 120 campaigns. After midnight no event
// arrives, so only the recorder changes something. Then the reports have each recorded look at once, and messages,
// reports and lists agree about the decision.
func TestEverySurfaceShowsRecordedLooks(t *testing.T) {
	tier.OnlyLong(t)
	const campaigns, lastDay = 120, 16
	program, moved := buildWithClock(t), newClock(t)
	shop := &dailyShop{
		campaigns: campaigns, start: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1),
		random: rand.New(rand.NewPCG(75, 2)),
	}
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append(args, store)...)
		cmd.Env = append(os.Environ(), "MOVED_CLOCK="+moved.path)
		return cmd
	}
	output := func(args ...string) string {
		out, err := run(args...).Output()
		must.That(t, err == nil, "lifthouse %q: %v\n%s", args, err, out)
		return strings.TrimSpace(string(out))
	}
	declared := filepath.Join(t.TempDir(), "catalog.yaml")
	must.OK(t, os.WriteFile(declared, []byte(shop.catalogueOf()), 0o600))
	moved.set(shop.start.Add(time.Minute))
	output("apply", "-f", declared)
	token := secretToken.FindString(output("token", "create", "--account", "1", "--scope", "read"))
	ingest := secretToken.FindString(output("token", "create", "--account", "1", "--website", "1", "--scope", "ingest"))
	p := startCommand(t, run("serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"))

	messages := map[int64]string{} // the last decision that was sent, by campaign
	contradictions := 0
	for day := range lastDay {
		moved.set(shop.start.AddDate(0, 0, day).Add(12 * time.Hour))
		must.That(t, p.post(http.DefaultClient, ingest, shop.eventsOf(day)), "day %d: events", day)
		reports := p.scorecards(token, campaigns) // which keeps the judgements
		check.Equal(t, len(reports), campaigns, "day %d: reports", day)

		moved.set(shop.start.AddDate(0, 0, day+1).Add(40 * time.Minute))
		if day >= 8 {
			for !hasRecorded(p.scorecards(token, campaigns), (day-1)/7) {
				must.OK(t, t.Context().Err())
			}
		}
		contradictions += p.compareSurfaces(token, campaigns, messages, day)
		t.Logf("day %d: %d campaigns decided, %d contradictions", day, len(messages), contradictions)
	}
	check.Equal(t, contradictions, 0, "contradictions between messages, reports and lists")
	check.That(t, len(messages) > campaigns/4, "only %d campaigns were decided", len(messages))
}

// hasRecorded reports whether all reports have a number of recorded looks.
func hasRecorded(reports []result.Report, looks int) bool {
	for i := range reports {
		recorded := 0
		for _, look := range reports[i].Looks {
			if look.RecordedAt != nil {
				recorded++
			}
		}
		if recorded < looks {
			return false
		}
	}
	return true
}

// scorecards returns the reports of the campaigns, as a page asks for them.
func (p *process) scorecards(token string, campaigns int) []result.Report {
	p.t.Helper()
	reports := make([]result.Report, campaigns)
	for i := range reports {
		status, text := get(p.t, fmt.Sprintf("%s/v1/campaigns/%d/results?scorecard=true", p.url, i+1), token)
		must.Equal(p.t, status, http.StatusOK, "%s", text)
		must.OK(p.t, json.Unmarshal([]byte(text), &reports[i]))
	}
	return reports
}

// compareSurfaces compares the decisions of messages, reports and lists, and returns the number of differences. messages
// has the last decision that was sent of each campaign.
func (p *process) compareSurfaces(token string, campaigns int, messages map[int64]string, day int) (differ int) {
	p.t.Helper()
	var sent []struct {
		Event string
		Data  struct {
			CampaignID int64
			Decision   *struct{ Status string }
		}
	}
	p.get("/deliveries", token, &sent)
	for i := len(sent) - 1; i >= 0; i-- { // the earliest first
		if sent[i].Event == "decision.changed" && sent[i].Data.Decision != nil {
			messages[sent[i].Data.CampaignID] = sent[i].Data.Decision.Status
		}
	}
	var listed []listedStatus
	p.get("/v1/campaigns?include=status", token, &listed)
	byID := map[int64]listedStatus{}
	for _, c := range listed {
		byID[c.ID] = c
	}
	for i, report := range p.scorecards(token, campaigns) {
		id := int64(i + 1)
		decision := string(report.Decision.Status)
		if said, has := messages[id]; has && said != decision {
			differ++
			p.t.Logf("day %d, campaign %d: the message says %s, the report %s", day, id, said, decision)
		}
		if status := byID[id].Status.Decision; status != nil && messages[id] != "" && string(status.Status) != messages[id] {
			differ++
			p.t.Logf("day %d, campaign %d: the message says %s, the list %s", day, id, messages[id], status.Status)
		}
	}
	return differ
}
