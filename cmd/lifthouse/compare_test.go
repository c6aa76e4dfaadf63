package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/calculator"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// runCompare runs the command without a store.
func runCompare(t *testing.T, stdin string, args ...string) (code int, out, complaints string) {
	t.Helper()
	path := must.WriteFile(t, "stdin", stdin)
	in := must.Get(os.Open(path))(t)
	defer func() { _ = in.Close() }()
	stdout, stderr := capture(t), capture(t)
	p := &program{stdin: in, stdout: stdout.write, stderr: stderr.write, dir: ".", args: append([]string{"compare"}, args...), getenv: func(string) string { return "" }}
	code = p.runCommand(t.Context())
	return code, stdout.text(), stderr.text()
}

const (
	goodLine = `{"metric":"binary","significanceLevel":95,"variations":[{"n":11927,"converted":716},{"n":12010,"converted":900}]}`
	badLine  = `{"metric":"binary","variations":[{"n":11927,"converted":716},{"n":12010,"converted":12011,"shares":50}]}`
	meanLine = `{"metric":"mean","methodology":"bayesian","variations":[{"n":10000,"mean":4.2,"variance":81},{"n":10000,"mean":4.6,"variance":90}]}`
)

func TestCompareAnswersLinesAroundABadOne(t *testing.T) {
	code, out, complaints := runCompare(t, goodLine+"\n\n"+badLine+"\r\n  \n"+meanLine, "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	must.That(t, code == exitRejected && len(lines) == 3, "exit %d, %d lines; want %d and 3\n%s%s", code, len(lines), exitRejected, out, complaints)
	var first, last calculator.Answer
	var second calculator.Refusal
	for i, body := range []any{&first, &second, &last} {
		must.OK(t, json.Unmarshal([]byte(lines[i]), body), "%s", lines[i])
	}
	check.That(t, first.Line == 1 && second.Line == 3 && last.Line == 5, "lines %d, %d, %d; want 1, 3, 5", first.Line, second.Line, last.Line)
	const want = 4.316085333069935e-06 // Python's math.erfc(z/sqrt(2)) of decision 1's z
	p := *first.Variations[1].Comparison.Frequentist.PValue
	check.That(t, math.Abs(p-want) <= 1e-9*want, "p = %v, want %v", p, want)
	check.That(t, last.Variations[1].Comparison.Bayesian != nil && last.Variations[1].Comparison.Frequentist == nil,
		"comparison %+v, want the Bayesian blocks only", last.Variations[1].Comparison)
	refused := faults.List{
		{Name: "variations[1].shares", Detail: `unknown field "shares"; did you mean share?`},
		{Name: "variations[1].converted", Value: "12011", Detail: "must be at most n, which is 12010"},
	}
	check.That(t, slices.Equal(second.Errors, refused), "faults %+v, want %+v", second.Errors, refused)
	const message = `lifthouse: line 3: variations[1].shares: unknown field "shares"; did you mean share?; ` +
		`variations[1].converted: "12011": must be at most n, which is 12010` + "\n"
	check.Equal(t, complaints, message, "it complains")
}

func TestCompareTakesLongLinesAndSkipsLongerOnes(t *testing.T) {
	padded := goodLine + strings.Repeat(" ", calculator.MaxInput-len(goodLine))
	code, out, complaints := runCompare(t, padded+"\n"+padded+" \n"+goodLine+"\n", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	must.That(t, code == exitRejected && len(lines) == 3 && strings.HasPrefix(complaints, `lifthouse: line 2: line: "": must have at most 1048576 bytes`),
		"exit %d, %d lines, %q", code, len(lines), complaints)
	check.That(t, strings.Replace(lines[0], `"line":1`, `"line":3`, 1) == lines[2], "the same question is answered\n%s\n%s", lines[0], lines[2])
}

func TestCompareFlagsAskAsLinesDo(t *testing.T) {
	for _, test := range []struct {
		args []string
		line string
	}{
		{[]string{"--control", "716/11927", "--treatment", "900/12010", "--level", "95"}, goodLine},
		{[]string{"--control=10000:4.2:81", "--treatment=10000:4.6:9e1", "--methodology=bayesian"}, meanLine},
		{
			[]string{"--control", "9000:-0.5:4", "--treatment", "9000:1:4", "--treatment", "8000:0:5", "--share", "50,25,25", "--power", "70", "--mde", "7.5"},
			`{"metric":"mean","power":70,"mde":7.5,"variations":[{"n":9000,"mean":-0.5,"variance":4,"share":50},
			  {"n":9000,"mean":1,"variance":4,"share":25},{"n":8000,"mean":0,"variance":5,"share":25}]}`,
		},
		{
			[]string{"--control", "200/2000", "--treatment", "249/2000", "--share", "50,50", "--tau", "0.5"},
			`{"metric":"binary","variations":[{"n":2000,"converted":200,"share":50},{"n":2000,"converted":249,"share":50}],
			  "looks":[{"tau":0.5,"variations":[{"n":2000,"converted":200},{"n":2000,"converted":249}]}]}`,
		},
		{
			[]string{"--control", "9000:0.01:4", "--treatment", "9000:1:4", "--nonnegative"},
			`{"metric":"mean","nonnegative":true,"variations":[{"n":9000,"mean":0.01,"variance":4},{"n":9000,"mean":1,"variance":4}]}`,
		},
	} {
		code, byFlags, complaints := runCompare(t, "ignored", append(test.args, "--json")...)
		if code != exitOK {
			t.Errorf("%q: exit %d, %s", test.args, code, complaints)
			continue
		}
		_, byLine, _ := runCompare(t, strings.ReplaceAll(test.line, "\n", " "), "--json")
		check.Equal(t, byFlags, byLine, "%q is answered", test.args)
	}
}

func TestCompareUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--help"}, exitOK, "echo '{"},
		{[]string{}, exitOK, ""},
		{[]string{"questions.ndjson"}, exitUsage, "takes no argument"},
		{[]string{"--treatments", "5/10"}, exitUsage, "unknown flag: --treatments"},
		{[]string{"--level", "95"}, exitUsage, "--level requires --control and --treatment; a line of standard input has its own significanceLevel"},
		{[]string{"--control", "5/10"}, exitUsage, "--control and at least one --treatment are required"},
		{[]string{"--treatment", "5/10"}, exitUsage, "--control and at least one --treatment are required"},
		{[]string{"--control", "5 %", "--treatment", "5/10"}, exitUsage, "--control 5 %: must be converted/visitors (500/10000) or visitors:mean:variance"},
		{[]string{"--control", "5/10", "--treatment", "5/10:3"}, exitUsage, `--treatment 5/10:3: "10:3" is not a number`},
		{[]string{"--control", "5/10", "--treatment", "1,000/10000"}, exitUsage, `"1,000" is not a number`},
		{[]string{"--control", "5/10", "--treatment", "10:3:nan"}, exitUsage, `"nan" is not a number`},
		{[]string{"--control", "5/10", "--treatment", "10:3:1"}, exitUsage, "--treatment 10:3:1: must have the form of --control 5/10"},
		{
			[]string{"--control", "50/10", "--treatment", "5/-10", "--level", "99", "--mde", "0.2"},
			exitUsage,
			`--level "99": must be one of 80, 90, 95, 100 per cent; --mde "0.2": must be a number from 1 to 100 per cent; ` +
				`variations[0].converted: "50": must be at most n, which is 10; variations[1].n: "-10": must be an integer from 0`,
		},
		{[]string{"--control", "5/10", "--treatment", "5/10", "--share", "50"}, exitUsage, "--share: must have 2 values, one for control and one per --treatment; it has 1"},
		{[]string{"--control", "5/10", "--treatment", "5/10", "--share", "50,half"}, exitUsage, `variations[1].share: "half": must be a number`},
		{[]string{"--control", "5/10", "--treatment", "5/10", "--share", "500,500"}, exitUsage, `variations[0].share: "500": must be a number from 0 to 100 per cent`},
		{[]string{"--tau", "1"}, exitUsage, "--tau requires --control and --treatment; a line of standard input has its own looks"},
		{
			[]string{"--control", "50/10", "--treatment", "5/10", "--tau", "0"},
			exitUsage,
			`compare: variations[0].converted: "50": must be at most n, which is 10; --tau "0": must be above 0` + "\n",
		},
		{[]string{"--control", "5/10", "--treatment", "5/10", "--tau", "-1"}, exitUsage, `--tau "-1": must be a number from 0 to 1000`},
		{[]string{"--control", "5/10", "--treatment", "5/10", "--level", "high"}, exitUsage, `--level "high": must be a number`},
		{append([]string{"--control", "5/10"}, strings.Fields(strings.Repeat("--treatment 5/10 ", 21))...), exitUsage, "must be an array of 2 to 21 variations, has 22"},
	} {
		code, out, complaints := runCompare(t, "", test.args...)
		check.That(t, code == test.code && strings.Contains(out+complaints, test.want),
			"lifthouse compare %q: exit %d\n%s%s\nwant %d and %q", test.args, code, out, complaints, test.code, test.want)
	}
}

