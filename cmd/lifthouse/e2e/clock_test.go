package e2e

import (
	encoding "encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
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
	dir := t.TempDir()
	source := filepath.Join(runtime.GOROOT(), "src", "time") //nolint:staticcheck // the toolchain runs here
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

// movedServer is a server whose clock is moved, with tokens for its account.
type movedServer struct {
	*process

	clock  *clock
	read   string
	ingest map[int]string // by website
}

// startMoved starts a server of a catalogue at a time. The catalogue has an account with websites 1 to a number.
func startMoved(t *testing.T, at time.Time, catalogue string, websites int) *movedServer {
	t.Helper()
	program, s := buildWithClock(t), &movedServer{clock: newClock(t), ingest: map[int]string{}}
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append(args, store)...)
		cmd.Env = append(os.Environ(), "MOVED_CLOCK="+s.clock.path)
		return cmd
	}
	output := func(args ...string) string {
		t.Helper()
		out, err := run(args...).Output()
		must.That(t, err == nil, "lifthouse %q: %v\n%s", args, err, out)
		return strings.TrimSpace(string(out))
	}
	declared := filepath.Join(t.TempDir(), "catalog.yaml")
	must.OK(t, os.WriteFile(declared, []byte(catalogue), 0o600))
	s.clock.set(at)
	output("apply", "-f", declared)
	s.read = secretToken.FindString(output("token", "create", "--account", "1", "--scope", "read"))
	for id := 1; id <= websites; id++ {
		of := output("token", "create", "--account", "1", "--website", strconv.Itoa(id), "--scope", "ingest")
		s.ingest[id] = secretToken.FindString(of)
	}
	s.process = startCommand(t, run("serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"))
	return s
}

// arrive sends lines of events of a website, in parts that the server takes.
func (s *movedServer) arrive(website int, lines []string) {
	s.t.Helper()
	for part := range slices.Chunk(lines, 20_000) {
		isTaken := s.post(http.DefaultClient, s.ingest[website], strings.Join(part, ""))
		must.That(s.t, isTaken, "events of website %d", website)
	}
}

// reportOf returns the report of a campaign, as a page asks for it.
func (s *movedServer) reportOf(campaign int) (r result.Report) {
	s.t.Helper()
	status, text := get(s.t, fmt.Sprintf("%s/v1/campaigns/%d/results?scorecard=true", s.url, campaign), s.read)
	must.Equal(s.t, status, http.StatusOK, "%s", text)
	must.OK(s.t, json.Unmarshal([]byte(text), &r))
	return r
}

// awaitReport returns the report of a campaign once something is true of it.
func (s *movedServer) awaitReport(campaign int, isAwaited func(*result.Report) bool) result.Report {
	s.t.Helper()
	for {
		r := s.reportOf(campaign)
		if isAwaited(&r) {
			return r
		}
		must.OK(s.t, s.t.Context().Err())
	}
}

// tomorrow returns the next midnight. The clocks of these tests are moved to later times.
func tomorrow() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1) }

// timeOfVisit returns a time in the first ten hours of a day.
func timeOfVisit(random *rand.Rand, start time.Time, day int) time.Time {
	return start.AddDate(0, 0, day).Add(time.Duration(random.IntN(36_000)) * time.Second)
}

// visit is a visitor of a website who sees some campaigns.
type visit struct {
	website, visitor int
	at               time.Time
	exposures        string // JSON of the campaigns and their variations
}

// exposedTo returns the JSON of an exposure.
func exposedTo(campaign, variation int) string {
	return fmt.Sprintf(`{"campaignId":%d,"variationId":%d}`, campaign, variation)
}

// line returns an event of the visitor. Its further fields begin with a comma.
func (v *visit) line(kind string, at time.Time, further string) string {
	return fmt.Sprintf(`{"eventId":"%s%d","time":%d,"websiteId":%d,"visitor":"%d","event":"%s"%s}`+"\n",
		kind, v.visitor, at.UnixMilli(), v.website, v.visitor, kind, further)
}

// view returns the view.
func (v *visit) view() string { return v.line("view", v.at, `,"exposures":[`+v.exposures+"]") }

// order returns the visitor's order, which counts for all campaigns that the visitor saw. Its goal has the id of the
// website. Its further fields begin with a comma.
func (v *visit) order(further string) string {
	return v.line("goal", v.at.Add(time.Minute), fmt.Sprintf(`,"goalId":%d%s`, v.website, further))
}

// catalogueOf returns a catalogue of an account with websites, each of which has a goal and campaigns of some names
// that run from a time on. The ids of websites and campaigns count from 1.
func catalogueOf(start time.Time, names ...[]string) string {
	var text strings.Builder
	text.WriteString("accounts:\n  - id: 1\n    name: Shop\n    websites:\n")
	id := 0
	for i, campaigns := range names {
		fmt.Fprintf(&text, "      - id: %d\n        domain: shop%d.example.com\n"+
			"        goals: [{id: %d, name: Purchase}]\n        campaigns:\n", i+1, i+1, i+1)
		for _, name := range campaigns {
			id++
			fmt.Fprintf(&text, "          - {id: %d, name: %s, type: experiment, primaryGoalId: %d, "+
				"significanceLevel: 95, controlShare: 50, active: true, startDate: %s, "+
				"variations: [{id: 1, name: New, share: 50}]}\n", id, name, i+1, start.Format(time.RFC3339))
		}
	}
	return text.String()
}

