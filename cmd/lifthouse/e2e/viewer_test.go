package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// viewer shows the dashboard of the demo in a headless browser.
type viewer struct {
	*testing.T
	ctx    context.Context
	server *process
	site   string // where the browser reaches it
	store  string
	token  string

	mu       sync.Mutex
	asked    []*network.Request
	problems []string // what the browser complains of
}

// sharedBrowser is the browser of all tests, which each have their own cookies and storage in it. It ends with the test
// program.
var sharedBrowser struct {
	sync.Once
	ctx context.Context //nolint:containedctx // chromedp's handle of a browser
}

// openBrowser starts the browser for the first test that needs it.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIP: chromium is not installed: the dashboard is not looked at in a browser")
	}
	b := &sharedBrowser
	b.Do(func() {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
			chromedp.NoSandbox,
			chromedp.UserDataDir(filepath.Join(filepath.Dir(binary), "browser")))
		allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
		b.ctx, _ = chromedp.NewContext(allocator)
		err = chromedp.Do(b.ctx)
	})
	must.OK(t, err)
	return b.ctx
}

// demoStore is the folder of a demo's store, which the tests copy.
var demoStore struct {
	sync.Once
	dir string
}

// copyDemo returns the folder of a new copy of the demo's store.
func copyDemo(t *testing.T) string {
	t.Helper()
	demoStore.Do(func() {
		dir := filepath.Join(filepath.Dir(binary), "demo")
		start(t, "demo", "--store=embedded:"+dir).interrupt()
		demoStore.dir = dir
	})
	must.That(t, demoStore.dir != "", "the demo was not created")
	dir := filepath.Join(t.TempDir(), "demo")
	must.OK(t, os.CopyFS(dir, os.DirFS(demoStore.dir)))
	return dir
}

// newViewer serves a copy of the demo, and opens it in the browser. It records every request.
func newViewer(t *testing.T, arguments ...string) *viewer {
	t.Helper()
	v := openTab(t)
	v.store = "--store=embedded:" + copyDemo(t)
	v.server = start(t, append([]string{"demo", v.store}, arguments...)...)
	v.site = v.server.url
	v.token = regexp.MustCompile(`lh_[\w-]+`).FindString(v.server.said.String())
	return v
}

// newSignedIn is newViewer with a page of results, signed in.
func newSignedIn(t *testing.T, address string) *viewer {
	t.Helper()
	v := newViewer(t)
	v.openSignedIn(address, allThere)
	return v
}

// newViewerOf is newViewer for a new store with a catalogue.
func newViewerOf(t *testing.T, declared string) *viewer {
	t.Helper()
	v := openTab(t)
	v.store = "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	file := must.WriteFile(t, "catalog.yaml", declared)
	ended(t, exitOK, "apply", "-f", file, v.store)
	v.server = start(t, "serve", v.store)
	v.site = v.server.url
	v.token = v.newToken("admin")
	return v
}

// openTab opens an empty tab. It records what the page asks.
func openTab(t *testing.T) *viewer {
	t.Helper()
	tier.OnlyLong(t)
	v := &viewer{T: t}
	tab, closed := chromedp.NewContext(openBrowser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(closed)
	t.Cleanup(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		check.That(t, len(v.problems) == 0, "the browser complains: %q", v.problems)
	})
	limited, late := context.WithTimeout(tab, 5*time.Minute)
	t.Cleanup(late)
	v.ctx = limited
	must.OK(t, chromedp.Listen(v.ctx, v.saw))
	call(v, network.Enable, network.EnableParams{})
	call(v, runtime.Enable, cdp.Empty{})
	call(v, log.Enable, cdp.Empty{})
	call(v, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	v.sized(1400, 900)
	return v
}

func call[P, R any](v *viewer, command cdp.Command[P, R], parameters P) {
	v.Helper()
	must.Get(chromedp.Call(v.ctx, command, parameters))(v)
}

// saw records requests of the page and errors of the browser.
func (v *viewer) saw(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.asked = append(v.asked, e.Request)
	case *runtime.EventExceptionThrown:
		v.problems = append(v.problems, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description))
	case *log.EventEntryAdded:
		if e.Entry.Source != "network" { // which has refusals, too
			v.problems = append(v.problems, e.Entry.Text)
		}
	}
}

// requests returns the requests of the page.
func (v *viewer) requests() []*network.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

