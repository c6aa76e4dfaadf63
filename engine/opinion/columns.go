package opinion

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"lifthouse/schema/faults"
)

// role is what a column of a table has.
type role int

const (
	noRole role = iota
	nameRole
	variationRole
	metricRole // of several, only the first one of a test counts; so are breakdowns
	baselineRole
	shippedRole
	daysRole
	shareRole
	visitorsRole // from here on, numbers of a variation
	convertedRole
	rateRole
	meanRole
	deviationRole
	varianceRole
	totalRole
	squaresRole
	sumsRole // converted/visitors in one cell
)

// roleNames are the names of columns in spreadsheets and in exports, in lower case.
var roleNames = map[role]string{
	nameRole: "name,test,test name,experiment,experiment name,campaign,campaign name,experience,experience name",
	variationRole: "variation,variation name,variations,variant,variant name,arm,group,group name,test group,key," +
		"treatment name",
	metricRole:   "metric,metric name,metric event name,goal,goal name,dimension,dimension value,segment",
	baselineRole: "baseline,is baseline,is baseline variation,variation is baseline,is control",
	shippedRole:  "shipped,implemented,launched,deployed,rolled out,winner shipped",
	daysRole:     "days,days running,duration,duration days,run time days",
	shareRole:    "share,traffic,traffic share,traffic allocation,split,weight",
	visitorsRole: "visitors,unique visitors,total visitors,users,total users,units,exposures,participants,n," +
		"sample size,samples,number of samples,visitor count,reach,denominator,denominator value",
	convertedRole: "conversions,unique conversions,converted,converted visitors,orders,purchases,successes," +
		"success count,conversion count,unique conversions count,goals hit,numerator,numerator value",
	rateRole:      "conversion rate,cr,cvr,conv rate,order conversion rate,goal conversion rate",
	meanRole:      "mean,average,avg,mean value,per user value,value per visitor,revenue per visitor,rpv",
	deviationRole: "sd,std,stddev,std dev,standard deviation,per user value std dev",
	varianceRole:  "variance,var",
	totalRole:     "total,sum,total value,revenue,total revenue",
	squaresRole:   "sum of squares,sum squares,total squares,sum of squared values",
	sumsRole:      "conversions visitors,unique conversions visitors,converted visitors n",
}

var roles = func() map[string]role {
	all := map[string]role{}
	for r, names := range roleNames {
		for name := range strings.SplitSeq(names, ",") {
			all[name] = r
		}
	}
	return all
}()

// totals are the labels of rows and columns with sums over variations.
var totals = []string{"total", "totals", "sum", "overall", "all variations", "grand total", "summe", "gesamt"}

// controls are words in the label of a control.
var controls = []string{"control", "original", "baseline", "holdout"}

// column is a column of a table: its header, what it has, and the variation that the header names.
type column struct {
	header, label string
	role          role
}

// readColumn returns what a header says: conversions, or the visitors of a variation in its words before or after.
func readColumn(header string) column {
	words := wordsOf(header)
	c := column{header: header, role: roles[strings.Join(words, " ")]}
	for k := len(words) - 1; c.role == noRole && k > 0; k-- {
		before, after := words[:len(words)-k], words[len(words)-k:]
		if r := roles[strings.Join(after, " ")]; r >= visitorsRole {
			c.role = r
			c.label = strings.Join(before, " ")
		} else if r := roles[strings.Join(words[:k], " ")]; r >= visitorsRole {
			c.role = r
			c.label = strings.Join(words[k:], " ")
		}
	}
	return c
}

// wordsOf returns the words and numbers of a text in lower case. A capital begins a word.
func wordsOf(text string) []string {
	var spaced strings.Builder
	wasLower := false
	for _, r := range text {
		isOfWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		if unicode.IsUpper(r) && wasLower || !isOfWord {
			spaced.WriteByte(' ')
		}
		if isOfWord {
			spaced.WriteRune(unicode.ToLower(r))
		}
		wasLower = unicode.IsLower(r)
	}
	return strings.Fields(spaced.String())
}