// campaignNames returns the names of a number of campaigns.
func campaignNames(campaigns int) (names []string) {
	for i := range campaigns {
		names = append(names, fmt.Sprint("C", i+1))
	}
	return names
}

// mostByChance returns the largest number of campaigns or websites, of some, that may have what occurs at a rate: the
// mean and two standard errors.
func mostByChance(rate float64, of int) int {
	return int(float64(of)*rate + 2*math.Sqrt(float64(of)*rate*(1-rate)))
}

// dailyShop has campaigns with effects of all kinds: none, large gains and large losses.
type dailyShop struct {
	campaigns int
	start     time.Time // midnight before the first day
	random    *rand.Rand
	visitors  int
}

// eventsOf returns the events of a day, which happen in its first ten hours.
func (s *dailyShop) eventsOf(day int) (lines []string) {
	const daily = 40 // visitors of a variation
	rates := []float64{.2, .35, .08, .2}
	for campaign := 1; campaign <= s.campaigns; campaign++ {
		for variation := range 2 {
			rate := rates[0]
			if variation == 1 {
				rate = rates[campaign%len(rates)]
			}
			for range daily {
				s.visitors++
				v := visit{1, s.visitors, timeOfVisit(s.random, s.start, day), exposedTo(campaign, variation)}
				if lines = append(lines, v.view()); s.random.Float64() < rate {
					lines = append(lines, v.order(""))
				}
			}
		}
	}
	return lines
}

// TestEverySurfaceShowsRecordedLooks moves the clock of a server over two looks of 120 campaigns. After midnight no
// event arrives, so only the recorder changes something. Then the reports have each recorded look at once, and
// messages, reports and lists agree about the decision.
func TestEverySurfaceShowsRecordedLooks(t *testing.T) {
	tier.OnlyLong(t)
	const campaigns, lastDay = 120, 16
	shop := &dailyShop{campaigns: campaigns, start: tomorrow(), random: rand.New(rand.NewPCG(75, 2))}
	s := startMoved(t, shop.start.Add(time.Minute), catalogueOf(shop.start, campaignNames(campaigns)), 1)

	messages := map[int64]string{} // the last decision that was sent, by campaign
	contradictions := 0
	for day := range lastDay {
		s.clock.set(shop.start.AddDate(0, 0, day).Add(12 * time.Hour))
		s.arrive(1, shop.eventsOf(day))
		reports := s.scorecards(campaigns) // which keeps the judgements
		check.Equal(t, len(reports), campaigns, "day %d: reports", day)

		s.clock.set(shop.start.AddDate(0, 0, day+1).Add(40 * time.Minute))
		if day >= 8 {
			for i := range campaigns {
				s.awaitReport(i+1, func(r *result.Report) bool { return recordedLooks(r) >= (day-1)/7 })
			}
		}
		contradictions += s.compareSurfaces(campaigns, messages, day)
		t.Logf("day %d: %d campaigns decided, %d contradictions", day, len(messages), contradictions)
	}
	check.Equal(t, contradictions, 0, "contradictions between messages, reports and lists")
	check.That(t, len(messages) > campaigns/4, "only %d campaigns were decided", len(messages))
}

// recordedLooks returns the number of recorded looks of a report.
func recordedLooks(r *result.Report) (recorded int) {
	for _, look := range r.Looks {
		if look.RecordedAt != nil {
			recorded++
		}
	}
	return recorded
}

// scorecards returns the reports of the campaigns.
func (s *movedServer) scorecards(campaigns int) []result.Report {
	s.t.Helper()
	reports := make([]result.Report, campaigns)
	for i := range reports {
		reports[i] = s.reportOf(i + 1)
	}
	return reports
}

// compareSurfaces compares the decisions of messages, reports and lists, and returns the number of differences.
// messages has the last decision that was sent of each campaign.
func (s *movedServer) compareSurfaces(campaigns int, messages map[int64]string, day int) (differ int) {
	s.t.Helper()
	var sent []struct {
		Event string
		Data  struct {
			CampaignID int64
			Decision   *struct{ Status string }
		}
	}
	s.get("/deliveries", s.read, &sent)
	for i := len(sent) - 1; i >= 0; i-- { // the earliest first
		if sent[i].Event == "decision.changed" && sent[i].Data.Decision != nil {
			messages[sent[i].Data.CampaignID] = sent[i].Data.Decision.Status
		}
	}
	var listed []listedStatus
	s.get("/v1/campaigns?include=status", s.read, &listed)
	byID := map[int64]listedStatus{}
	for _, c := range listed {
		byID[c.ID] = c
	}
	for i, report := range s.scorecards(campaigns) {
		id := int64(i + 1)
		decision := string(report.Decision.Status)
		if said, has := messages[id]; has && said != decision {
			differ++
			s.t.Logf("day %d, campaign %d: the message says %s, the report %s", day, id, said, decision)
		}
		status := byID[id].Status.Decision
		if status != nil && messages[id] != "" && string(status.Status) != messages[id] {
			differ++
			s.t.Logf("day %d, campaign %d: the message says %s, the list %s", day, id, messages[id], status.Status)
		}
	}
	return differ
}
