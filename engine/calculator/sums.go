package calculator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// jsonNumber matches a number in JSON.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)

// ReadSums parses the numbers of a variation.
func ReadSums(text string) (Metric, map[string]any, error) {
	metric, names, numbers := MetricBinary, []string{"converted", "n"}, strings.Split(text, "/")
	if len(numbers) == 1 {
		metric, names, numbers = MetricMean, []string{"n", "mean", "variance"}, strings.Split(text, ":")
	}
	if len(numbers) != len(names) {
		return "", nil,
			fmt.Errorf("%s: must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)",
				text)
	}
	sums := map[string]any{}
	for i, name := range names {
		number := strings.TrimSpace(numbers[i])
		if !jsonNumber.MatchString(number) {
			return "", nil, fmt.Errorf("%s: %q is not a number; use digits only, as in 500/10000 or 10000:4.2:81", text,
				number)
		}
		sums[name] = json.Number(number)
	}
	return metric, sums, nil
}
