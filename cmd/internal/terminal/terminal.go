// Package terminal detects terminals and shows progress on them.
package terminal

import (
	"io"
	"os"
	"time"

	"lifthouse/engine/render"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Is reports whether a stream is a terminal.
func Is(stream any) (terminal bool) {
	if f, ok := stream.(*os.File); ok {
		withDescriptor(f, func(fd int) { terminal = term.IsTerminal(fd) })
	}
	return terminal
}

// withDescriptor calls use with the descriptor of an open file. It does not use Fd, which would make the file blocking.
func withDescriptor(f *os.File, use func(fd int)) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { use(int(fd)) })
	}
}

// ScreenOf describes an output file for tables.
func ScreenOf(out *os.File, getenv func(string) string) render.Screen {
	if !Is(out) {
		return render.Screen{Width: render.PlainWidth}
	}
	// https://no-color.org
	colour := getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	s := render.Screen{Width: render.PlainWidth, Colour: colour}
	withDescriptor(out, func(fd int) {
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			s.Width = min(max(width, render.MinWidth), render.MaxWidth)
		}
	})
	return s
}

// Progress shows the progress of a long operation: a bar on a terminal, otherwise a line every 5 seconds.
type Progress struct {
	out      io.Writer
	name     string
	bytes    bool // whether amounts are bytes; their speed is shown, too
	bar      *progressbar.ProgressBar
	lastLine time.Time
}

const linePeriod = 5 * time.Second

// NewProgress returns a progress that prints its first line after 5 seconds.
func NewProgress(out io.Writer, name string, bytes bool) *Progress {
	return &Progress{out: out, name: name, bytes: bytes, lastLine: time.Now()}
}

// ShowAmounts shows the current amounts. Without a terminal, line prints them as a line of text.
func (p *Progress) ShowAmounts(done, total int64, line func()) {
	if Is(p.out) {
		if p.bar == nil {
			p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.out),
				progressbar.OptionSetDescription(p.name),
				progressbar.OptionShowBytes(p.bytes), progressbar.OptionShowCount(),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = p.bar.Set64(done)
		return
	}
	if time.Since(p.lastLine) >= linePeriod {
		p.lastLine = time.Now()
		line()
	}
}

// ClearBar removes the bar.
func (p *Progress) ClearBar() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
