// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// number matches a number, a duration, or a layout such as v4. Letters and digits in one word,
// as in the ID of a container, aren't numbers.
var number = regexp.MustCompile(`\bv?((?:\d+(?:\.\d+)?(?:h|ms|m|s|ns))+|\d+(?:\.\d+)?)\b`)

// withoutNumbers returns a text with a placeholder for each number.
func withoutNumbers(s string) string { return number.ReplaceAllString(s, "\x00") }

// ranges returns a text that is true of all texts. They differ only in numbers. A number that
// isn't the same everywhere becomes a range.
func ranges(texts []string) string {
	low := number.FindAllString(texts[0], -1)
	high := append([]string(nil), low...)
	for _, text := range texts[1:] {
		for i, n := range number.FindAllString(text, -1) {
			if value(n) < value(low[i]) {
				low[i] = n
			}
			if value(n) > value(high[i]) {
				high[i] = n
			}
		}
	}
	i := -1
	return number.ReplaceAllStringFunc(texts[0], func(string) string {
		if i++; low[i] == high[i] {
			return low[i]
		}
		return low[i] + " to " + high[i]
	})
}

// value returns the value of a number, in seconds if it is a duration.
func value(s string) float64 {
	s = strings.TrimPrefix(s, "v")
	if d, err := time.ParseDuration(s); err == nil {
		return d.Seconds()
	}
	f, _ := strconv.ParseFloat(s, 64) // the regular expression matches only numbers
	return f
}