func TestCompareTable(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--control", "716/11927", "--treatment", "900/12010", "--level", "95", "--share", "50,50"}, `
No conclusion: pass the sums at each weekly look to conclude.

variation  visitors    rate     95 % interval
0 control    11,927  6.00 %  5.59 % to 6.44 %
1            12,010  7.49 %  7.04 % to 7.98 %

variation     lift       95 % interval          p  verdict
1          +24.8 %  +13.5 % to +37.2 %  0.0000043  ahead, not conclusive

Variation 1: Expected a lift of +20.9 % (90 % interval +10.9 % to +31.7 %).
An experiment here typically changes the metric by ±14.6 % (from 1 test; ±3.0 %
is assumed without any).
`},
		{[]string{"--control", "10000:0.01:81", "--treatment", "10000:4.6:90", "--treatment", "90:2.1:77", "--nonnegative"}, `
No conclusion: pass the sums at each weekly look to conclude.

variation  visitors  mean  90 % interval
0 control    10,000  0.01  -0.14 to 0.16
1            10,000  4.60   4.44 to 4.76
2                90   2.1     0.6 to 3.6

variation       lift   90 % interval  adjusted p  verdict
1          +45,900 %  +2,380 % to +∞    1.2e-261  ahead, not conclusive
2          +20,900 %    +405 % to +∞      0.0557  not enough data
`},
		{[]string{"--control", "500/10000", "--treatment", "430/9950", "--treatment", "510/10020", "--methodology", "bayesian", "--mde", "10"}, `
No conclusion: pass the sums at each weekly look to conclude.

variation  visitors    rate     90 % interval
0 control    10,000  5.00 %  4.65 % to 5.37 %
1             9,950  4.32 %  4.00 % to 4.67 %
2            10,020  5.09 %  4.74 % to 5.46 %

variation    lift     90 % interval  chance to beat control  verdict
1          -2.5 %  -6.2 % to +1.3 %                 13.78 %  inconclusive
2          +1.3 %  -2.3 % to +5.0 %                 72.46 %  inconclusive

Variation 1: Expected a lift of -4.1 % (90 % interval -14.0 % to +0.9 %).
Variation 2: Expected a lift of +1.2 % (90 % interval -2.8 % to +7.4 %).
An experiment here typically changes the metric by ±3.7 % (from 1 test; ±1.5 %
is assumed without any).
`},
		{[]string{"--control", "200/2000", "--treatment", "239/2000", "--level", "95", "--tau", "1"}, `
No variation differs significantly from control by look 1 (95 % level).

variation  visitors    rate     95 % interval
0 control     2,000  10.0 %   8.8 % to 11.4 %
1             2,000  11.9 %  10.6 % to 13.4 %

variation     lift      95 % interval       p  p at look 1
1          +19.5 %  +0.1 % to +42.7 %  0.0485       0.0511

variation  verdict
1          ahead, not conclusive

Variation 1: Expected a lift of +4.3 % (90 % interval -2.0 % to +19.7 %).
An experiment here typically changes the metric by ±5.9 % (from 1 test; ±3.0 %
is assumed without any).
`},
		{[]string{"--control", "0/50", "--treatment", "7/50", "--level", "100"}, `
No conclusion is possible: at significance level 100 no result is significant
and there are no intervals.

variation  visitors    rate  100 % interval
0 control        50   0.0 %               –
1                50  14.0 %               –

variation  lift  100 % interval       p  verdict
1             –               –  0.0063  not enough data
`},
	} {
		code, out, complaints := runCompare(t, "", test.args...)
		if code != exitOK || out != test.want[1:] {
			t.Errorf("lifthouse compare %q: exit %d\n%s%s\nwant\n%s", test.args, code, out, complaints, test.want[1:])
		}
	}
}

func TestCompareEndsWhileItWaits(t *testing.T) {
	in, write, err := os.Pipe()
	must.OK(t, err)
	defer func() { _ = write.Close() }()
	stdout, stderr := capture(t), capture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &program{stdin: in, stdout: stdout.write, stderr: stderr.write, args: []string{"compare", "--json"}, getenv: func(string) string { return "" }}
	code := p.runCommand(ctx)
	check.That(t, code == exitFailed && stdout.text() == "" && stderr.text() == "lifthouse: interrupted\n", "exit %d, want %d", code, exitFailed)
}