// do runs steps. If one fails, it ends the test with the text of the page.
func (v *viewer) do(steps ...chromedp.Action[chromedp.Void]) {
	v.Helper()
	for i, step := range steps {
		if err := chromedp.Do(v.ctx, step); err != nil {
			text, _ := chromedp.Run(v.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
			v.Fatalf("step %d: %v; complaints %q; the page ends with\n%s", i+1, err, v.problems,
				text[max(len(text)-1500, 0):])
		}
	}
}

func (v *viewer) open(address string) {
	v.Helper()
	v.do(chromedp.Navigate(v.site + address))
}

// openAll opens a page of results, and waits for all its parts.
func (v *viewer) openAll(address string) {
	v.Helper()
	v.open(address)
	v.until(allThere)
}

// until waits until a condition is true on the page, which may load again.
func (v *viewer) until(condition string) {
	v.Helper()
	v.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		poll := chromedp.Poll[bool]("Boolean("+condition+")", chromedp.WithPollingTimeout(30*time.Second))
		_, err := poll(ctx, t)
		for err != nil &&
			(strings.Contains(err.Error(), "target navigated") || strings.Contains(err.Error(),
				"Cannot find context")) {
			_, err = poll(ctx, t)
		}
		if err != nil {
			return chromedp.Void{}, fmt.Errorf("waiting for %s: %w", condition, err)
		}
		return chromedp.Void{}, nil
	})
}

// shows waits until the page has a text.
func (v *viewer) shows(text string) {
	v.Helper()
	v.until("document.body.innerText.replace(/\\s+/g, ' ').includes(" + strconv.Quote(text) + ")")
}

// click clicks an element at its place, once two frames show it at the same one: what is above it may change its
// height.
func (v *viewer) click(selector string) {
	v.Helper()
	v.until("document.querySelector(" + strconv.Quote(selector) + ")")
	evaluated[bool](v, fmt.Sprintf(`new Promise((done) => {
		let last;
		const look = () => {
			const at = document.querySelector(%q)?.getBoundingClientRect().top;
			if (at !== undefined && at === last) done(true);
			else { last = at; requestAnimationFrame(look); }
		};
		look();
	})`, selector))
	v.do(chromedp.Click(chromedp.CSS(selector)))
}

func (v *viewer) enter(selector, text string) {
	v.Helper()
	v.until("document.querySelector(" + strconv.Quote(selector) + ")")
	v.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// unfolds opens the details at a selector.
func (v *viewer) unfolds(selector string) {
	v.Helper()
	v.until("document.querySelector(" + strconv.Quote(selector) + ")")
	evaluated[bool](v, fmt.Sprintf(`document.querySelector(%q).open = true`, selector))
}

// choose sets the value of a select or a date.
func (v *viewer) choose(selector, value string) {
	v.Helper()
	v.until(fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e && (!e.options || [...e.options].some((o) => o.value === %q)) })()`, selector, value)) // options may arrive later
	evaluated[bool](v, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change", {bubbles: true})); return e.value === %q })()`, selector, value, value))
}

func evaluated[T any](v *viewer, expression string) T {
	v.Helper()
	got, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	must.OK(v, err, "%s", strings.SplitN(expression, "\n", 2)[0])
	return got
}

func (v *viewer) signIn(token string) {
	v.Helper()
	v.enter("[name=token]", token)
	v.click(".sign-in button")
	v.until("!document.querySelector('.sign-in')")
}

// openSignedIn opens a page, signs in and waits for a condition.
func (v *viewer) openSignedIn(address, condition string) {
	v.Helper()
	v.open(address)
	v.signIn(v.token)
	v.until(condition)
}

// rowIs checks that a row of the page begins with these numbers, exactly.
func (v *viewer) rowIs(selector string, want ...float64) (shown []string) {
	v.Helper()
	values, shown := v.row(selector)
	must.That(v, len(values) >= len(want), "%s shows %q, want %v", selector, values, want)
	check.That(v, slices.EqualFunc(values[:len(want)], want, same), "%s shows %q, want %v", selector, values, want)
	return shown
}

func (v *viewer) sized(width, height int64) {
	v.Helper()
	call(v, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

func (v *viewer) themed(theme string) {
	v.Helper()
	call(v, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
			Name:  "prefers-color-scheme",
			Value: theme,
		}}})
}

// newToken creates a token with the command.
func (v *viewer) newToken(scope string) string {
	v.Helper()
	code, out, complaints := other(v.T, nil, "token", "create", "--scope", scope, v.store)
	must.That(v, code == exitOK, "exit %d, %s", code, complaints)
	return strings.TrimSpace(out)
}