func isTotal(label string) bool { return slices.Contains(totals, strings.Join(wordsOf(label), " ")) }

func isControl(label string) bool {
	return slices.ContainsFunc(wordsOf(label), func(w string) bool { return slices.Contains(controls, w) })
}

// isYes reads yes or no. An empty text is no.
func isYes(text string) (yes, is bool) {
	text = strings.ToLower(text)
	yes = slices.Contains([]string{"yes", "y", "true", "x", "ja", "oui", "sí"}, text)
	return yes, yes || slices.Contains([]string{"", "no", "n", "false", "-", "–", "nein", "non"}, text)
}

var errNoNumber = errors.New("is not a number")

// readNumber reads a number as spreadsheets write it: with decimal point or comma, with marks or spaces between
// thousands, in per cent, or with the sign of a currency. 1,234 is a whole number if isCount is true, and otherwise if
// the table has no decimal commas.
func readNumber(text string, isCount, hasDecimalCommas bool) (float64, error) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Sc, r) || strings.ContainsRune("'’", r) {
			return -1
		}
		return r
	}, text)
	text, isPercent := strings.CutSuffix(text, "%")
	decimal, between := findMarks(text, isCount, hasDecimalCommas)
	whole, fraction, hasFraction := strings.Cut(text, decimal)
	if strings.Contains(whole, between) && !isGrouped(whole, between) {
		return 0, errNoNumber
	}
	text = strings.ReplaceAll(whole, between, "")
	if hasFraction {
		text += "." + fraction
	}
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, errNoNumber
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("must be at most 1.8e308")
	case err != nil:
		return 0, errNoNumber
	case isPercent:
		x /= 100
	}
	return x, nil
}

// findMarks returns the decimal mark of a number, and the mark between its thousands. Of two marks, the decimal one is
// last. Several dots, and one mark before a group of three digits, can be between thousands.
func findMarks(text string, isCount, hasDecimalCommas bool) (decimal, between string) {
	commas := strings.Count(text, ",")
	dots := strings.Count(text, ".")
	hasDecimalComma := false
	switch {
	case commas > 0 && dots > 0:
		hasDecimalComma = strings.LastIndex(text, ",") > strings.LastIndex(text, ".")
	case dots > 1:
		hasDecimalComma = true
	case dots == 1:
		hasDecimalComma = isGrouped(text, ".") && (isCount || hasDecimalCommas)
	case commas == 1:
		hasDecimalComma = !isGrouped(text, ",") || hasDecimalCommas && !isCount
	}
	if hasDecimalComma {
		return ",", "."
	}
	return ".", ","
}

// grouped matches numbers with a mark between groups of three digits only.
var grouped = map[string]*regexp.Regexp{
	",": regexp.MustCompile(`^[+-]*([1-9]|\d{2,3})(,\d{3})+$`),
	".": regexp.MustCompile(`^[+-]*([1-9]|\d{2,3})(\.\d{3})+$`),
}

func isGrouped(text, mark string) bool { return grouped[mark].MatchString(text) }

// hasDecimalComma reports whether a cell can only be read with a decimal comma.
func hasDecimalComma(cell string) bool {
	whole, fraction, has := strings.Cut(strings.TrimRight(cell, " \u00a0%€"), ",")
	isNumber := func(text string) bool { return text != "" && strings.Trim(text, "0123456789.+-") == "" }
	hasNumbers := has && isNumber(whole) && isNumber(fraction)
	return hasNumbers && (len(fraction) != 3 || whole == "0")
}

func wholeNumber(x, most float64) (int64, error) {
	if x != math.Trunc(x) || x < 0 || x > most {
		return 0, errors.New("must be an integer from 0 to " + strconv.FormatFloat(most, 'f', -1, 64))
	}
	return int64(x), nil
}

// maxShown is the number of bytes of a value that a fault shows.
const maxShown = 80

func faultAt(line int, name, value, detail string) faults.Fault {
	return faults.Fault{Line: line, Name: name, Value: faults.Clip(value, maxShown), Detail: detail}
}
