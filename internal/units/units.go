// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package units formats numbers for display, with three digits and a suitable unit, and texts for JSON and
// for terminals.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Text returns a text as valid UTF-8, as JSON needs it. It writes other bytes as \xff, so that different
// texts stay different.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Printable returns a text that is safe to print on a terminal: quoted if it contains control characters
// or invalid UTF-8.
func Printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			return strconv.QuoteToGraphic(s)
		}
	}
	return s
}

// Wrap splits a text into lines of up to width characters. It breaks lines only at spaces, so that names and commands can
// be copied.
func Wrap(s string, width int) (lines []string) {
	for word := range strings.FieldsSeq(s) {
		if n := len(lines); n > 0 && utf8.RuneCountInString(lines[n-1])+1+utf8.RuneCountInString(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// scaled formats a number with three digits and the largest suitable unit.
func scaled(v, step float64, units ...string) string {
	i := 0
	for i < len(units)-1 && math.Abs(v) >= step*0.9995 {
		v /= step
		i++
	}
	digits := 0
	switch {
	case v == 0:
	case math.Abs(v) < 9.995:
		digits = 2
	case math.Abs(v) < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + units[i]
}

// Throughput formats bytes per second in decimal units. NaN is empty.
func Throughput(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return scaled(v, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", "EB/s")
}

// Memory formats bytes in binary units.
func Memory(bytes int64) string {
	return scaled(float64(bytes), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}

// Bytes formats bytes in decimal units.
func Bytes(bytes uint64) string {
	if bytes < 1000 {
		return strconv.FormatUint(bytes, 10) + " B"
	}
	return scaled(float64(bytes), 1000, "B", "kB", "MB", "GB", "TB", "PB", "EB")
}

// Duration formats a duration in seconds. NaN is empty.
func Duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds):
		return ""
	case seconds < 1:
		return scaled(seconds*1e6, 1000, "µs", "ms", "s")
	}
	return scaled(seconds, 1000, "s", "ks")
}

// Bare removes trailing zeros after the decimal point: 2.50 ms becomes 2.5 ms.
func Bare(s string) string {
	number, unit, _ := strings.Cut(s, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

// Rate formats a number per second.
func Rate(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.095:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return Count(uint64(math.Round(v)))
}

// Count formats a number with thousands separators.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Age formats a duration in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d m", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}
