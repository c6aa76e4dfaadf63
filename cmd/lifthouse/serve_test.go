package main

import (
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestPublicURLs(t *testing.T) {
	for text, want := range map[string]bool{
		"https://lifthouse.example.com":      true,
		"http://127.0.0.1:8080/lift":         true,
		"https://lifthouse.example.com/":     false,
		"https://lifthouse.example.com?a=b":  false,
		"https://lifthouse.example.com#here": false,
		"lifthouse.example.com":              false,
		"ftp://lifthouse.example.com":        false,
		"https://":                           false,
		"https://a b":                        false,
	} {
		check.Equal(t, isPublicURL(text), want, text)
	}
}

func TestOrigins(t *testing.T) {
	for text, want := range map[string]bool{
		"https://a.example.com":      true,
		"http://a.example.com:8080":  true,
		"https://a.example.com/":     false,
		"https://a.example.com/path": false,
		"a.example.com":              false,
		"https://":                   false,
		"":                           false,
	} {
		check.Equal(t, isOrigin(text), want, text)
	}
}
