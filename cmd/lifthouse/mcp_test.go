package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestMCPOverStandardStreams asks the command, and the command that another process executes for it.
func TestMCPOverStandardStreams(t *testing.T) {
	h := thirtyHouse(t)
	h.token = strings.TrimSpace(h.must("token", "create"))
	report := h.results("/v1/campaigns/1/results?scorecard=true")
	socket := filepath.Join(t.TempDir(), "s")
	listener := must.Get(remote.ListenSocket(t.Context(), socket))(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		remote.ServeCommands(ctx, listener, func(ctx context.Context, c remote.Command) int {
			return runForwarded(ctx, c, h.store, app.ServerOptions{})
		})
		close(served)
	}()
	for name, run := range map[string]func(in, out, complaints *os.File) int{
		"on the store": func(in, out, complaints *os.File) int {
			p := &program{
				stdin: in, stdout: out, stderr: complaints, dir: ".", args: []string{"mcp"},
				getenv: func(string) string { return "" }, running: h.store,
			}
			return p.runCommand(t.Context())
		},
		"forwarded": func(in, out, complaints *os.File) int {
			code := must.Get(remote.RunCommand(t.Context(), socket,
				remote.Command{Dir: ".", Args: []string{"mcp", "--account=1"}, In: in, Out: out, Err: complaints}))(t)
			_, _ = in.Close(), out.Close()
			return code
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, toCommand := pipe(t)
			fromCommand, out := pipe(t)
			complaints := capture(t)
			ended := make(chan int, 1)
			go func() { ended <- run(in, out, complaints.write) }()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session := must.Get(client.Connect(t.Context(), &mcp.IOTransport{Reader: fromCommand, Writer: toCommand},
				nil))(t)
			found, err := session.CallTool(t.Context(),
				&mcp.CallToolParams{Name: "get_result", Arguments: map[string]any{"campaignId": 1}})
			must.That(t, err == nil, "%+v, %v", found, err)
			must.That(t, !found.IsError, "%+v, %v", found, err)
			var answer struct{ Sentences []string }
			text := found.Content[0].(*mcp.TextContent).Text
			check.That(t, json.Unmarshal([]byte(text), &answer) == nil, "the answer is %s, want %s", text,
				report.Decision.Text)
			check.That(t, slices.Contains(answer.Sentences, report.Decision.Text), "the answer is %s, want %s", text,
				report.Decision.Text)
			explained, err := session.CallTool(t.Context(),
				&mcp.CallToolParams{Name: "explain_visitor", Arguments: map[string]any{"visitor": "nobody"}})
			must.That(t, err == nil, "%+v, %v", explained, err)
			check.That(t, !explained.IsError, "%+v, %v", explained, err)
			_ = session.Close()
			code, text := <-ended, complaints.text()
			check.Equal(t, code, exitOK, "exit %d: %s", code, text)
			check.Equal(t, text, "", "exit %d: %s", code, text)
		})
	}
	stop()
	<-served
	code, _, complaints := h.run("mcp", "--account=7")
	check.Equal(t, code, exitFailed, "exit %d: %s", code, complaints)
	check.Contains(t, complaints, "--account 7: no such account", "exit %d: %s", code, complaints)
}

// TestMCPAnswersBeforeItEnds checks that requests are answered if the input ends right after them.
func TestMCPAnswersBeforeItEnds(t *testing.T) {
	h := thirtyHouse(t)
	h.must("token", "create")
	in, toCommand := pipe(t)
	fromCommand, out := pipe(t)
	const messages = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_result","arguments":{"campaignId":1}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"explain_visitor","arguments":{"visitor":"nobody"}}}` // without a line break
	must.Get(toCommand.WriteString(messages))(t)
	_ = toCommand.Close()
	p := &program{
		stdin: in, stdout: out, stderr: capture(t).write, dir: ".", args: []string{"mcp"},
		getenv: func(string) string { return "" }, running: h.store,
	}
	ended := make(chan int, 1)
	go func() { ended <- p.runCommand(t.Context()) }()
	text, err := io.ReadAll(fromCommand)
	must.That(t, err == nil, "%v, %s", err, text)
	check.Equal(t, <-ended, exitOK, "%v, %s", err, text)
	check.Equal(t, strings.Count(string(text), "\n"), 3, "%v, %s", err, text)
	check.Equal(t, strings.Count(string(text), `"structuredContent"`), 2, "%v, %s", err, text)
}

// pipe returns the ends of a pipe.
func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}
