// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

func TestFieldsAreQuotedWhenNecessary(t *testing.T) {
	for s, want := range map[string]string{
		"":                     "",
		"iGPU out of memory":   "iGPU out of memory",
		"=1+1":                 "=1+1",
		"a,b":                  `"a,b"`,
		`say "no"`:             `"say ""no"""`,
		`"`:                    `""""`,
		"two\nlines":           "\"two\nlines\"",
		"carriage\rreturn":     "\"carriage\rreturn\"",
		" space and 'quote' ":  " space and 'quote' ",
		"Gerät nicht gefunden": "Gerät nicht gefunden",
	} {
		if got := string(text.AppendField(nil, s)); got != want {
			t.Errorf("%q is written as %s, want %s", s, got, want)
		}
	}
}
