// Package terminal detects terminals, and limits how often progress is shown.
package terminal

import (
	"os"
	"time"

	"lifthouse/engine/render"

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

// Progress limits the lines that show the progress of a long operation to one every 5 seconds.
type Progress struct{ lastLine time.Time }

// NewProgress returns a progress whose first line is due after 5 seconds.
func NewProgress() *Progress { return &Progress{lastLine: time.Now()} }

// ShowLine calls show if a line is due.
func (p *Progress) ShowLine(show func()) {
	if time.Since(p.lastLine) >= lineInterval {
		p.lastLine = time.Now()
		show()
	}
}
