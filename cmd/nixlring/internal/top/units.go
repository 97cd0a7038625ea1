package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// scaled is a number with three digits and the unit that makes it readable.
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

// Throughput is bytes per second in decimal units, as links are sold, and empty for
// NaN.
func Throughput(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return scaled(v, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", "EB/s")
}

// Bound is the bound of a bucket, in seconds.
func Bound(seconds float64) string {
	number, unit, _ := strings.Cut(Duration(seconds), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

// Memory is bytes in binary units, as memory is sold.
func Memory(bytes int64) string {
	return scaled(float64(bytes), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}

// Bytes is bytes in decimal units.
func Bytes(bytes uint64) string {
	if bytes < 1000 {
		return strconv.FormatUint(bytes, 10) + " B"
	}
	return scaled(float64(bytes), 1000, "B", "kB", "MB", "GB", "TB", "PB", "EB")
}

// Duration is a time in seconds, and the longest that is known as more than
// that.
func Duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds):
		return ""
	case seconds >= Longest():
		return fmt.Sprintf(">%.0f s", Longest())
	case seconds < 1:
		return scaled(seconds*1e6, 1000, "µs", "ms", "s")
	}
	return scaled(seconds, 1000, "s", "ks")
}

// Rate is a number per second.
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

// Count is a number with its thousands apart.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Age is a time in its largest unit.
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
