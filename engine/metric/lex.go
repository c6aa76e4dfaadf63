package metric

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is a kind of token.
type tokenKind int

// The kinds of tokens. The end of the text is one, so every token has a successor.
const (
	endToken tokenKind = iota
	wordToken
	numberToken
	quotedToken
	operatorToken
)

// token is a part of a text.
type token struct {
	kind     tokenKind
	text     string // of a quoted one: without the quotes
	from, to int    // characters, from 0; half-open
	open     bool   // of a quoted one: its end is missing
}

// String returns a token as errors show it.
func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end"
	case quotedToken:
		return quoteText(t.text)
	default:
		return fmt.Sprintf("%q", t.text)
	}
}

// isOperator reports whether the token is an operator, or a word of the grammar.
func (t token) isOperator(text string) bool {
	return t.text == text && (t.kind == operatorToken || t.kind == wordToken)
}

// isWordRune reports whether a word may have a character.
func isWordRune(r rune) bool {
	if r >= utf8.RuneSelf {
		isSpace := unicode.IsSpace(r) || unicode.IsControl(r)
		return !isSpace && !strings.ContainsRune(curlyQuotes, r)
	}
	isLetter := r|32 >= 'a' && r|32 <= 'z'
	return isLetter || r >= '0' && r <= '9' || strings.ContainsRune("_:-", r)
}

// curlyQuotes are the quotes of typesetters, which programs put in place of those of the language.
const curlyQuotes = "‘’‚“”„«»"

// operators are all operators, the longer ones first.
var operators = []string{"..", "!=", "<=", ">=", "(", ")", ",", ".", "/", "|", "#", "@", "=", "<", ">"}

// arithmetic are the operators that the language does not have.
const arithmetic = "+*-%^"

const oneOrTwo = "a metric is one quantity, or a ratio of two"

// lexer splits a text into tokens.
type lexer struct {
	text   []rune
	at     int
	tokens []token
	faults Faults
}

// splitTokens returns the tokens of a text, the last of which is its end.
func splitTokens(text string) ([]token, Faults) {
	l := &lexer{text: []rune(text)}
	n := len(l.text)
	switch {
	case n > MaxCharacters:
		l.addFault(MaxCharacters, "the text has %d characters: at most %d are allowed", n, MaxCharacters)
		l.text = nil
	case !utf8.ValidString(text):
		valid := strings.ToValidUTF8(text, "\x00")
		l.addFault(utf8.RuneCountInString(valid[:strings.IndexByte(valid, 0)]), "the text is not UTF-8")
		l.text = nil
	}
	for l.at < len(l.text) {
		l.readToken()
	}
	return append(l.tokens, token{from: len(l.text), to: len(l.text)}), l.faults
}

func (l *lexer) addFault(at int, detail string, values ...any) {
	l.faults = append(l.faults, Fault{at + 1, fmt.Sprintf(detail, values...)})
}

func (l *lexer) addToken(kind tokenKind, from int, text string) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, from: from, to: l.at})
}

func (l *lexer) readToken() {
	from := l.at
	switch r := l.text[from]; {
	case unicode.IsSpace(r):
		l.at++
	case r == '\'' || r == '"':
		l.readQuoted(r)
	case isWordRune(r):
		l.readWord()
	default:
		rest := string(l.text[from:min(from+2, len(l.text))])
		found := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(rest, o) })
		if found < 0 {
			l.at++
			l.refuseCharacter(from, r)
			return
		}
		l.at += len(operators[found])
		l.addToken(operatorToken, from, operators[found])
	}
}

func (l *lexer) refuseCharacter(at int, r rune) {
	switch {
	case strings.ContainsRune(curlyQuotes, r):
		l.addFault(at, "%q is not a quote of the language: write '", r)
	case strings.ContainsRune(arithmetic, r):
		l.addFault(at, "%q is not allowed: %s", r, oneOrTwo)
	default:
		l.addFault(at, "%q is not allowed here", r)
	}
}

// readQuoted reads a text in quotes, in which two quotes are one.
func (l *lexer) readQuoted(quote rune) {
	from := l.at
	var text strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		if l.text[l.at] == quote {
			isDoubled := l.at+1 < len(l.text) && l.text[l.at+1] == quote
			if !isDoubled {
				l.at++
				l.addToken(quotedToken, from, text.String())
				return
			}
			l.at++
		}
		text.WriteRune(l.text[l.at])
	}
	l.addToken(quotedToken, from, text.String())
	l.tokens[len(l.tokens)-1].open = true
	l.addFault(from, "the quoted text has no end: write %c after it", quote)
}

// readWord reads a word, or a number, which may have a point.
func (l *lexer) readWord() {
	from := l.at
	l.skipWord()
	if !isInteger(string(l.text[from:l.at])) {
		l.addToken(wordToken, from, string(l.text[from:l.at]))
		return
	}
	hasFraction := l.at+1 < len(l.text) && l.text[l.at] == '.' && isDigit(l.text[l.at+1])
	if hasFraction {
		l.at++
		l.skipWord()
	}
	l.addToken(numberToken, from, string(l.text[from:l.at]))
}

func (l *lexer) skipWord() {
	for l.at < len(l.text) && isWordRune(l.text[l.at]) {
		l.at++
	}
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// isInteger reports whether a text is an integer, perhaps with a sign.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.IndexFunc(digits, func(r rune) bool { return !isDigit(r) }) < 0
}
